"""Libraries of the last release: brought up to date in one transaction, or read as they are."""

from __future__ import annotations

import os
import re
import sqlite3
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from old_library import rows, unpacked, version_of
from setnet.errors import StorageError
from setnet.library import Example, Library
from setnet.library.store.tables import row_sums, schema

NOBODY, ALI, ZOE, FORGOTTEN = "Nobody", "علی\u200cرضا", "Zoë", "Forgotten"  # noqa: RUF001


@pytest.fixture
def last(tmp_path: Path) -> Path:
    """A library of version 4 of the database."""
    library: Path = unpacked(4, tmp_path)
    return library


def test_people_of_the_last_release_keep_all_they_have_and_get_ids(last: Path) -> None:
    before = rows(last, columns=row_sums.FIRST_COLUMNS)
    with Library.open(last) as library:
        assert library.check() == []
        people = {person.name: person for person in library.people}
        assert {name: person.examples for name, person in people.items()} == {
            NOBODY: 1, ALI: 2, ZOE: 1, FORGOTTEN: 0,
        }  # fmt: skip
        assert len({person.id for person in people.values()}) == 4
        assert all(re.fullmatch("[0-9a-f]{12}", person.id) for person in people.values())
        assert library.people.get(people[ZOE].id).name == ZOE
        (example,) = library.people.examples(NOBODY)
        assert (example.origin, example.content) == ("portrait", bytes(16))  # of photo 0, whose path it has
        assert [e.content for e in library.people.examples(ALI)] == [bytes([1]) * 16, None]
        assert library.people.history() == []
    assert rows(last, columns=row_sums.FIRST_COLUMNS) == before
    assert version_of(last) == len(schema.MIGRATIONS)


def test_numbers_go_on_after_those_that_are_there(last: Path) -> None:
    highest = max(row[0] for row in rows(last, columns=row_sums.FIRST_COLUMNS)["examples"])
    with Library.open(last) as library:
        library.people.add("Anna", [Example(np.eye(128, dtype=np.float32)[0])])
        assert library.people.examples("Anna")[0].number == highest + 1


@pytest.mark.parametrize("call", [1, 6, 11, 16])  # of the two for each of eight rows
def test_an_upgrade_that_is_killed_leaves_the_library_as_it_was(
    last: Path, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, row_hash, calls = (last / "library.db").read_bytes(), row_sums.row_hash, count(1)
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(
            row_sums, "row_hash", lambda *row: os._exit(9) if next(calls) == call else row_hash(*row)
        )
        Library.open(last)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert (last / "library.db").read_bytes() == before
    assert version_of(last) == 4
    with Library.open(last) as library:
        assert library.check() == []


def test_an_upgrade_that_fails_at_its_end_leaves_the_library_as_it_was(
    last: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows(last, columns=row_sums.FIRST_COLUMNS)
    *others, latest = schema.MIGRATIONS
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*others, f"{latest}INSERT INTO nowhere VALUES (1);\n"))
        with pytest.raises(StorageError, match="nowhere"):
            Library.open(last)
    assert (version_of(last), rows(last, columns=row_sums.FIRST_COLUMNS)) == (4, before)


@pytest.mark.parametrize("table", ["people", "examples"])
def test_damage_that_was_there_before_an_upgrade_is_still_seen(last: Path, table: str) -> None:
    column = {"people": "name", "examples": "descriptor"}[table]
    with sqlite3.connect(last / "library.db") as db:
        db.execute(f"DROP TRIGGER {table}_update")
        db.execute(f"UPDATE {table} SET {column} = x'00' WHERE id = 1")
    with Library.open(last) as library:
        assert [f"row 1 of the table '{table}'" in problem for problem in library.check()] == [True]


def test_one_that_cannot_be_written_is_read_with_all_its_people(
    last: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    before = {path: path.read_bytes() for path in last.rglob("*") if path.is_file()}
    with Library.open(last) as library:
        assert library.check() == []
        assert [person.name for person in library.people] == [FORGOTTEN, NOBODY, ZOE, ALI]
        assert len({person.id for person in library.people}) == 4
        assert library.people.get(library.people.get(ALI).id).examples == 2
        assert library.people.picture(NOBODY)
        assert library.people.verdicts(ZOE) == []
        assert library.people.history() == []
        assert library.search([NOBODY], k=1)[0].photo.id == "1"
        assert library.status().counts.people == 4
        with pytest.raises(StorageError, match="read-only"):
            library.people.rename(ZOE, "Zoe")
    assert {path: path.read_bytes() for path in last.rglob("*") if path.is_file()} == before
