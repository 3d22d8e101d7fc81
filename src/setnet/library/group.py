"""A group of faces of a library, and how groups and their faces are read from the database."""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from typing import Any, NamedTuple

from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library.paths import as_path, display_path
from setnet.library.person import group_number
from setnet.library.photos import corners, taken_number, taken_time
from setnet.library.schema import FACES, face_number

_KEY = "grouping"  # of the table `meta`


@dataclass(frozen=True, slots=True)
class LastGrouping:
    """When faces were grouped last, in seconds since 1970, and how many there were at the last anew."""

    at: float
    faces: int

    @classmethod
    def of(cls, db: sqlite3.Connection) -> LastGrouping | None:
        """Return what the database says; None when nothing was grouped yet."""
        row = db.execute("SELECT value FROM meta WHERE key = ?", (_KEY,)).fetchone()
        try:
            return None if row is None else cls(**json.loads(row[0]))
        except (TypeError, ValueError):  # of a later setnet
            return None

    def store(self, db: sqlite3.Connection) -> None:
        """Keep it in the database."""
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_KEY, json.dumps(asdict(self))))


UNDATED = -1e300  # when a photo of no known time was taken, for the order


class GroupFace(NamedTuple):
    """A face of a group: where it is, and when its photo was taken."""

    photo_id: str
    face: int
    box: Box
    path: bytes
    taken: datetime | None

    @property
    def number(self) -> int:
        """The number of the face among all of the library."""
        return face_number(int(self.photo_id), self.face)

    @property
    def key(self) -> tuple[float, int]:
        """Where the face comes in the order of its group: the latest taken first, undated ones last."""
        taken = taken_number(self.taken)
        return UNDATED if taken is None else taken, self.number

    def to_dict(self) -> dict[str, Any]:
        """Return the face as values that JSON can hold."""
        return {
            "photo": self.photo_id,
            "face": self.face,
            "box": corners(self.box),
            "path": display_path(self.path),
            "taken": None if self.taken is None else self.taken.isoformat(),
        }

    @property
    def place(self) -> str:
        """The face as the command line names it: `group.jpg#3` is the third from the left."""
        return f"{display_path(as_path(self.path))}#{self.face + 1}"


@dataclass(frozen=True, slots=True)
class GroupCover:
    """A face of a photo: the photo's id, the number of the face in it from 0, and where it is."""

    photo: str
    face: int
    box: Box


@dataclass(frozen=True, slots=True)
class Group:
    """Faces of a library that are probably one person's.

    Attributes
    ----------
    id
        Its own for good, such as `g17`.
    name, person
        Whose group it is: the name and the id of a saved person; None as long as it has no name.
    hidden
        Whether it shows nobody the user knows.
    faces, photos
        How many faces it has, and in how many photos.
    cover
        The face that stands for it.
    first, last
        The days of the earliest and the latest photo.
    change
        The number of the change in the journal that led here, in what a change returns.
    """

    id: str
    name: str | None
    person: str | None
    hidden: bool
    faces: int
    photos: int
    cover: GroupCover | None
    first: date | None
    last: date | None
    change: int | None = None

    @property
    def number(self) -> int:
        """The number in its id."""
        return int(self.id[1:])

    @property
    def key(self) -> tuple[int, int]:
        """Where the group comes in the order of sizes."""
        return self.faces, self.number

    @property
    def state(self) -> str:
        """`hidden`, `named` or `unnamed`."""
        return "hidden" if self.hidden else "unnamed" if self.name is None else "named"

    def changed(self, change: int | None) -> Group:
        """Return the group as the result of a change."""
        return replace(self, change=change)


# In the order of `group_of`; `face_groups AS g` is joined with people and the cover's row of `faces`.
GROUP_COLUMNS = (
    "g.id, people.name, people.uid, g.hidden, g.faces, g.photos, g.first, g.last, g.cover, x0, y0, x1, y1"
)
GROUP_JOINS = (
    "face_groups AS g LEFT JOIN people ON people.id = g.person LEFT JOIN faces AS f "
    f"ON f.photo = g.cover / {FACES} AND f.ordinal = g.cover % {FACES}"
)


def group_of(row: Sequence[Any]) -> Group:
    """Return the group of a row with `GROUP_COLUMNS`."""
    number, name, uid, hidden, faces, photos, first, last, cover, *box = row
    shows = None
    if cover is not None and None not in box:
        shows = GroupCover(str(cover // FACES), cover % FACES, Box(*corners(Box(*box))))
    return Group(f"g{number}", name, uid, bool(hidden), faces, photos, shows, _day(first), _day(last))


def _day(taken: float | None) -> date | None:
    time = taken_time(taken)
    return None if time is None else time.date()


def unknown_group(group_id: str) -> InvalidInputError:
    """Return the error for a group that is not there."""
    return InvalidInputError(f"no group {group_id!r}: `setnet people discover --all` lists them all")


STATES = {
    "unnamed": "g.person IS NULL AND NOT g.hidden",
    "named": "g.person IS NOT NULL AND NOT g.hidden",
    "hidden": "g.hidden",
    "all": "1",
}


@dataclass(frozen=True, slots=True)
class GroupTotals:
    """How many groups have no name, have one, and are hidden."""

    unnamed: int
    named: int
    hidden: int


def group_at(db: sqlite3.Connection, group_id: str) -> Group:
    """Return a group; one that is not there is an error."""
    found = find_group(db, group_id)
    if found is None:
        raise unknown_group(group_id)
    return found


def find_group(db: sqlite3.Connection, group_id: str) -> Group | None:
    """Return a group; None when it is not there."""
    number = group_number(group_id)
    row = db.execute(f"SELECT {GROUP_COLUMNS} FROM {GROUP_JOINS} WHERE g.id = ?", (number,)).fetchone()
    return None if row is None else group_of(row)


MEMBERS = (
    "SELECT grp, m.id, x0, y0, x1, y1, path, taken FROM group_members AS m "
    f"JOIN photos ON photos.id = m.id / {FACES} AND state = 'ready' "
    f"JOIN faces ON faces.photo = photos.id AND faces.ordinal = m.id % {FACES}"
)


def faces_in(
    db: sqlite3.Connection, number: int, limit: int | None = None, after: tuple[float, int] | None = None
) -> list[GroupFace]:
    """Return the faces of a group, the latest taken first, of those that follow the key `after`."""
    taken, face = after or (math.inf, 0)
    rows = db.execute(
        f"{MEMBERS} WHERE grp = ?1 AND (coalesce(taken, ?2) < ?3 OR coalesce(taken, ?2) = ?3 AND m.id > ?4) "
        "ORDER BY coalesce(taken, ?2) DESC, m.id LIMIT ?5",
        (number, UNDATED, taken, face, -1 if limit is None else limit),
    ).fetchall()
    return [member_face(row) for row in rows]


def member_face(row: Sequence[Any]) -> GroupFace:
    """Return the face of a row of `MEMBERS`."""
    _, number, x0, y0, x1, y1, path, taken = row
    photo, face = divmod(number, FACES)
    return GroupFace(str(photo), face, Box(x0, y0, x1, y1), path, taken_time(taken))
