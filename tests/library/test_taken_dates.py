"""When photos without EXIF were taken."""

from __future__ import annotations

import os
import string
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from setnet.faces import FaceSettings
from setnet.library import Library, LibraryPhoto
from setnet.library.photo_reader import date_in_name, taken_date

NOON = datetime(2019, 7, 4, 12, 34, 56)
DAY = datetime(2019, 7, 4)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("IMG_20190704_123456.jpg", NOON),
        ("IMG_20190704_123456_1.jpg", NOON),
        ("PXL_20190704_123456789.MP.jpg", NOON),
        ("20190704123456.heic", NOON),
        ("2019-07-04 12.34.56.jpg", NOON),
        ("Screenshot_20190704-123456.png", NOON),
        ("Screenshot_2019-07-04-12-34-56-123_com.example.jpg", NOON),
        ("Screenshot 2019-07-04 at 12.34.56.jpg", NOON),
        ("photo_2019-07-04_12-34-56.jpg", NOON),
        ("IMG-20190704-WA0001.jpg", DAY),
        ("2019_07_04 beach.jpg", DAY),
        ("20190704_996699.jpg", DAY),  # a number, not a time
        ("IMG_1234.jpg", None),
        ("DSC_20191399.jpg", None),
        ("P1020190704.jpg", None),
        ("12345678901234.jpg", None),
        ("2019-07.jpg", None),
        ("19700101_000000.jpg", None),
    ],
)
def test_dates_in_names_are_understood(name: str, expected: datetime | None) -> None:
    assert date_in_name(name) == expected


@given(st.text(string.digits + "-_. aAtT", max_size=30))
def test_any_name_has_a_date_or_none(name: str) -> None:
    found = date_in_name(name)
    assert found is None or f"{found:%Y}" in name


@given(st.datetimes(datetime(1980, 1, 1), datetime(2099, 12, 31)))
def test_what_cameras_write_comes_back(time: datetime) -> None:
    time = time.replace(microsecond=0)
    for form in ("IMG_%Y%m%d_%H%M%S.jpg", "%Y-%m-%d %H.%M.%S.jpg", "%Y%m%d%H%M%S.jpg"):
        assert date_in_name(time.strftime(form)) == time


def test_the_camera_comes_before_the_name_and_the_name_before_the_file() -> None:
    mtime_ns = 1_600_000_000 * 10**9
    assert taken_date(b"/p/IMG_20190704_123456.jpg", 5.0, mtime_ns) == (5.0, None)
    number = NOON.replace(tzinfo=UTC).timestamp()
    assert taken_date(b"/p/20200101/IMG_20190704_123456.jpg", None, mtime_ns) == (number, "name")
    local = datetime.fromtimestamp(1_600_000_000).replace(tzinfo=UTC).timestamp()
    assert taken_date(b"/20190704/one.jpg", None, mtime_ns) == (local, "file")
    assert taken_date(b"one.jpg", None, 1) == (None, None)
    assert taken_date(b"one.jpg", None, -(1 << 63)) == (None, None)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Photos of nobody: dated by the camera, by name, by file, and not at all."""
    photos = tmp_path / "photos"
    photos.mkdir()
    exif = Image.Exif()
    exif.get_ifd(0x8769)[0x9003] = "2016:07:14 18:30:00"
    for number, name in enumerate(["camera", "IMG-20190704-WA0001", "file", "none"]):
        image = Image.new("RGB", (32, 32), (number, 0, 0))
        image.save(photos / f"{name}.jpg", exif=exif if name == "camera" else Image.Exif())
        time = 0 if name == "none" else 1_600_000_000
        os.utime(photos / f"{name}.jpg", (time, time))
    return photos


def by_name(library: Library) -> dict[str, LibraryPhoto]:
    return {photo.path.stem: photo for photo in library.photos.all_photos()}


def test_photos_say_where_their_time_is_from(folder: Path, tmp_path: Path) -> None:
    with Library.create(tmp_path / "library", FaceSettings(detector="yunet")) as library:
        library.index([folder], workers=0)
        found = by_name(library)
        assert [found[name].taken_from for name in ("camera", "IMG-20190704-WA0001", "file", "none")] == [
            "exif",
            "name",
            "file",
            None,
        ]
        assert found["IMG-20190704-WA0001"].to_dict()["taken"] == "2019-07-04T00:00:00"
        assert found["IMG-20190704-WA0001"].to_dict()["taken_from"] == "name"
        assert found["file"].taken == datetime.fromtimestamp(1_600_000_000)
        assert library.check() == []
        # Another name or another copy is dated by itself; what the camera wrote stays.
        (folder / "IMG-20190704-WA0001.jpg").rename(folder / "beach 2018-05-06.jpg")
        (folder / "camera.jpg").rename(folder / "IMG_20200101_000000.jpg")
        assert library.index(workers=0).moved == 2
        found = by_name(library)
        assert found["beach 2018-05-06"].taken == datetime(2018, 5, 6)
        assert found["IMG_20200101_000000"].taken == datetime(2016, 7, 14, 18, 30)
        assert found["IMG_20200101_000000"].taken_from == "exif"
        assert library.index(workers=0).unchanged == 4
