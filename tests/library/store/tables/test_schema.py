"""A migration of a later version is applied in one transaction, or not at all."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from setnet.errors import StorageError
from setnet.library import schema
from setnet.library.database import Database
from setnet.library.schema import MIGRATIONS

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
    assert tables(stored) == (1, False)
    monkeypatch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, SECOND))
    database = Database(stored)
    assert database.connection.execute("SELECT id FROM moods").fetchall() == [(7,)]
    assert database.connection.execute("SELECT value FROM meta").fetchall() == [("b",)]
    database.close()
    assert tables(stored) == (2, True)


def test_a_migration_that_fails_at_its_end_leaves_the_library_as_it_was(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = f"{SECOND}INSERT INTO nowhere VALUES (1);\n"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", (*MIGRATIONS, broken))
        with pytest.raises(StorageError, match="nowhere"):
            Database(stored)
    assert tables(stored) == (1, False)
    Database(stored).close()
