"""Composed footage: its plan is the truth of what is seen, also where only a flag says which way is up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.library import LibraryPhoto
from setnet.video import frames_at
from studies.video import HEIGHT, WIDTH, _limits, _rates, frame_times, plan_footage, write_clip

PEOPLE = {f"Person_{n}": [f"Person_{n}/1.png"] for n in range(6)}


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Pictures of nobody, one colour each."""
    from PIL import Image

    for number, (name, (file,)) in enumerate(PEOPLE.items()):
        (tmp_path / name).mkdir()
        Image.new("RGB", (100, 100), (40 * number, 255 - 40 * number, 128)).save(tmp_path / file)
    return tmp_path


def test_the_same_plan_every_time_with_shots_one_after_the_other() -> None:
    clips = plan_footage(PEOPLE, 20, seed=3)
    assert clips == plan_footage(PEOPLE, 20, seed=3)
    assert [len(clip.shots) for clip in clips] == [8, 8, 4]
    for clip in clips:
        for shot, following in zip(clip.shots, clip.shots[1:], strict=False):
            assert shot.stop == following.start
            assert 0 <= shot.mixed < shot.stop - shot.start
    with pytest.raises(InvalidInputError, match="too few"):
        plan_footage({"Person_1": ["1.png"]}, 8, seed=0)


def test_a_clip_that_was_filmed_on_its_side_is_read_upright(pictures: Path, tmp_path: Path) -> None:
    clip = plan_footage(PEOPLE, 8, seed=1)[0]
    clip = replace(clip, shots=clip.shots[:1])
    middle = clip.shots[0].start + 1.0
    found = []
    for name, is_turned in (("upright.mp4", False), ("turned.mp4", True)):
        write_clip(pictures, replace(clip, is_turned=is_turned), tmp_path / name, seed=1)
        found += frames_at(str(tmp_path / name), [middle])
    assert found[0].shape == found[1].shape == (HEIGHT, WIDTH, 3)
    assert np.abs(found[0].astype(int) - found[1]).mean() < 6


def test_pictures_of_a_varying_rate_have_the_times_they_show(pictures: Path, tmp_path: Path) -> None:
    clip = plan_footage(PEOPLE, 8, seed=1)[0]
    clip = replace(clip, shots=clip.shots[:2], is_varying=True)
    write_clip(pictures, clip, tmp_path / "varying.mp4", seed=1)
    times = frame_times(clip, 1)
    assert len(set(np.diff(times).round(3))) == 3
    capture = cv2.VideoCapture(str(tmp_path / "varying.mp4"))
    found = []
    while capture.grab():
        found.append(capture.get(cv2.CAP_PROP_POS_MSEC) / 1000)
    assert found == pytest.approx(times, abs=0.002)
    # What is drawn at a time is what is shown at it.
    write_clip(pictures, replace(clip, is_varying=False), tmp_path / "steady.mp4", seed=1)
    shown = [frames_at(str(tmp_path / name), [2.0])[0] for name in ("varying.mp4", "steady.mp4")]
    assert np.abs(shown[0].astype(int) - shown[1]).mean() < 6


def test_limits_are_compared_with_the_truth() -> None:
    (clip,) = plan_footage(PEOPLE, 4, seed=5)
    starts = [0.0, *(shot.stop for shot in clip.shots[:-1])]
    shots = [LibraryPhoto("1", b"", 0, b"", None, 1, 1, (), start, start + 1) for start in starts]
    assert _limits(clip, shots) == (3, 0, 0)
    assert _limits(clip, shots[:-1]) == (2, 0, 1)
    assert _limits(clip, [*shots, shots[0]._replace(start=clip.shots[-1].stop - 0.01)])[1] == 1
    assert _rates((3, 1, 0)) == {"precision": [75.0], "recall": [100.0], "f1": [pytest.approx(600 / 7)]}
