"""The tables of a library's database, as numbered migrations, and what keeps them right.

- **Photos**: a shot of a video is a row of `photos` like any other, with a `start`. Its path is that of the
  video with the shot's times as a last part (`shot_path`), which no file can have. How many photos and faces
  there are is counted in the index `photos_by_time`, which is a small part of the table.
- **People**: `changes` is a history that can be undone (`undo`). Rows of `examples` and `labels` that a
  change removes wait for its undo in `removed_examples` and `removed_labels`; other rows are in
  `changed_rows`. So descriptors and pictures stand in these four tables and nowhere else, and are found there
  when they must be forgotten. Numbers of rows are never given twice. `tags` has people whom the user sees in
  a photo, with a face or without; `searches` has queries as JSON, with people by their ids. `forgotten_faces`
  says where faces of forgotten people are, so that they are left out whenever their photos are stored.
- **Groups**: which faces are probably one person's. A face is in one group at most: the row of
  `group_members` with its number (`face_number`). What is listed of a group, such as how many faces it has,
  stands in its row: triggers mark it as `stale` when a member comes or goes, and `refresh_groups` brings it
  up to date before the transaction ends.
- **Checksums**: `photos.checksum` is that of a photo's own rows in all tables of `PHOTO_TABLES`; what people
  typed is in the journal too (`journal`), and groups are made again from photos and people.
"""

from __future__ import annotations

import heapq
import marshal
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.durable import transaction
from setnet.errors import NotAnIndexError, VersionError
from setnet.faces import Box
from setnet.library.face_references import is_same_face

FACES = 65536  # numbers of faces for each photo, as in the checksums of `faces`

_GROUPS = f"""
    CREATE TABLE face_groups (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        person INTEGER REFERENCES people ON DELETE SET NULL,
        hidden INTEGER NOT NULL DEFAULT 0,
        faces INTEGER NOT NULL DEFAULT 0,
        photos INTEGER NOT NULL DEFAULT 0,
        first REAL,
        last REAL,
        cover INTEGER,
        stale INTEGER NOT NULL DEFAULT 1
    );
    CREATE INDEX face_groups_by_size ON face_groups (faces DESC, id);
    CREATE INDEX face_groups_by_person ON face_groups (person) WHERE person IS NOT NULL;
    CREATE INDEX face_groups_stale ON face_groups (stale) WHERE stale;
    CREATE TABLE group_members (id INTEGER PRIMARY KEY, grp INTEGER NOT NULL);
    CREATE INDEX group_members_by_group ON group_members (grp);
    CREATE TRIGGER group_members_come AFTER INSERT ON group_members BEGIN
        UPDATE face_groups SET stale = 1 WHERE id = NEW.grp AND NOT stale; END;
    CREATE TRIGGER group_members_go AFTER DELETE ON group_members BEGIN
        UPDATE face_groups SET stale = 1 WHERE id = OLD.grp AND NOT stale; END;
    CREATE TRIGGER group_members_move AFTER UPDATE OF grp ON group_members BEGIN
        UPDATE face_groups SET stale = 1 WHERE id IN (OLD.grp, NEW.grp) AND NOT stale; END;
    CREATE TRIGGER faces_leave_group AFTER DELETE ON faces BEGIN
        DELETE FROM group_members WHERE id = OLD.photo * {FACES} + OLD.ordinal; END;
"""

# Of what is known of a face without looking at it: large, surely a face, seen from the front.
_GOOD = (
    "iif(json_valid(quality), min(coalesce(json_extract(quality, '$.size'), 0), 112) * score "
    "- abs(coalesce(json_extract(quality, '$.yaw'), 0)), 0)"
)
_MEMBERS = (
    f"FROM group_members AS m JOIN photos ON photos.id = m.id / {FACES} "
    "WHERE m.grp = face_groups.id AND state = 'ready'"
)
_REFRESH = f"""
    UPDATE face_groups SET stale = 0,
        (faces, photos, first, last) =
            (SELECT count(*), count(DISTINCT photos.id), min(taken), max(taken) {_MEMBERS}),
        cover = (SELECT m.id {
    _MEMBERS.replace(
        "WHERE",
        f'''
            JOIN faces ON faces.photo = photos.id AND faces.ordinal = m.id % {FACES} WHERE''',
    )
}
            ORDER BY {_GOOD} DESC, m.id LIMIT 1)
    WHERE stale
"""


def face_number(photo: int, ordinal: int) -> int:
    """Return the number of a face among all of a library; `divmod(number, FACES)` takes it apart."""
    return photo * FACES + ordinal


def refresh_groups(db: sqlite3.Connection, *, is_recorded: bool = False) -> None:
    """Bring what is listed of groups up to date, and delete those without faces; inside a transaction.

    Unless that is recorded as part of a change, what the history says of a deleted group goes too: there is
    nothing left to undo.
    """
    gone = db.execute(
        "DELETE FROM face_groups WHERE stale AND NOT EXISTS "
        "(SELECT 1 FROM group_members WHERE grp = face_groups.id) RETURNING id"
    ).fetchall()
    if gone and not is_recorded:
        db.executemany("DELETE FROM changed_rows WHERE tbl = 'face_groups' AND row = ?", gone)
        db.execute(
            "DELETE FROM changes WHERE kind <> 'erase' AND id NOT IN (SELECT change FROM changed_rows)"
        )
    db.execute(_REFRESH)


class Member(NamedTuple):
    """A face that is in a group, before its photo is stored again."""

    group: int
    ordinal: int
    box: Box


def members_in(db: sqlite3.Connection, photo: int) -> list[Member]:
    """Return the faces of a photo that are in groups."""
    rows = db.execute(
        "SELECT grp, ordinal, x0, y0, x1, y1 FROM group_members JOIN faces "
        f"ON faces.photo = ?1 AND faces.ordinal = group_members.id - ?1 * {FACES} "
        f"WHERE group_members.id BETWEEN ?1 * {FACES} AND ?1 * {FACES} + {FACES} - 1",
        (photo,),
    )
    return [Member(group, ordinal, Box(*box)) for group, ordinal, *box in rows]


def rejoin_groups(
    db: sqlite3.Connection,
    photo: int,
    members: Iterable[Member],
    before: NDArray[np.float32] | None,
    faces: Sequence[tuple[Box, NDArray[np.float32]]],
) -> None:
    """Put faces of a photo that was stored again into the groups they were in.

    `before` has the photo's former descriptors when its file has changed: then a face must also look the
    same, as another photo may have taken its place.
    """
    for member in members:
        look = None if before is None else before[member.ordinal]
        for ordinal, (box, vector) in enumerate(faces):
            if is_same_face(member.box, box, look, vector):
                number = face_number(photo, ordinal)
                db.execute("INSERT OR REPLACE INTO group_members VALUES (?, ?)", (number, member.group))
                break


def group_problems(db: sqlite3.Connection) -> list[str]:
    """Return what groups have wrong beside their rows; for calls inside one transaction."""
    lost = db.execute(
        "SELECT count(*) FROM group_members WHERE grp NOT IN (SELECT id FROM face_groups) OR NOT EXISTS "
        f"(SELECT 1 FROM faces WHERE photo = group_members.id / {FACES} "
        f"AND ordinal = group_members.id % {FACES})"
    ).fetchone()[0]
    return [f"{lost} members of groups are no faces, or of no group"] if lost else []


@dataclass(frozen=True, slots=True)
class Counts:
    """How many photos, faces, people and folders a library has.

    `timed` photos have a known time; `shots` are those among the photos that are parts of videos.
    """

    photos: int
    without_faces: int
    faces: int
    timed: int
    failed: int
    unfinished: int
    shots: int
    people: int
    folders: int


def read_counts(db: sqlite3.Connection) -> Counts:
    """Return the numbers, from an index that has all they need: a million photos take 0.15 s."""
    ready = "FILTER (WHERE state = 'ready')"
    photos = db.execute(
        f"SELECT count(*) {ready}, count(*) FILTER (WHERE state = 'ready' AND faces = 0), "
        f"coalesce(sum(faces) {ready}, 0), count(taken) {ready}, count(*) FILTER (WHERE state = 'failed'), "
        "count(*) FILTER (WHERE state = 'unread'), count(start) FROM photos"
    ).fetchone()
    others = db.execute("SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM folders)").fetchone()
    return Counts(*photos, *others)


# What a photo has in each table: which column says whose a row is, and what its checksum covers.
PHOTO_TABLES = {
    "photos": (
        "{}id",
        "path size mtime_ns hash taken taken_from width height colour faces note external start stop best "
        "video state reason stored",
    ),
    "faces": ("{}photo", "ordinal x0 y0 x1 y1 score landmarks quality at seen track"),
}


def photo_checksums(db: sqlite3.Connection, which: str = "IS NOT NULL") -> Iterator[tuple[int, bytes]]:
    """Yield the ids of photos that meet a condition, and the checksums of what they have in all tables."""
    parts = []
    for number, (table, (key, columns)) in enumerate(PHOTO_TABLES.items()):
        key, columns = key.format(""), ", ".join(columns.split())
        parts.append(
            db.execute(f"SELECT {key}, {number}, {columns} FROM {table} WHERE {key} {which} ORDER BY 1, 3")
        )
    rows = heapq.merge(*parts, key=itemgetter(0, 1))
    for photo, own in groupby(rows, itemgetter(0)):
        # Format 2 of marshal is the same in all versions of Python
        yield photo, blake2b(marshal.dumps([*own], 2), digest_size=8).digest()


def refresh_checksums(db: sqlite3.Connection, which: str = "IS NOT NULL") -> None:
    """Give photos that meet a condition the checksums of what they have now."""
    for photo, checksum in list(photo_checksums(db, which)):
        db.execute("UPDATE photos SET checksum = ? WHERE id = ?", (checksum, photo))


def damaged_photos(db: sqlite3.Connection) -> list[int]:
    """Return the photos that are not as they were stored; for calls inside one transaction."""
    stored = dict(db.execute("SELECT id, checksum FROM photos").fetchall())
    return [photo for photo, checksum in photo_checksums(db) if stored.get(photo) != checksum]


APPLICATION_ID = 0x5E7A1B  # marks an SQLite file as a library's database

_PHOTOS = """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE folders (path BLOB PRIMARY KEY, added REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE photos (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        path BLOB NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        mtime_ns INTEGER NOT NULL,
        hash BLOB,
        taken REAL,
        taken_from TEXT,
        width INTEGER,
        height INTEGER,
        colour INTEGER,
        faces INTEGER NOT NULL DEFAULT 0,
        note TEXT,
        external TEXT UNIQUE,
        start REAL,
        stop REAL,
        best REAL,
        video BLOB,
        state TEXT NOT NULL CHECK (state IN ('ready', 'unread', 'failed')),
        reason TEXT,
        stored REAL NOT NULL,
        checksum BLOB
    );
    CREATE INDEX photos_by_hash ON photos (hash);
    CREATE INDEX photos_by_video ON photos (video) WHERE video IS NOT NULL;
    CREATE INDEX photos_not_ready ON photos (state) WHERE state <> 'ready';
    CREATE INDEX photos_by_time ON photos (taken, faces, state, start);
    CREATE TABLE faces (
        photo INTEGER NOT NULL REFERENCES photos ON DELETE CASCADE,
        ordinal INTEGER NOT NULL,
        x0 REAL NOT NULL, y0 REAL NOT NULL, x1 REAL NOT NULL, y1 REAL NOT NULL,
        score REAL NOT NULL,
        landmarks BLOB NOT NULL,
        quality TEXT NOT NULL,
        at REAL,
        seen REAL,
        track BLOB NOT NULL DEFAULT x'',
        PRIMARY KEY (photo, ordinal)
    ) WITHOUT ROWID;
"""
_PEOPLE = """
    CREATE TABLE people (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE,
        added REAL NOT NULL,
        uid TEXT NOT NULL,
        note TEXT NOT NULL DEFAULT '',
        cover INTEGER
    );
    CREATE UNIQUE INDEX people_by_uid ON people (uid);
    CREATE TABLE examples (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
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
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
        name TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE
    );
    CREATE INDEX aliases_by_person ON aliases (person);
    CREATE TABLE labels (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
        content BLOB NOT NULL,
        x0 REAL NOT NULL, y0 REAL NOT NULL, x1 REAL NOT NULL, y1 REAL NOT NULL,
        descriptor BLOB NOT NULL,
        is_match INTEGER NOT NULL CHECK (is_match IN (0, 1)),
        added REAL NOT NULL
    );
    CREATE TABLE tags (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        person INTEGER NOT NULL REFERENCES people ON DELETE CASCADE,
        content BLOB NOT NULL,
        x0 REAL, y0 REAL, x1 REAL, y1 REAL,
        added REAL NOT NULL,
        UNIQUE (person, content)
    );
    CREATE INDEX tags_by_content ON tags (content);
    CREATE TABLE searches (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        name TEXT NOT NULL,
        key TEXT NOT NULL UNIQUE,
        query TEXT NOT NULL,
        link BLOB,
        added REAL NOT NULL
    );
    CREATE TABLE forgotten_faces (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        content BLOB NOT NULL,
        x0 REAL NOT NULL, y0 REAL NOT NULL, x1 REAL NOT NULL, y1 REAL NOT NULL
    );
    CREATE INDEX labels_by_person ON labels (person);
    CREATE INDEX labels_by_content ON labels (content);
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
        change INTEGER REFERENCES changes ON DELETE CASCADE,
        tbl TEXT NOT NULL,
        row INTEGER NOT NULL,
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
    CREATE TABLE removed_labels (
        id INTEGER PRIMARY KEY,
        person INTEGER NOT NULL,
        content BLOB NOT NULL,
        x0 REAL NOT NULL, y0 REAL NOT NULL, x1 REAL NOT NULL, y1 REAL NOT NULL,
        descriptor BLOB NOT NULL,
        is_match INTEGER NOT NULL,
        added REAL NOT NULL
    );
"""
_SUMS = """
    CREATE TABLE sums (name TEXT PRIMARY KEY, value NUMERIC NOT NULL) WITHOUT ROWID;
    INSERT INTO sums VALUES
        ('commits', 0), ('journal', 0), ('purging', 0), ('grouped_at', 0), ('grouped_faces', 0);
"""


# Never edit a migration that was released: add one.
FIRST_FORMAT = 6  # what the first of the migrations makes; earlier ones were never released
MIGRATIONS: tuple[str, ...] = (_PHOTOS + _PEOPLE + _SUMS + _GROUPS,)


def migrate(db: sqlite3.Connection) -> None:
    """Bring a library's database to this version, in one transaction; nothing to do costs no lock."""
    if db.execute("PRAGMA application_id").fetchone()[0] not in (0, APPLICATION_ID):
        raise NotAnIndexError("library.db is a database of another program: choose another --library")
    latest = FIRST_FORMAT + len(MIGRATIONS) - 1
    if _version(db) == latest:
        return
    with transaction(db):
        version = _version(db)  # again: another process may have been first
        if version > latest or 0 < version < FIRST_FORMAT:
            remedy = "update setnet" if version > latest else "index the photos into a new library"
            raise VersionError(f"the library has format {version}, this setnet reads {latest}: {remedy}")
        for script in MIGRATIONS[version - FIRST_FORMAT + 1 if version else 0 :]:
            for statement in script.split(";\n"):  # a trigger has semicolons inside
                db.execute(statement)
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        db.execute(f"PRAGMA user_version = {latest}")


def schema_problems(db: sqlite3.Connection) -> list[str]:
    """Return which tables, indexes and triggers are not those of this version."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as sound:
        migrate(sound)
        expected, found = _schema(sound), _schema(db)
    return [f"{name!r} is not as it was made" for name, _ in sorted(expected ^ found, key=str)]


def _schema(db: sqlite3.Connection) -> set[tuple[str, str]]:
    rows = db.execute("SELECT name, type || tbl_name || coalesce(sql, '') FROM sqlite_master")
    return {(name, text) for name, text in rows if not name.startswith("sqlite_stat")}


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])
