"""Libraries of version 5, without groups: brought up to date in one transaction, or read as they are."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from setnet.errors import StorageError
from setnet.library import Library
from setnet.library.store.tables import row_sums, schema

FIXTURES = Path(__file__).parents[2] / "fixtures"
BEFORE = {
    table: columns
    for table, columns in row_sums.COLUMNS.items()
    if table not in ("face_groups", "group_members", "shots", "shot_faces", "photo_facts")
}


@pytest.fixture
def last(tmp_path: Path) -> Path:
    """A library of version 5 of the database."""
    shutil.unpack_archive(FIXTURES / "library_v5.zip", tmp_path)
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


def version_of(library: Path) -> int:
    with sqlite3.connect(library / "library.db") as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])


def test_everything_is_kept_and_its_faces_can_be_grouped(last: Path) -> None:
    before = rows(last)
    assert len(before["verdicts"]) == 2
    with Library.open(last) as library:
        assert library.check() == []
        assert library.groups.page() == []
        assert library.groups.ungrouped_faces == 6
    assert rows(last) == before
    assert version_of(last) == len(schema.MIGRATIONS)
    with Library.open(last) as library:
        library.discover()
        assert sum(group.faces for group in library.groups.page()) == 6
        names = {group.name for group in library.groups.page()}
        assert {"Nobody", "Zoë"} <= names  # their examples are faces of these photos, or look the same
        assert library.check() == []


def test_an_upgrade_that_is_killed_leaves_the_library_as_it_was(
    last: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = (last / "library.db").read_bytes()
    apply: Callable[..., None] = schema.apply

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
    assert version_of(last) == 5
    with Library.open(last) as library:
        assert library.check() == []


def test_one_that_cannot_be_written_has_no_groups(last: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = {path: path.read_bytes() for path in last.rglob("*") if path.is_file()}
    with Library.open(last) as library:
        assert library.check() == []
        assert library.groups.page() == []
        assert library.groups.grouped_at is None
        assert "g1" not in library.groups
        assert library.suggestions() == []
        assert library.people.get("Zoe B.").note == "from the choir"
        assert library.photos_with("Nobody").total == 2
        with pytest.raises(StorageError, match="read-only"):
            library.discover()
    assert {path: path.read_bytes() for path in last.rglob("*") if path.is_file()} == before
