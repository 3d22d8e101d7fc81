"""A group of faces as the library returns it, with its one JSON form."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library.store.paths import as_path, shown
from setnet.library.store.photo_catalog import taken_number, taken_time
from setnet.library.store.records import corners
from setnet.library.store.tables.group_tables import FACES, face_number

UNDATED = -1e300  # when a photo of no known time was taken, for the order
_ID = re.compile(r"g([1-9]\d{0,17})")


def group_number(group_id: str) -> int | None:
    """Return the number of a group's id; None for what is no id.

    >>> group_number("g17"), group_number("G17 "), group_number("g017"), group_number("anna")
    (17, 17, None, None)
    """
    found = _ID.fullmatch(group_id.strip().lower())
    return None if found is None else int(found[1])


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
            "path": shown(self.path),
            "taken": None if self.taken is None else self.taken.isoformat(),
        }

    @property
    def place(self) -> str:
        """The face as the command line names it: `group.jpg#3` is the third from the left."""
        return f"{shown(as_path(self.path))}#{self.face + 1}"


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
        The photo's id, number and box of the face that stands for it.
    first, last
        When the earliest and the latest photo were taken.
    change
        The number of the change in the journal that led here, in what a change returns.
    """

    id: str
    name: str | None
    person: str | None
    hidden: bool
    faces: int
    photos: int
    cover: tuple[str, int, Box] | None
    first: datetime | None
    last: datetime | None
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

    def to_dict(self) -> dict[str, Any]:
        """Return the group as values that JSON can hold; `change` only after a change."""
        facts: dict[str, Any] = {
            "id": self.id,
            "name": self.name,
            "person": self.person,
            "hidden": self.hidden,
            "faces": self.faces,
            "photos": self.photos,
            "cover": None,
            "first": None if self.first is None else self.first.date().isoformat(),
            "last": None if self.last is None else self.last.date().isoformat(),
        }
        if self.cover is not None:
            photo, face, box = self.cover
            facts["cover"] = {"photo": photo, "face": face, "box": corners(box)}
        if self.change is not None:
            facts["change"] = self.change
        return facts


# In the order of `group_of`; `face_groups AS g` is joined with people and the cover's row of `faces`.
GROUP_COLUMNS = (
    "g.id, people.name, people.uid, g.hidden, g.faces, g.photos, g.first, g.last, g.cover, x0, y0, x1, y1"
)
GROUP_TABLES = (
    "face_groups AS g LEFT JOIN people ON people.id = g.person LEFT JOIN faces AS f "
    f"ON f.photo = g.cover / {FACES} AND f.ordinal = g.cover % {FACES}"
)


def group_of(row: Sequence[Any]) -> Group:
    """Return the group of a row with `GROUP_COLUMNS`."""
    number, name, uid, hidden, faces, photos, first, last, cover, *box = row
    shows = None if cover is None or None in box else (str(cover // FACES), cover % FACES, Box(*box))
    times = taken_time(first), taken_time(last)
    return Group(f"g{number}", name, uid, bool(hidden), faces, photos, shows, *times)


def unknown_group(group_id: str) -> InvalidInputError:
    """Return the error for a group that is not there."""
    return InvalidInputError(f"no group {group_id!r}: `setnet people discover --all` lists them all")
