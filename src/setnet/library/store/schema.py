"""The tables of a library's database, as numbered migrations."""

from __future__ import annotations

import sqlite3

from setnet.durable import transaction
from setnet.errors import NotAnIndexError, VersionError

__all__ = ["APPLICATION_ID", "MIGRATIONS", "migrate"]

APPLICATION_ID = 0x5E7A1B  # marks an SQLite file as a library's database

# Never edit a migration that was released: add one.
MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE folders (path BLOB PRIMARY KEY, added REAL NOT NULL, scanned REAL) WITHOUT ROWID;
    CREATE TABLE photos (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        path BLOB NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        hash BLOB,
        taken REAL,
        width INTEGER,
        height INTEGER,
        faces INTEGER NOT NULL DEFAULT 0,
        state TEXT NOT NULL CHECK (state IN ('ready', 'adding', 'removing', 'failed')),
        reason TEXT,
        stored REAL NOT NULL
    );
    CREATE INDEX photos_by_hash ON photos (hash);
    CREATE INDEX photos_not_ready ON photos (state) WHERE state <> 'ready';
    CREATE TABLE faces (
        photo INTEGER NOT NULL REFERENCES photos ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        x0 REAL NOT NULL, y0 REAL NOT NULL, x1 REAL NOT NULL, y1 REAL NOT NULL,
        landmarks BLOB NOT NULL,
        score REAL NOT NULL,
        quality TEXT NOT NULL,
        PRIMARY KEY (photo, ordinal)
    ) WITHOUT ROWID;
    CREATE TABLE people (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE,
        added REAL NOT NULL
    );
    CREATE TABLE examples (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
        descriptor BLOB NOT NULL,
        source BLOB,
        x0 REAL, y0 REAL, x1 REAL, y1 REAL,
        picture BLOB,
        added REAL NOT NULL
    );
    CREATE INDEX examples_by_person ON examples (person);
    """,
)


def migrate(db: sqlite3.Connection) -> None:
    """Bring a library's database to this version, in one transaction; nothing to do costs no lock."""
    if db.execute("PRAGMA application_id").fetchone()[0] not in (0, APPLICATION_ID):
        raise NotAnIndexError("library.db is a database of another program: choose another --library")
    if _version(db) == len(MIGRATIONS):
        return
    with transaction(db):
        version = _version(db)  # again: another process may have been first
        if version > len(MIGRATIONS):
            raise VersionError(
                f"the library has format {version}, this setnet knows up to {len(MIGRATIONS)}: update setnet"
            )
        for script in MIGRATIONS[version:]:
            for statement in script.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
