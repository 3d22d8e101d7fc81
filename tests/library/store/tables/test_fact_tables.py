"""Libraries of version 7: brought up to date in one transaction, or read as they are."""

from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from setnet.library import Library
from setnet.library.store.tables import row_sums, schema
from setnet.library.store.tables.fact_tables import TABLES

FIXTURES = Path(__file__).parents[2] / "fixtures"
BEFORE = {table: columns for table, columns in row_sums.COLUMNS.items() if table not in TABLES}


@pytest.fixture
def last(tmp_path: Path) -> Path:
    """A library of version 7 of the database."""
    shutil.unpack_archive(FIXTURES / "library_v7.zip", tmp_path)
    return tmp_path / "library"


def rows(library: Path) -> dict[str, list[Any]]:
    db = sqlite3.connect(f"{(library / 'library.db').as_uri()}?immutable=1", uri=True)
    try:
        return {
            table: sorted(db.execute(f"SELECT {', '.join(names.split())} FROM {table}"), key=repr)
            for table, names in BEFORE.items()
        }
    finally:
        db.close()


def test_everything_is_kept_and_known_times_are_the_cameras(last: Path) -> None:
    before = rows(last)
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
    assert rows(last) == before
    with sqlite3.connect(last / "library.db") as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == len(schema.MIGRATIONS)


def test_an_upgrade_that_is_killed_leaves_the_library_as_it_was(
    last: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (last / "library.db").read_bytes()
    apply = schema.apply

    def killed(db: sqlite3.Connection, version: int, until: int) -> None:
        apply(db, version, until)
        os._exit(9)

    child = os.fork()
    if child == 0:
        monkeypatch.setattr(schema, "apply", killed)
        Library.open(last)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (last / "library.db").read_bytes() == before
    with Library.open(last) as library:
        assert library.check() == []


def test_one_that_cannot_be_written_is_read_as_it_is(last: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = {path: path.read_bytes() for path in last.rglob("*") if path.is_file()}
    with Library.open(last) as library:
        assert library.check() == []
        assert library.photo("1").taken_from == "exif"
        assert library.photo("3").taken_from is None
    assert {path: path.read_bytes() for path in last.rglob("*") if path.is_file()} == before
