"""Damage to `library.db` and to its log."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import SetNetError, StorageError
from setnet.library import Example, Library
from setnet.library.database import Database
from setnet.library.journal import JOURNAL_TABLES
from setnet.library.schema import PHOTO_TABLES, damaged_photos

COLUMNS = {table: columns for table, (_, columns) in PHOTO_TABLES.items()} | dict(JOURNAL_TABLES)


def rows_of(database: Path) -> Any:
    """Return the rows of all tables."""
    db = sqlite3.connect(f"{database.as_uri()}?immutable=1", uri=True)
    try:
        return {
            table: sorted(map(repr, db.execute(f"SELECT {', '.join(names.split())} FROM {table}")))
            for table, names in COLUMNS.items()
        }
    except (sqlite3.Error, UnicodeError) as error:
        return str(error)
    finally:
        db.close()


def flip(path: Path, at: int, bit: int = 2) -> None:
    with open(path, "r+b") as file:
        file.seek(at)
        old = file.read(1)[0]
        file.seek(at)
        file.write(bytes([old ^ (1 << bit)]))


def problems_in(library: Path) -> list[str]:
    try:
        with Library.open(library) as opened:
            return opened.check()
    except SetNetError as error:
        return [str(error)]


def fill_journal(library: Library) -> None:
    """Leave a row in every table of people."""
    people = library.people
    people.add("Anna", [Example(np.eye(128, dtype=np.float32)[n], f"/{n}.jpg") for n in range(3)])
    first, second, _ = (example.number for example in people.examples("Anna"))
    people.edit("Anna", aliases=["Annie"], note="of the fourth floor")
    people.reject("Anna", "1", 0)
    people.confirm("Anna", "2", 1)
    people.reject("Anna", "2", 1)
    people.confirm("Anna", "2", 0)
    people.remove_examples("Anna", [first or 0])
    assert people.split("Anna", [second or 0], "Ben").examples == 1


def test_flipped_bits_that_alter_rows_are_found(stored: Path, tmp_path: Path) -> None:
    with Library.open(stored) as library:
        fill_journal(library)
    sound, size = rows_of(stored / "library.db"), (stored / "library.db").stat().st_size
    copy, altered = tmp_path / "copy", 0
    step = int(os.environ.get("SETNET_FLIP_STEP", "401"))
    for at in range(100, size, step):
        shutil.copytree(stored, copy)
        flip(copy / "library.db", at)
        if rows_of(copy / "library.db") != sound:
            altered += 1
            assert problems_in(copy), f"bit 2 of byte {at}"
        shutil.rmtree(copy)
    assert altered > 10


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE photos SET taken = taken + 1 WHERE id = 2",
        "UPDATE faces SET x0 = x0 + 1 WHERE photo = 2",
        "UPDATE examples SET descriptor = zeroblob(512)",
        "UPDATE people SET added = 0",
        "UPDATE people SET note = 'other'",
        "UPDATE aliases SET name = 'Ann'",
        "UPDATE labels SET is_match = 1 - is_match",
        "UPDATE meta SET value = 'other' WHERE key = 'model'",
        "DELETE FROM folders",
        "DROP TRIGGER faces_leave_group",
        "DROP INDEX photos_by_time",
    ],
)
def test_rows_changed_behind_the_back_are_found(stored: Path, change: str) -> None:
    with Library.open(stored) as library:
        fill_journal(library)
        assert library.check() == []
        with sqlite3.connect(stored / "library.db") as db:
            db.execute(change)
        assert any("library.db" in problem for problem in library.check())


def test_sums_follow_whatever_is_done(tmp_path: Path) -> None:
    database = Database(tmp_path / "library.db")
    with database.writing() as db:
        for number in (1, 2):
            db.execute(
                "INSERT INTO photos (id, path, size, mtime_ns, state, stored) "
                "VALUES (?, ?, 0, 0, 'ready', 5)",
                (number, b"%d" % number),
            )
            db.execute(
                "INSERT INTO faces (photo, ordinal, x0, y0, x1, y1, landmarks, score, quality) "
                "VALUES (?, 0, 1, 2, 3, 4.5, x'00', 1, '')",
                (number,),
            )
        db.execute("INSERT INTO meta VALUES ('a', 'b')")
    with database.writing() as db:
        db.execute("DELETE FROM photos WHERE id = 1")  # its face goes too
        db.execute("UPDATE photos SET size = '7', taken = 3 WHERE id = 2")
        db.execute("INSERT OR REPLACE INTO meta VALUES ('a', 'c')")
    with database.reading() as db:
        assert db.execute("SELECT count(*) FROM faces").fetchone() == (1,)
        assert damaged_photos(db) == []
    journal = database.journal.read()
    assert journal is not None
    assert (journal.number, journal.damaged, journal.rows["meta"]) == (2, 0, {"a": ("a", "c")})
    database.close()


def killed_copy(library: Path, to: Path, change: Callable[[Library], object]) -> None:
    """Copy a library while it is open after a change, as a kill would leave it."""
    with Library.open(library) as opened:
        change(opened)
        shutil.copytree(library, to)


def test_commits_that_a_damaged_log_takes_back_are_noticed(stored: Path, tmp_path: Path) -> None:
    Library.open(stored).close()
    killed = tmp_path / "killed"
    killed_copy(stored, killed, lambda library: library.people.rename("Nobody", "Someone"))
    log = killed / "library.db-wal"
    assert log.stat().st_size
    assert problems_in(shutil.copytree(killed, tmp_path / "sound")) == []
    copy = tmp_path / "copy"
    for at in range(0, log.stat().st_size, 997):
        shutil.copytree(killed, copy)
        flip(copy / "library.db-wal", at)
        with Library.open(copy) as library:
            if "Someone" not in library.people:
                assert any("lost 1 stored change" in problem for problem in library.check())
                with pytest.raises(StorageError, match="Repair it"):
                    library.people.add("Eve", [Example(np.ones(128, np.float32))])
            else:
                assert library.check() == []
        shutil.rmtree(copy)
    (killed / "library.db-wal").unlink()
    assert problems_in(killed)
    (killed / "library.journal").unlink()  # nothing tells of the loss any more
    assert problems_in(killed) == []


def test_commits_of_several_writers_are_counted_in_order(tmp_path: Path) -> None:
    def write(number: int) -> None:
        database = Database(tmp_path / "library.db")
        for turn in range(10):
            with database.writing() as db:
                db.execute("INSERT INTO meta VALUES (?, '')", (f"{number} {turn}",))
        database.close()

    Database(tmp_path / "library.db").close()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    database = Database(tmp_path / "library.db")
    assert database.journal.last_number() == 40
    journal = database.journal.read()
    assert journal is not None
    assert (len(journal.rows["meta"]), journal.damaged) == (40, 0)
    database.close()


def test_a_journal_that_is_long_damaged_at_its_end_or_behind_is_written_again(tmp_path: Path) -> None:
    database = Database(tmp_path / "library.db")
    for number in range(12):
        with database.writing() as db:
            db.execute("INSERT OR REPLACE INTO meta VALUES ('a', ?)", (f"{number}" * 100_000,))
    path = database.journal.path
    before = path.read_bytes()
    database.close()
    Database(tmp_path / "library.db").close()
    whole = path.read_bytes()
    assert len(whole) < len(before) / 4
    for damaged in (b"", whole[:-1], whole + b"no line", before[: len(before) // 2]):
        path.write_bytes(damaged)
        Database(tmp_path / "library.db").close()
        assert path.read_bytes() == whole


def test_a_change_whose_entry_is_missing_is_entered_with_the_next(tmp_path: Path) -> None:
    database = Database(tmp_path / "library.db")
    for key in "abc":
        before = database.journal.path.read_bytes()
        with database.writing() as db:
            db.execute("INSERT INTO meta VALUES (?, '')", (key,))
        if key == "b":
            database.journal.path.write_bytes(before)
    journal = database.journal.read()
    assert journal is not None
    assert (journal.number, sorted(journal.rows["meta"])) == (3, ["a", "b", "c"])
    database.close()


def test_an_index_that_cannot_be_opened_is_a_problem_like_others(stored: Path) -> None:
    with Library.open(stored) as library, library._writing():
        pass
    catalog = stored / "index" / "catalog.sqlite"
    catalog.write_bytes(b"no database any more")
    with Library.open(stored) as library:
        (problem,) = library.check()
    assert str(catalog) in problem


def test_what_a_killed_run_left_in_the_index_is_no_damage_and_what_was_a_photo_is(library: Library) -> None:
    """A run adds photos to the index first: their numbers are new to the database when it is killed."""
    face = np.ones((1, library.dim), np.float32)
    (failed,) = library.photos.failures()
    with library._writing() as index:
        index.add(["10000"], face, [1])
    assert library.check() == []
    with library._writing() as index:
        index.add([failed.id], face, [1])
    assert library.check() == [f"item {failed.id} of the index is no photo"]
    library.index(workers=0)
    assert library.check() == []
