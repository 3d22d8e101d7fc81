"""The tables of a library's database, as numbered migrations.

- **Photos**: a shot is a row of `photos` like any other, with a row of the same id in `shots`. Its path is
  that of the video with the shot's times as a last part (`shot_path`), which no file can have. `photo_facts`
  has a row for a photo whose date is not from its EXIF data, that was read in part, or that another program
  knows by an id of its own.
- **People**: `changes` is a journal. Rows of `examples` and `verdicts` that a change removes wait for its
  undo in `removed_examples` and `removed_verdicts`; other rows are kept as JSON in `changed_rows`. So
  descriptors and pictures stand in these four tables and nowhere else, and are found there when they must be
  forgotten.
- **Changes feed**: `item_changes` has one row for each photo and person there ever was, with the number of
  its last change; a change gives it a new number, so that whoever read up to some number finds what changed
  since behind it. Triggers keep it. `sums` has a random number that tells one feed of changes from another.
- **Groups, counts and checksums** are described in `group_tables`, `photo_counts` and `row_sums`.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing

from setnet.durable import transaction
from setnet.errors import NotAnIndexError, VersionError
from setnet.library.store.tables import group_tables, photo_counts, row_sums
from setnet.library.store.tables.group_tables import FACES

APPLICATION_ID = 0x5E7A1B  # marks an SQLite file as a library's database

_PHOTOS = f"""
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
    CREATE TABLE shots (
        id INTEGER PRIMARY KEY REFERENCES photos ON DELETE CASCADE,
        start REAL NOT NULL,
        stop REAL NOT NULL,
        best REAL NOT NULL,
        video BLOB NOT NULL
    );
    CREATE INDEX shots_by_video ON shots (video);
    CREATE TABLE shot_faces (
        id INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        seen REAL NOT NULL,
        track BLOB NOT NULL
    );
    CREATE TRIGGER faces_leave_shot AFTER DELETE ON faces BEGIN
        DELETE FROM shot_faces WHERE id = OLD.photo * {FACES} + OLD.ordinal; END;
    CREATE TABLE photo_facts (
        id INTEGER PRIMARY KEY REFERENCES photos ON DELETE CASCADE,
        taken_from TEXT,
        note TEXT,
        external TEXT
    );
    CREATE UNIQUE INDEX photo_facts_by_external ON photo_facts (external) WHERE external IS NOT NULL;
"""
_PEOPLE = """
    CREATE TABLE people (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE,
        added REAL NOT NULL,
        uid TEXT NOT NULL,
        note TEXT NOT NULL DEFAULT '',
        cover INTEGER
    );
    CREATE UNIQUE INDEX people_by_uid ON people (uid);
    CREATE TABLE examples (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
        descriptor BLOB NOT NULL,
        source BLOB,
        x0 REAL, y0 REAL, x1 REAL, y1 REAL,
        picture BLOB,
        added REAL NOT NULL,
        origin TEXT NOT NULL DEFAULT 'portrait'
            CHECK (origin IN ('portrait', 'confirmed', 'group', 'import')),
        content BLOB
    );
    CREATE INDEX examples_by_person ON examples (person);
    CREATE INDEX examples_by_source ON examples (source);
    CREATE INDEX examples_by_content ON examples (content);
    CREATE TABLE aliases (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
        name TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE
    );
    CREATE INDEX aliases_by_person ON aliases (person);
    CREATE TABLE verdicts (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
        content BLOB NOT NULL,
        x0 REAL NOT NULL, y0 REAL NOT NULL, x1 REAL NOT NULL, y1 REAL NOT NULL,
        descriptor BLOB NOT NULL,
        says TEXT NOT NULL CHECK (says IN ('yes', 'no')),
        added REAL NOT NULL
    );
    CREATE INDEX verdicts_by_person ON verdicts (person);
    CREATE INDEX verdicts_by_content ON verdicts (content);
    CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        at REAL NOT NULL,
        kind TEXT NOT NULL,
        summary TEXT NOT NULL,
        people TEXT NOT NULL,
        undoes INTEGER
    );
    CREATE TABLE changed_rows (
        id INTEGER PRIMARY KEY,
        change INTEGER NOT NULL REFERENCES changes ON DELETE CASCADE,
        tbl TEXT NOT NULL,
        row INTEGER NOT NULL,
        did TEXT NOT NULL CHECK (did IN ('insert', 'update', 'delete')),
        before TEXT,
        after TEXT
    );
    CREATE INDEX changed_rows_by_change ON changed_rows (change);
    CREATE INDEX changed_rows_by_row ON changed_rows (tbl, row);
    CREATE TABLE removed_examples (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL,
        descriptor BLOB NOT NULL,
        source BLOB,
        x0 REAL, y0 REAL, x1 REAL, y1 REAL,
        picture BLOB,
        added REAL NOT NULL,
        origin TEXT NOT NULL,
        content BLOB
    );
    CREATE INDEX removed_examples_by_source ON removed_examples (source);
    CREATE TABLE removed_verdicts (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL,
        content BLOB NOT NULL,
        x0 REAL NOT NULL, y0 REAL NOT NULL, x1 REAL NOT NULL, y1 REAL NOT NULL,
        descriptor BLOB NOT NULL,
        says TEXT NOT NULL,
        added REAL NOT NULL
    );
"""
_CHANGES_FEED = """
    CREATE TABLE item_changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        kind TEXT NOT NULL,
        item NOT NULL,
        first INTEGER
    );
    CREATE INDEX item_changes_by_item ON item_changes (kind, item);
"""
_SUMS = """
    CREATE TABLE sums (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO sums VALUES ('commits', 0), ('people', 0), ('examples', 0), ('aliases', 0), ('verdicts', 0),
        ('face_groups', 0), ('item_changes', abs(random() / 2));
"""


def _noted(kind: str, item: str) -> str:
    """Return the statements that give an item a new number.

    `item` begins with a plus: compared with a column of a type, `item_changes.item` could not be looked up
    in its index, and each change would read all the others.
    """
    earlier = f"SELECT coalesce(first, id) FROM item_changes WHERE kind = '{kind}' AND item = {item}"
    return (
        f"INSERT INTO item_changes (kind, item, first) SELECT '{kind}', {item}, ({earlier}); "
        f"DELETE FROM item_changes WHERE kind = '{kind}' AND id NOT IN "
        f"(SELECT max(id) FROM item_changes WHERE kind = '{kind}' AND item = {item}) AND item = {item};"
    )


_TRIGGERS = (
    "CREATE TRIGGER photos_noted_new AFTER INSERT ON photos WHEN NEW.state = 'ready' BEGIN "
    f"{_noted('photo', '+NEW.id')} END;\n"
    "CREATE TRIGGER photos_noted_ready AFTER UPDATE OF state ON photos "
    "WHEN NEW.state <> OLD.state AND NEW.state <> 'adding' AND (NEW.state = 'ready' OR EXISTS "
    "(SELECT 1 FROM item_changes WHERE kind = 'photo' AND item = +NEW.id)) BEGIN "
    f"{_noted('photo', '+NEW.id')} END;\n"
    "CREATE TRIGGER photos_noted_gone AFTER DELETE ON photos WHEN EXISTS "
    "(SELECT 1 FROM item_changes WHERE kind = 'photo' AND item = +OLD.id) BEGIN "
    f"{_noted('photo', '+OLD.id')} END;\n"
    "CREATE TRIGGER people_noted_new AFTER INSERT ON people BEGIN "
    f"{_noted('person', '+NEW.uid')} END;\n"
    "CREATE TRIGGER people_noted_gone AFTER DELETE ON people BEGIN "
    f"{_noted('person', '+OLD.uid')} END;\n"
    "CREATE TRIGGER people_noted_changed AFTER INSERT ON changes BEGIN "
    "INSERT INTO item_changes (kind, item, first) SELECT 'person', uid, "
    "(SELECT coalesce(first, id) FROM item_changes WHERE kind = 'person' AND item = +uid) "
    "FROM people WHERE id IN (SELECT value FROM json_each(NEW.people)) ORDER BY id; "
    "DELETE FROM item_changes WHERE kind = 'person' AND EXISTS (SELECT 1 FROM item_changes AS later "
    "WHERE later.kind = 'person' AND later.item = item_changes.item AND later.id > item_changes.id); END;\n"
)

# Never edit a migration that was released: add one.
MIGRATIONS: tuple[str, ...] = (
    _PHOTOS
    + _PEOPLE
    + _SUMS
    + group_tables.SCHEMA
    + photo_counts.SCHEMA
    + _CHANGES_FEED
    + _TRIGGERS
    + row_sums.SCHEMA,
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
            for statement in script.split(";\n"):  # a trigger has semicolons inside
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


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
