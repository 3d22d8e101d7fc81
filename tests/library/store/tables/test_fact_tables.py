"""Libraries of version 7: brought up to date in one transaction, or read as they are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from old_library import rows, unpacked, version_of
from setnet.library import Library
from setnet.library.store.tables import schema
from setnet.library.store.tables.fact_tables import TABLES


@pytest.fixture
def last(tmp_path: Path) -> Path:
    """A library of version 7 of the database."""
    library: Path = unpacked(7, tmp_path)
    return library


def test_everything_is_kept_and_known_times_are_the_cameras(last: Path) -> None:
    before = rows(last, without=TABLES)
    with Library.open(last) as library:
        assert library.check() == []
        assert [photo.taken_from for photo in library.catalog.all_photos()] == [
            "exif",
            "exif",
            None,
            "exif",
            None,
        ]
        known = library.catalog.known_files()
        assert [file.is_dated for file in known.values()] == [True, True, False, True, False]
    assert rows(last, without=TABLES) == before
    assert version_of(last) == len(schema.MIGRATIONS)


def test_one_that_cannot_be_written_is_read_as_it_is(last: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = {path: path.read_bytes() for path in last.rglob("*") if path.is_file()}
    with Library.open(last) as library:
        assert library.check() == []
        assert library.photo("1").taken_from == "exif"
        assert library.photo("3").taken_from is None
    assert {path: path.read_bytes() for path in last.rglob("*") if path.is_file()} == before
