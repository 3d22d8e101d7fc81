"""A migration is applied in one transaction or not at all, and counts are those of the rows."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.errors import StorageError
from setnet.library import Library, schema
from setnet.library.database import Database
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.schema import FIRST_FORMAT, MIGRATIONS, Counts, read_counts
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


def count_rows(db: sqlite3.Connection) -> tuple[int, ...]:
    rows = db.execute("SELECT state, faces, taken FROM photos").fetchall()
    ready = [(faces, taken) for state, faces, taken in rows if state == "ready"]
    timed = sum(taken is not None for _, taken in ready)
    faceless, faces = sum(not faces for faces, _ in ready), sum(faces for faces, _ in ready)
    return (len(ready), faceless, faces, timed, *([s for s, *_ in rows].count(x) for x in STATES[:0:-1]))


@given(st.lists(CHANGES, max_size=4))
@settings(max_examples=examples(10), deadline=None)
def test_counts_are_those_of_the_rows_whatever_is_written(transactions: list[list[Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        database = Database(Path(folder) / "library.db")
        catalog = PhotoCatalog(database)
        for changes in transactions:
            with suppress(RuntimeError), database.writing() as db:
                for one in changes:
                    change(db, *one)
                counts = catalog.counts()  # what is not stored yet is not remembered
                assert astuple(counts)[:6] == count_rows(db)
                if changes and changes[-1][0] == "fail":
                    raise RuntimeError
            with database.reading() as db:
                assert astuple(catalog.counts())[:6] == count_rows(db)
        database.close()


def assert_kept(library: Library) -> Counts:
    counts = library.photos.counts()
    with library._database.reading() as db:
        assert astuple(counts)[:6] == count_rows(db)
    assert counts == library.status().counts
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


def test_counts_are_read_from_an_index_alone(shared: Library) -> None:
    with shared._database.reading() as db:
        statements: list[str] = []
        db.set_trace_callback(statements.append)
        try:
            read_counts(db)
        finally:
            db.set_trace_callback(None)
        plan = db.execute(f"EXPLAIN QUERY PLAN {statements[0]}").fetchall()
    assert [row[3] for row in plan] == ["SCAN photos USING COVERING INDEX photos_by_time"]
