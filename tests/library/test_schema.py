"""A migration is applied in one transaction or not at all, and counts are kept with every change."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.errors import StorageError
from setnet.library import Library, schema
from setnet.library.database import Database
from setnet.library.schema import FIRST_FORMAT, MIGRATIONS, Counts, count_problems, read_counts, recount
from tests.support.soak import examples

SECOND = "CREATE TABLE moods (id INTEGER PRIMARY KEY);\nINSERT INTO moods VALUES (7);\n"


def tables(path: Path) -> tuple[int, bool]:
    """Return the version of a database, and whether it has the second migration's table."""
    with sqlite3.connect(path) as db:
        found = db.execute("SELECT count(*) FROM sqlite_master WHERE name = 'moods'").fetchone()[0]
        return db.execute("PRAGMA user_version").fetchone()[0], bool(found)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A database of this version, with a row."""
    database = Database(tmp_path / "library.db")
    with database.writing() as db:
        db.execute("INSERT INTO meta VALUES ('a', 'b')")
    database.close()
    return tmp_path / "library.db"


def test_a_library_is_brought_to_the_next_version_when_it_is_opened(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tables(stored) == (FIRST_FORMAT, False)
    monkeypatch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, SECOND))
    database = Database(stored)
    assert database.connection.execute("SELECT id FROM moods").fetchall() == [(7,)]
    assert database.connection.execute("SELECT value FROM meta").fetchall() == [("b",)]
    database.close()
    assert tables(stored) == (FIRST_FORMAT + 1, True)


def test_a_migration_that_fails_at_its_end_leaves_the_library_as_it_was(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = f"{SECOND}INSERT INTO nowhere VALUES (1);\n"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, broken))
        with pytest.raises(StorageError, match="nowhere"):
            Database(stored)
    assert tables(stored) == (FIRST_FORMAT, False)
    Database(stored).close()


STATES = ("ready", "unread", "failed")
CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["store", "mark", "delete", "replace", "recount", "fail"]),
        st.integers(0, 5),
        st.sampled_from(STATES),
        st.integers(0, 3),
        st.sampled_from([None, 1.5e9]),
    ),
    max_size=30,
)


def change(db: sqlite3.Connection, what: str, path: int, state: str, faces: int, taken: float | None) -> None:
    columns = "photos (path, size, mtime_ns, faces, taken, state, stored) VALUES (?, 1, 1, ?, ?, ?, 0)"
    row = (b"%d" % path, faces, taken, state)
    if what in ("store", "fail"):
        db.execute(
            f"INSERT INTO {columns} ON CONFLICT (path) DO UPDATE SET "
            "faces = excluded.faces, taken = excluded.taken, state = excluded.state",
            row,
        )
    elif what == "replace":
        db.execute(f"INSERT OR REPLACE INTO {columns}", row)
    elif what == "mark":
        db.execute("UPDATE photos SET state = ? WHERE path = ?", (state, row[0]))
    elif what == "recount":
        db.execute("UPDATE photos SET faces = ?, taken = ? WHERE path <> ?", (faces, taken, row[0]))
    else:
        db.execute("DELETE FROM photos WHERE path = ?", row[:1])


@given(st.lists(CHANGES, max_size=4))
@settings(max_examples=examples(10), deadline=None)
def test_kept_numbers_are_those_of_counting_whatever_is_written(transactions: list[list[Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "library.db")
        for changes in transactions:
            try:
                with database.writing() as db:
                    for one in changes:
                        change(db, *one)
                    if changes and changes[-1][0] == "fail":
                        raise RuntimeError  # what is taken back is not counted either
            except RuntimeError:
                pass
            with database.reading() as db:
                assert read_counts(db) == recount(db)
                assert count_problems(db) == []
        database.close()


def assert_kept(library: Library) -> Counts:
    with library.database.reading() as db:
        counts = read_counts(db)
        assert counts == recount(db) == library.photos.counts() == library.status().counts
    return counts


def test_counts_follow_indexing_failing_forgetting_and_people(
    library: Library, photos: Path, portrait: Callable[[str], str]
) -> None:
    first = assert_kept(library)
    assert (first.photos, first.failed, first.unfinished, first.people) == (5, 1, 0, 0)
    (photos / "new.jpg").write_bytes(Path(portrait("P001")).read_bytes())
    library.index(workers=0)
    more = assert_kept(library)
    assert (more.photos, more.faces) == (6, first.faces + 1)
    (photos / "new.jpg").write_bytes(b"no photo any more")
    library.index(workers=0)
    assert assert_kept(library).failed == 2
    library.people.add_photos("Ann", [portrait("P001")])
    library.forget([photos / "2016"])
    with Library.open(library.path) as again:
        last = assert_kept(again)
    assert last.photos < 5
    assert last.people == 1


def test_a_wrong_number_is_found_by_the_check_and_repaired(made: Any, tmp_path: Path) -> None:
    place = tmp_path / "library"
    shutil.copytree(made.library, place)
    with sqlite3.connect(place / "library.db") as db:
        db.execute("UPDATE photo_counts SET faces = faces + 1 WHERE state = 'ready'")
    with Library.open(place) as library:
        (problem,) = library.check()
        assert "'ready' photos are counted as" in problem
    Library.repair(place)
    with Library.open(place) as library:
        assert library.check() == []
        assert_kept(library)


def test_counts_are_read_without_looking_at_the_photos(shared: Library) -> None:
    statements: list[str] = []
    with shared.database.reading() as db:
        db.set_trace_callback(statements.append)
        try:
            shared.photos.counts()
            assert statements
            assert not any("FROM photos" in text or "FROM faces" in text for text in statements)
            statements.clear()
            recount(db)  # the trace sees what it should
            assert any("FROM photos" in text for text in statements)
        finally:
            db.set_trace_callback(None)


@pytest.mark.parametrize("taken", [None, 1.5e9])
def test_photos_with_a_known_time_are_counted(tmp_path: Path, taken: float | None) -> None:
    database = Database(tmp_path / "library.db")
    with database.writing() as db:
        change(db, "store", 1, "ready", 2, taken)
        assert read_counts(db).timed == (taken is not None)
    database.close()
