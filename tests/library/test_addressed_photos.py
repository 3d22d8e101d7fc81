"""Photos at addresses are indexed, followed and shown as those of folders are."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.cli.search import copy_photos, print_paths
from setnet.errors import InvalidInputError
from setnet.library import Conditions, Library
from setnet.library.photo_reader import PhotoReader
from setnet.library.video_reader import VideoReader
from setnet.web.files import open_inside
from setnet.web.problems import Problem
from tests.support.clips import Scene, write_clip

pytest.importorskip("fsspec", reason="addresses need the extra `collection`")


def archive(place: Path, photos: dict[str, Path]) -> None:
    with zipfile.ZipFile(place, "w") as made:
        for name, path in photos.items():
            made.write(path, name)


def test_photos_in_an_archive_are_followed(
    tmp_path: Path, compose: Callable[..., None], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    one, two, three = (tmp_path / f"{name}.jpg" for name in ("one", "two", "three"))
    compose(one, ("P001", "P003"))
    compose(two, ("P005",))
    compose(three, ("P003",), tile=2)
    place = tmp_path / "p.zip"
    archive(place, {"2019/one.jpg": one, "two.jpg": two, "notes.txt": two, ".hidden.jpg": two})
    address = f"zip://::{place}"
    with Library.create(tmp_path / "library") as library:
        report = library.index([address], workers=1)
        assert (report.added, report.faces, report.ok) == (2, 3, True)
        assert library.index(workers=0).unchanged == 2
        photos = {photo.display_name: photo for photo in library.photos.all_photos()}
        assert set(photos) == {f"{place}::zip://2019/one.jpg", f"{place}::zip://two.jpg"}
        pair = photos[f"{place}::zip://2019/one.jpg"]
        assert library.photos.thumbnail(pair.id, 64).startswith(b"\xff\xd8")
        with open_inside(library, pair).file as file:
            assert file.read() == one.read_bytes()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("setnet.web.files._LARGEST_FETCHED", 100)
            with pytest.raises(Problem, match="it is not fetched"):
                open_inside(library, pair)
        with pytest.raises(Problem, match="outside the indexed folders"):
            open_inside(Library.create(tmp_path / "other"), pair)
        hits = library.search(
            [library.photos.descriptors(pair.id)[0]], conditions=Conditions(folder=f"zip://2019::{place}")
        )
        assert [hit.photo.id for hit in hits] == [pair.id]
        print_paths(hits)
        assert capfdbinary.readouterr().out == os.fsencode(pair.display_name) + b"\n"
        assert not copy_photos(hits, tmp_path / "copies")
        archive(place, {"2019/one.jpg": three, "three.jpg": two})
        report = library.index(workers=0)
        assert (report.changed, report.copied, len(report.vanished)) == (1, 1, 1)
        place.unlink()
        report = library.index(workers=0, prune=True)
        assert (report.removed, len(report.vanished), len(report.unreadable)) == (0, 0, 1)
        assert len(library.set_index) == 3
        assert library.check() == []


@pytest.mark.usefixtures("_people")
def test_videos_in_an_archive_are_read_from_a_copy_that_nobody_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    seen = list[list[Path]]()
    read = VideoReader._read

    def reading(self: VideoReader, *given: Any) -> Any:
        seen.append([*(tmp_path / "temporary").iterdir()])
        return read(self, *given)

    monkeypatch.setattr(VideoReader, "_read", reading)
    write_clip(tmp_path / "party.mp4", [Scene(("P001", "P003"))])
    place = tmp_path / "p.zip"
    archive(place, {"party.mp4": tmp_path / "party.mp4", "broken.mov": Path(__file__)})
    with Library.create(tmp_path / "library") as library:
        report = library.index([f"zip://::{place}"], workers=1)
        assert (report.added, report.shots, len(report.failed)) == (1, 1, 1)
        assert library.index(workers=0).unchanged == 2
        (shot,) = library.photos.all_photos()
        assert (shot.path.name, len(shot.faces), shot.start) == ("party.mp4", 2, 0.0)
        assert shot.taken is None  # no camera, no name tells, and the stamp of an address is no time
        assert library.photos.thumbnail(shot.id, 64).startswith(b"\xff\xd8")
        assert library.photos.face_thumbnail(shot.id, 0, 64).startswith(b"\xff\xd8")
        assert library.check() == []
        with PhotoReader(library.settings, 1) as reader:
            ((_, described),) = reader.describe([shot])
        assert not isinstance(described, str)
        np.testing.assert_allclose(described, library.photos.descriptors(shot.id), atol=1e-3)
    assert seen == [[], []]
    assert [*(tmp_path / "temporary").iterdir()] == []


@pytest.mark.usefixtures("_people")
def test_a_video_without_room_for_a_copy_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_clip(tmp_path / "party.mp4", [Scene(("P001",))])
    archive(tmp_path / "p.zip", {"party.mp4": tmp_path / "party.mp4"})
    with Library.create(tmp_path / "library") as library:
        with monkeypatch.context() as patch:
            patch.setattr("setnet.addresses._LARGEST_COPY", 100)
            ((_, reason),) = library.index([f"zip://::{tmp_path}/p.zip"], workers=0).failed
        assert "too large for a copy in" in reason
        with monkeypatch.context() as patch, open("/dev/full", "wb", buffering=0) as full:
            patch.setattr("tempfile.TemporaryFile", lambda **_: full)
            ((_, reason),) = library.index(workers=0, retry=True).failed
        assert "no copy of it can be made" in reason
        assert library.index(workers=0, retry=True).changed == 1


def test_a_file_address_is_a_path_and_a_wrong_one_leaves_nothing(
    tmp_path: Path, compose: Callable[..., None]
) -> None:
    compose(tmp_path / "photos" / "one.jpg", ("P001",))
    with Library.create(tmp_path / "library") as library:
        assert library.index([f"file://{tmp_path}/photos"], workers=0).added == 1
        assert library.index([tmp_path / "photos"], workers=0).unchanged == 1
        with pytest.raises(InvalidInputError, match="is not there"):
            library.index([f"zip://::{tmp_path}/none.zip"], workers=0)
        assert library.folders == [tmp_path / "photos"]
