"""The groups of a library: listed by size, looked into, hidden."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from setnet.errors import one_of
from setnet.faces import Box
from setnet.library.grouping.groups.group import (
    GROUP_COLUMNS,
    GROUP_TABLES,
    UNDATED,
    Group,
    GroupFace,
    group_number,
    group_of,
    unknown_group,
)
from setnet.library.grouping.last_grouping import LastGrouping
from setnet.library.people.recorder import Recorder
from setnet.library.store.database import Database
from setnet.library.store.photo_catalog import PhotoCatalog, taken_time
from setnet.library.store.tables.group_tables import FACES

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

    def to_dict(self) -> dict[str, int]:
        """Return the numbers as values that JSON can hold."""
        return asdict(self)


class Groups:
    """The groups of faces that a library has; reading them reads no descriptor."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __contains__(self, group_id: object) -> bool:
        with self._database.reading() as db:
            return isinstance(group_id, str) and _found(db, group_id) is not None

    def get(self, group_id: str) -> Group:
        """Return a group by its id; one that is not there is an error."""
        with self._database.reading() as db:
            return group_at(db, group_id)

    def page(
        self,
        state: str = "all",
        min_faces: int = 1,
        limit: int | None = None,
        after: tuple[int, int] | None = None,
    ) -> list[Group]:
        """Return groups, the largest first, of those that follow the one with the key `after`.

        `state` is `unnamed`, `named`, `hidden` or `all`.
        """
        if state not in STATES:
            raise one_of("state", state, STATES)
        size, number = after or (2**62, 0)
        with self._database.reading() as db:
            rows = db.execute(
                f"SELECT {GROUP_COLUMNS} FROM {GROUP_TABLES} WHERE {STATES[state]} AND g.faces >= ?1 "
                "AND g.faces <= ?2 AND (g.faces < ?2 OR g.id > ?3) ORDER BY g.faces DESC, g.id LIMIT ?4",
                (min_faces, size, number, -1 if limit is None else limit),
            ).fetchall()
        return [group_of(row) for row in rows]

    def of_person(self, person_id: str) -> list[Group]:
        """Return the groups of a saved person by their id, the largest first."""
        with self._database.reading() as db:
            rows = db.execute(
                f"SELECT {GROUP_COLUMNS} FROM {GROUP_TABLES} WHERE people.uid = ? "
                "ORDER BY g.faces DESC, g.id",
                (person_id,),
            ).fetchall()
        return [group_of(row) for row in rows]

    def members(
        self, group_id: str, limit: int | None = None, after: tuple[float, int] | None = None
    ) -> list[GroupFace]:
        """Return the faces of a group, the latest taken first, of those that follow the key `after`."""
        with self._database.reading() as db:
            return faces_in(db, group_at(db, group_id).number, limit, after)

    def all_members(self) -> Iterator[tuple[int, GroupFace]]:
        """Yield the faces of all groups, each after the number of its group, one group after another."""
        with self._database.reading() as db:
            for row in db.execute(f"{_MEMBERS} ORDER BY grp, m.id"):
                yield row[0], _face(row)

    def totals(self, min_faces: int = 1) -> GroupTotals:
        """Return how many groups of so many faces or more there are, by what is known of them."""
        states = [STATES[name] for name in ("unnamed", "named", "hidden")]
        counts = ", ".join(f"count(*) FILTER (WHERE {state})" for state in states)
        with self._database.reading() as db:
            rows = db.execute(f"SELECT {counts} FROM face_groups AS g WHERE faces >= ?", (min_faces,))
            return GroupTotals(*rows.fetchone())

    @property
    def ungrouped_faces(self) -> int:
        """How many faces of the library are in no group yet."""
        with self._database.reading() as db:
            (grouped,) = db.execute("SELECT coalesce(sum(faces), 0) FROM face_groups").fetchone()
        return max(0, PhotoCatalog(self._database).counts().faces - int(grouped))

    @property
    def grouped_at(self) -> float | None:
        """When faces were grouped last, in seconds since 1970; None when they never were."""
        with self._database.reading() as db:
            last = LastGrouping.of(db)
        return None if last is None else last.at

    def hide(self, group_ids: Sequence[str], hidden: bool = True) -> list[Group]:
        """Keep that groups show nobody the user knows, or that they do; one change, which can be undone."""
        with self._database.writing() as db:
            recorder = Recorder(db)
            groups = [group_at(db, group_id) for group_id in dict.fromkeys(group_ids)]
            for group in groups:
                recorder.update("face_groups", group.number, hidden=int(hidden))
            listed = ", ".join(group.id for group in groups)
            summary = f"{'hid' if hidden else 'showed'} {listed} ({sum(g.faces for g in groups):,} faces)"
            change = recorder.write("hide" if hidden else "unhide", summary, ())
            return [group_at(db, group.id).changed(change) for group in groups]


def group_at(db: sqlite3.Connection, group_id: str) -> Group:
    """Return a group; one that is not there is an error."""
    found = _found(db, group_id)
    if found is None:
        raise unknown_group(group_id)
    return found


def _found(db: sqlite3.Connection, group_id: str) -> Group | None:
    number = group_number(group_id)
    row = db.execute(f"SELECT {GROUP_COLUMNS} FROM {GROUP_TABLES} WHERE g.id = ?", (number,)).fetchone()
    return None if row is None else group_of(row)


_MEMBERS = (
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
        f"{_MEMBERS} WHERE grp = ?1 AND (coalesce(taken, ?2) < ?3 OR coalesce(taken, ?2) = ?3 AND m.id > ?4) "
        "ORDER BY coalesce(taken, ?2) DESC, m.id LIMIT ?5",
        (number, UNDATED, taken, face, -1 if limit is None else limit),
    ).fetchall()
    return [_face(row) for row in rows]


def _face(row: Sequence[Any]) -> GroupFace:
    _, number, x0, y0, x1, y1, path, taken = row
    photo, face = divmod(number, FACES)
    return GroupFace(str(photo), face, Box(x0, y0, x1, y1), path, taken_time(taken))
