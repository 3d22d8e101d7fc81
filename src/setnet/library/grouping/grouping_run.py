"""One grouping of a library's faces: what is new joins, or all are grouped anew, and the result is stored."""

from __future__ import annotations

import sqlite3
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.durable import transaction
from setnet.engine import SetIndex
from setnet.library.grouping.grouping import group_faces
from setnet.library.grouping.homes import Homes, homes_of
from setnet.library.grouping.identities import Identities
from setnet.library.grouping.impostors import Impostors
from setnet.library.grouping.joining import join_faces
from setnet.library.grouping.last_grouping import LastGrouping
from setnet.library.grouping.library_faces import LibraryFaces
from setnet.library.grouping.progress import OnProgress
from setnet.library.grouping.units import Units, units_of
from setnet.library.recognition.probability import MatchModel
from setnet.library.store.database import Database
from setnet.library.store.tables import group_tables

# Early decisions weigh too much once there are so many times more faces than when all were grouped anew.
GROWTH = 1.5


@dataclass(frozen=True, slots=True)
class GroupingReport:
    """What a grouping did.

    Attributes
    ----------
    faces, groups
        How many there are.
    new_groups
        How many groups there were not before.
    moved
        How many faces came into a group, or from one into another.
    anew
        Whether all faces were grouped anew, but those of named and hidden groups.
    interrupted
        Whether it was stopped: the groups are as they were.
    """

    faces: int = 0
    groups: int = 0
    new_groups: int = 0
    moved: int = 0
    anew: bool = False
    interrupted: bool = False
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return asdict(self) | {"seconds": round(self.seconds, 2)}


def group_library(
    database: Database,
    index: SetIndex,
    model: MatchModel,
    *,
    anew: bool = False,
    progress: OnProgress | None = None,
) -> GroupingReport:
    """Group the faces of a library that nobody else is writing photos to.

    People may be changed meanwhile: what users said when the result is stored is what counts.
    """
    begun = time.monotonic()
    with database.reading() as db, transaction(db, "BEGIN"):
        last = LastGrouping.of(db)
        faces = LibraryFaces.read(db, index, model)
        known = Identities.read(db, faces)
    anew = anew or last is None or len(faces) > GROWTH * last.faces
    expected = Impostors.expected(index.logistic.threshold)
    clusters = _clusters(units_of(faces, known, anew=anew), expected, anew, progress)
    with database.writing() as db:
        now = Identities.read(db, faces)
        homes = homes_of(clusters[: len(faces)], _claims(db, clusters[len(faces) :], known), now)
        moved, new = _store(db, faces.numbers, now.group, homes)
        LastGrouping(time.time(), len(faces) if anew or last is None else last.faces).store(db)
        (groups,) = db.execute("SELECT count(*) FROM face_groups").fetchone()
    return GroupingReport(len(faces), groups, new, moved, anew, seconds=time.monotonic() - begun)


def _claims(db: sqlite3.Connection, clusters: NDArray[np.int64], known: Identities) -> dict[int, int]:
    """Return the clusters that portraits are in, and whose, as far as these are still saved."""
    there = {person for (person,) in db.execute("SELECT id FROM people")}
    pairs = zip(clusters.tolist(), known.example_person.tolist(), strict=True)
    return {cluster: person for cluster, person in pairs if person in there}


def _clusters(
    units: Units, expected: Impostors, anew: bool, progress: OnProgress | None
) -> NDArray[np.int64]:
    if anew:
        return group_faces(units.faces, expected, progress)[0]
    return join_faces(units.faces, units.is_new, expected, progress)


def _store(
    db: sqlite3.Connection, numbers: NDArray[np.int64], before: NDArray[np.int64], homes: Homes
) -> tuple[int, int]:
    """Store which face is in which group; return how many faces and groups are new in their place."""
    new = np.unique(homes.group[homes.group < 0])[::-1]
    first = group_tables.next_group(db, len(new)) if len(new) else 0
    number_of = {int(group): first + place for place, group in enumerate(new.tolist())}
    db.executemany(
        "INSERT INTO face_groups (id, person) VALUES (?, ?)",
        [(number, homes.person.get(group)) for group, number in number_of.items()],
    )
    db.executemany(
        "UPDATE face_groups SET person = ? WHERE id = ? AND person IS NULL",
        [(person, group) for group, person in homes.person.items() if group > 0],
    )
    moved = np.flatnonzero(homes.group != before)
    db.executemany(
        "INSERT INTO group_members VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET grp = excluded.grp",
        [
            (number, number_of.get(group, group))
            for number, group in zip(numbers[moved].tolist(), homes.group[moved].tolist(), strict=True)
        ],
    )
    group_tables.refresh(db)
    return len(moved), len(new)
