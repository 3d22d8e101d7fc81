"""Videos of synthetic people: their shots, who is in each, and what happens with files that are none."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import VideoError
from setnet.faces import FaceSettings, extract_faces
from setnet.video import frames_at, watch

SETTINGS = FaceSettings()


def test_each_shot_has_its_people_once(clip: Path, portrait_file: Callable[[str], Path]) -> None:
    found = watch(str(clip), SETTINGS)
    assert found.is_end
    assert (found.width, found.height) == (320, 180)
    assert [round(shot.start) for shot in found.shots] == [0, 2, 4]
    assert [round(shot.stop) for shot in found.shots] == [2, 4, 6]
    assert [len(shot.people) for shot in found.shots] == [2, 1, 2]
    known = {
        name: extract_faces(portrait_file(name), SETTINGS)[0].descriptor for name in ("P001", "P003", "P010")
    }
    first, _, last = found.shots
    assert np.argmax([p.face.descriptor @ known["P001"] for p in first.people]) == 0
    assert np.argmax([p.face.descriptor @ known["P003"] for p in first.people]) == 1
    assert np.argmax([p.face.descriptor @ known["P010"] for p in last.people]) == 1
    for shot in found.shots:
        assert shot.start <= shot.best <= shot.stop
        for person in shot.people:
            assert shot.start <= person.at <= shot.stop
            assert np.linalg.norm(person.face.descriptor) == pytest.approx(1, abs=1e-5)
            assert (np.diff(person.track[:, 0]) > 0).all()


def test_a_part_goes_on_where_the_one_before_ended(clip: Path) -> None:
    whole = watch(str(clip), SETTINGS)
    hurried = count(0, 100)
    first = watch(str(clip), SETTINGS, budget=1, clock=lambda: next(hurried))
    assert not first.is_end
    rest = watch(str(clip), SETTINGS, first.until)
    assert rest.is_end
    both = [*first.shots, *rest.shots]
    assert [s.start for s in both] == pytest.approx([s.start for s in whole.shots], abs=0.3)
    assert [len(s.people) for s in both] == [len(s.people) for s in whole.shots]


def test_the_picture_of_a_time_is_found_again(clip: Path) -> None:
    before, after = frames_at(str(clip), [1.0, 5.0])
    assert before.shape == (180, 320, 3)
    assert before[20, 20, 2] < before[20, 20, 1] + 60
    assert np.abs(before.astype(int) - after).mean() > 20
    with pytest.raises(VideoError, match="no picture at"):
        frames_at(str(clip), [100.0])


@pytest.mark.parametrize("kept", [0, 1, 100, 5000])
def test_files_that_were_cut_short_are_refused(clip: Path, tmp_path: Path, kept: int) -> None:
    (tmp_path / "short.mp4").write_bytes(clip.read_bytes()[:kept])
    with pytest.raises(VideoError):
        watch(str(tmp_path / "short.mp4"), SETTINGS)


def test_a_playlist_cannot_make_the_decoder_open_other_files(clip: Path, tmp_path: Path) -> None:
    for text in (f"#EXTM3U\n#EXTINF:2,\n{clip}\n#EXT-X-ENDLIST\n", f"ffconcat version 1.0\nfile {clip}\n"):
        (tmp_path / "list.mp4").write_text(text)
        with pytest.raises(VideoError, match="not a video"):
            watch(str(tmp_path / "list.mp4"), SETTINGS)
