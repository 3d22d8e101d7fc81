"""Photos on S3 are indexed, followed and shown; a failing storage loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError
from setnet.library import Library
from setnet.web.files import open_inside
from tests.support.s3_server import S3Server, s3_server

ALBUM = "s3://album/photos"


@pytest.fixture
def server(tmp_path: Path, compose: Callable[..., None]) -> Iterator[S3Server]:
    """A server with three photos, one of them in a folder that the server lists as an object too."""
    with s3_server() as server:
        for name, people in {"2019/one.jpg": ("P001", "P003"), "two #2?.jpg": ("P005",)}.items():
            compose(tmp_path / "made" / name, people)
            server.put(f"photos/{name}", (tmp_path / "made" / name).read_bytes())
        server.put("photos/2019/", b"")
        server.put("photos/broken.jpg", b"no photo")
        yield server


def test_photos_on_s3_are_followed(server: S3Server, tmp_path: Path, compose: Callable[..., None]) -> None:
    with Library.create(tmp_path / "library") as library:
        report = library.index([ALBUM], workers=1)
        assert (report.added, report.faces, len(report.failed)) == (2, 3, 1)
        assert library.index(workers=0).unchanged == 3
        photos = {photo.display_name: photo for photo in library.photos.all_photos()}
        pair = photos[f"{ALBUM}/2019/one.jpg"]
        assert len(photos[f"{ALBUM}/two #2?.jpg"].faces) == 1
        assert library.photos.thumbnail(pair.id, 64).startswith(b"\xff\xd8")
        with open_inside(library, pair).file as file:
            assert file.read() == (tmp_path / "made/2019/one.jpg").read_bytes()
        hits = library.search([library.photos.descriptors(pair.id)[0]], k=1)
        assert [hit.photo.id for hit in hits] == [pair.id]
        compose(tmp_path / "made/2019/one.jpg", ("P003",), tile=2)
        server.put("photos/2019/one.jpg", (tmp_path / "made/2019/one.jpg").read_bytes())
        server.delete("photos/two #2?.jpg")
        report = library.index(workers=0, prune=True)
        assert (report.changed, report.removed, len(library.set_index)) == (1, 1, 1)
        assert library.check() == []


def test_a_storage_that_fails_is_named_and_loses_nothing(server: S3Server, tmp_path: Path) -> None:
    with Library.create(tmp_path / "library") as library:
        assert library.index([ALBUM], workers=0).added == 2
        faults = {
            "access is refused": {"secret": "wrong"},
            "cannot be reached": {"endpoint_url": "http://127.0.0.1:9"},
        }
        for text, changed in faults.items():
            server.configure(**changed)
            (unreadable,) = library.index(workers=0, prune=True).unreadable
            assert text in str(unreadable)
            assert len(library.set_index) == 2
            with pytest.raises(InvalidInputError, match=f"s3://album/other: {text}"):
                library.index(["s3://album/other"], workers=0)
            with pytest.raises(InvalidInputError, match=f"s3://album: {text}"):
                library.index(["s3://album"], workers=0)
        server.configure()
        with pytest.raises(InvalidInputError, match="s3://none: is not there"):
            library.index(["s3://none"], workers=0)
        assert [str(folder) for folder in library.folders] == [ALBUM.replace("//", "/")]
        assert library.index(workers=0).unchanged == 3
