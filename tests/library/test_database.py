from __future__ import annotations

import os
import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError, StorageError, VersionError
from setnet.library import Example, Library
from setnet.library.database import Database


@pytest.mark.parametrize(("version", "remedy"), [(99, "update setnet"), (1, "into a new library")])
def test_a_library_of_another_version_is_refused(tmp_path: Path, version: int, remedy: str) -> None:
    Database(tmp_path / "library.db").close()
    with sqlite3.connect(tmp_path / "library.db") as db:
        db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(VersionError, match=rf"format {version}, .*{remedy}"):
        Database(tmp_path / "library.db")


def test_another_programs_database_and_other_files_are_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "library.db") as db:
        db.execute("PRAGMA application_id = 77")
    with pytest.raises(NotAnIndexError, match="another program"):
        Database(tmp_path / "library.db")
    (tmp_path / "other.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(NotAnIndexError):
        Database(tmp_path / "other.db")


def test_a_failed_transaction_changes_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "library.db")

    def write() -> None:
        with database.writing() as db:
            db.execute("INSERT INTO meta VALUES ('a', 'b')")
            db.execute("INSERT INTO no_such_table VALUES (1)")

    with pytest.raises(StorageError, match="no_such_table"):
        write()
    with database.reading() as db:
        assert db.execute("SELECT count(*) FROM meta").fetchone() == (0,)


def test_a_stored_change_is_no_error_where_what_follows_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_: sqlite3.Connection) -> int:
        raise sqlite3.DatabaseError("database disk image is malformed")

    database = Database(tmp_path / "library.db")
    with monkeypatch.context() as patch, database.writing() as db:
        patch.setattr("setnet.library.database.stored_number", fail)  # it is read after the commit
        db.execute("INSERT INTO meta VALUES ('a', 'b')")
    assert "library.journal is not up to date" in caplog.text
    with database.writing() as db:
        assert db.execute("SELECT value FROM meta").fetchone() == ("b",)
        db.execute("INSERT INTO meta VALUES ('c', 'd')")
    journal = database.journal.read()
    assert journal is not None
    assert journal.rows["meta"] == {"a": ("a", "b"), "c": ("c", "d")}


def test_a_database_locked_for_long_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setnet.library.database._PATIENCE_SECONDS", 0.05)
    first, second = Database(tmp_path / "library.db"), Database(tmp_path / "library.db")
    with first.writing(), pytest.raises(LockedError, match="another process"), second.writing():
        pass


def test_there_must_be_a_library_to_open_and_room_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(NotAnIndexError, match="setnet index PHOTOS"):
        Library.open(tmp_path)
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(Exception, match="folder of its own"):
        Library.create(tmp_path)
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_several_may_make_the_database_at_once(tmp_path: Path) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def make(_: int) -> int:
        database = Database(tmp_path / "library.db")
        with database.writing() as db:
            db.execute("INSERT OR IGNORE INTO meta VALUES ('a', 'b')")
        database.close()
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(make, range(16))) == 16


@pytest.mark.parametrize("made", ["database", "half an index", "index", "database and index", "journal"])
def test_a_library_whose_making_was_cut_short_is_made_again(tmp_path: Path, made: str) -> None:
    path = tmp_path / "library"
    path.mkdir()
    if "database" in made:
        Database(path / "library.db").close()
    if made == "journal":  # SQLite has one while it makes the first page
        (path / "library.db").touch()
        (path / "library.db-journal").write_bytes(b"")
    if made == "half an index":
        (path / "index" / "segments").mkdir(parents=True)
    elif "index" in made:
        SetIndex.create(path / "index", dim=3).close()
    with Library.open_or_create(path) as library:
        assert library.check() == []
        assert library.dim == 128
    with pytest.raises(InvalidInputError, match="holds a library already"):
        Library.create(path)


def test_an_index_that_lost_its_library_is_not_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "library").mkdir()
    with SetIndex.create(tmp_path / "library" / "index", dim=2) as index:
        index.add(["a"], [[1.0, 0.0]], [1])
    with pytest.raises(InvalidInputError, match="without its library"):
        Library.create(tmp_path / "library")


def test_a_new_library_is_for_its_owner_alone(tmp_path: Path) -> None:
    Library.create(tmp_path / "library").close()
    assert (tmp_path / "library").stat().st_mode & 0o777 == 0o700


def test_a_library_that_cannot_be_written_can_be_searched(
    made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    monkeypatch.setattr(os, "access", lambda *_: False)  # tests may run as root, who may write anywhere
    before = sorted(tmp_path.rglob("*"))
    with Library.open(tmp_path / "library") as library:
        photo = next(photo for photo in library.photos.all_photos() if photo.faces)
        faces = library.photos.descriptors(photo.id)
        assert library.search([faces[:1]], k=1)[0].photo.id == photo.id
        assert library.status().counts.photos == 5
        with pytest.raises(StorageError, match="read-only"):
            library.people.add("Anna", [Example(faces[0])])
        assert sorted(tmp_path.rglob("*")) == before


def test_a_database_that_is_truncated_while_it_is_read_is_an_error_and_the_process_lives(
    tmp_path: Path,
) -> None:
    database = Database(tmp_path / "library.db")
    with database.writing() as db:
        rows = [(f"{n:04}", "x" * 3000) for n in range(900)]
        db.executemany("INSERT INTO meta VALUES (?, ?)", rows)
    database.close()
    database = Database(tmp_path / "library.db")

    def read() -> None:
        with database.reading() as db:
            found = db.execute("SELECT value FROM meta ORDER BY key")
            found.fetchone()
            os.truncate(tmp_path / "library.db", 1 << 16)
            found.fetchall()

    with pytest.raises(StorageError, match="repair"):
        read()
    database.close()
