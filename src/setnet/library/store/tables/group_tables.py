"""The tables of groups in a library's database: which faces are probably one person's.

A face is in one group at most: the row of `group_members` with its number (`face_number`). What is listed of
a group, such as how many faces it has, stands in its row: triggers mark it as `stale` when a member comes or
goes, and `refresh` brings it up to date before the transaction ends.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.faces import Box
from setnet.library.store.face_references import is_same_face

FACES = 65536  # numbers of faces for each photo, as in the checksums of `faces`

TABLES = ("face_groups", "group_members")
SCHEMA = f"""
    CREATE TABLE face_groups (
        id INTEGER PRIMARY KEY,
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


def refresh(db: sqlite3.Connection) -> None:
    """Bring what is listed of groups up to date, and delete those without faces; inside a transaction.

    What the journal says of a deleted group goes too: there is nothing left to undo.
    """
    gone = db.execute(
        "DELETE FROM face_groups WHERE stale AND NOT EXISTS "
        "(SELECT 1 FROM group_members WHERE grp = face_groups.id) RETURNING id"
    ).fetchall()
    if gone:
        db.executemany("DELETE FROM changed_rows WHERE tbl = 'face_groups' AND row = ?", gone)
        db.execute("DELETE FROM changes WHERE id NOT IN (SELECT change FROM changed_rows)")
    db.execute(_REFRESH)


def next_group(db: sqlite3.Connection, count: int) -> int:
    """Return the first of so many numbers that no group ever had."""
    (last,) = db.execute(
        "UPDATE sums SET value = ? + max(value, coalesce((SELECT max(id) FROM face_groups), 0)) "
        "WHERE name = 'face_groups' RETURNING value",
        (count,),
    ).fetchone()
    return int(last) - count + 1


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


def rejoin(
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


def problems(db: sqlite3.Connection) -> list[str]:
    """Return what groups have wrong beside their rows; for calls inside one transaction."""
    lost = db.execute(
        "SELECT count(*) FROM group_members WHERE grp NOT IN (SELECT id FROM face_groups) OR NOT EXISTS "
        f"(SELECT 1 FROM faces WHERE photo = group_members.id / {FACES} "
        f"AND ordinal = group_members.id % {FACES})"
    ).fetchone()[0]
    return [f"{lost} members of groups are no faces, or of no group"] if lost else []
