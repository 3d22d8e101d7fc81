"""The tables of a library's database, as numbered migrations."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from setnet.durable import transaction
from setnet.errors import NotAnIndexError, VersionError
from setnet.library.store.tables import (
    fact_tables,
    group_tables,
    people_tables,
    photo_counts,
    row_sums,
    shot_tables,
)

APPLICATION_ID = 0x5E7A1B  # marks an SQLite file as a library's database
_FIRST_WITH_SUMS = 3

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
    "CREATE TABLE sums (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;\n"
    "INSERT INTO sums VALUES ('commits', 0);\n",
    "DELETE FROM sums WHERE name <> 'commits';\n" + row_sums.MIGRATION,
    photo_counts.MIGRATION,
    people_tables.MIGRATION,
    group_tables.MIGRATION,
    shot_tables.MIGRATION,
    fact_tables.MIGRATION,
)
# What older databases that cannot be written show in the place of tables they do not have, by version.
_STAND_INS = {
    5: people_tables.STAND_INS,
    6: group_tables.STAND_INS,
    7: shot_tables.STAND_INS,
    8: fact_tables.STAND_INS,
}


def migrate(db: sqlite3.Connection, *, can_write: bool = True) -> bool:
    """Bring a library's database to this version, in one transaction; nothing to do costs no lock.

    Returns whether it is of this version: an older one that cannot be written is read through `stand_in`.
    """
    if db.execute("PRAGMA application_id").fetchone()[0] not in (0, APPLICATION_ID):
        raise NotAnIndexError("library.db is a database of another program: choose another --library")
    if _version(db) == len(MIGRATIONS):
        return True
    if not can_write and 0 < _version(db) < len(MIGRATIONS):
        return False
    with transaction(db):
        version = _version(db)  # again: another process may have been first
        if version > len(MIGRATIONS):
            raise VersionError(
                f"the library has format {version}, this setnet knows up to {len(MIGRATIONS)}: update setnet"
            )
        apply(db, version, len(MIGRATIONS))
        if version < _FIRST_WITH_SUMS:
            row_sums.add_up(db)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")
    return True


def apply(db: sqlite3.Connection, version: int, until: int) -> None:
    """Run the migrations that lead from one version to another; for calls inside a transaction."""
    for script in MIGRATIONS[version:until]:
        for statement in script.split(";\n"):  # a trigger has semicolons inside
            db.execute(statement)


def stand_in(db: sqlite3.Connection) -> None:
    """Show this version's tables, as far as they go, on a connection to an older database.

    The views are the connection's own and hide the tables of the same name: nothing is written.
    """
    db.execute("PRAGMA temp_store = MEMORY")
    for version, script in _STAND_INS.items():
        if version > _version(db):
            for statement in script.split(";\n"):
                db.execute(statement)


def schema_problems(db: sqlite3.Connection) -> list[str]:
    """Return which tables, indexes and triggers are not those of this version."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as sound:
        row_sums.register(sound)
        migrate(sound)
        expected, found = _schema(sound), _schema(db)
    return [f"{name!r} is not as it was made" for name, _ in sorted(expected ^ found, key=str)]


def _schema(db: sqlite3.Connection) -> set[tuple[str, str]]:
    rows = db.execute("SELECT name, type || tbl_name || coalesce(sql, '') FROM sqlite_master")
    return {(name, text) for name, text in rows if not name.startswith("sqlite_stat")}


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
