"""Several photos as one zip file: as they are on the disk, and what cannot be read is named."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from setnet.library import Library
from setnet.web.state.photo_archive import PhotoArchive

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


def test_photos_come_as_they_are_on_the_disk(shared: TestClient, made: Any) -> None:
    photos = shared.get(f"{API}/timeline/photos").json()["photos"][:2]
    answer = shared.get(f"{API}/archive", params={"photos": ",".join(p["id"] for p in photos)})
    assert answer.status_code == 200
    assert "attachment" in answer.headers["content-disposition"]
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == sorted(p["name"] for p in photos)
        for photo in photos:
            assert archive.read(photo["name"]) == Path(photo["photo"]).read_bytes()


def test_names_do_not_collide_and_files_that_are_gone_are_named(made: Any, tmp_path: Path) -> None:
    with Library.open(made.library) as library:
        (photo, other) = library.catalog.latest(2)
    twin = tmp_path / photo.path.name
    twin.write_bytes(b"another file of that name")
    photos = [
        photo,
        other._replace(stored_path=bytes(twin)),
        other._replace(stored_path=b"/nowhere/gone.jpg"),
    ]
    data = b"".join(PhotoArchive(photos, [made.photos, tmp_path]).chunks())
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        second = f"{twin.stem} (2){twin.suffix}"
        assert archive.namelist() == [twin.name, second, "not included.txt"]
        assert archive.read(second) == twin.read_bytes()
        assert b"/nowhere/gone.jpg" in archive.read("not included.txt")


@pytest.mark.parametrize("photos", ["", "1,", "a", "1;2", ",".join(["1"] * 501)])
def test_other_lists_than_up_to_500_ids_are_refused(shared: TestClient, photos: str) -> None:
    assert shared.get(f"{API}/archive", params={"photos": photos}).status_code == 422


def test_photos_that_are_not_there_are_no_archive(shared: TestClient) -> None:
    assert shared.get(f"{API}/archive", params={"photos": "999999"}).status_code == 404
