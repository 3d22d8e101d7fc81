"""Suggests groups without a name as saved people's: those whose mean face is like theirs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.durable import transaction
from setnet.engine.linkage import Clusters
from setnet.library.group import STATES, Group, group_at
from setnet.library.grouping import LibraryFaces
from setnet.library.person import Person
from setnet.library.person_matcher import NamedPeople
from setnet.library.query import QueryPerson
from setnet.library.schema import face_number

if TYPE_CHECKING:
    from setnet.library.library import Library


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A group that may be a saved person's; `similarity` is the mean of its faces' to them."""

    person: str
    id: str
    group: Group
    similarity: float
    probability: float


@dataclass(frozen=True, slots=True, eq=False)
class GroupMeans:
    """The mean face of each group, as of the last grouping: its product with a vector is a mean similarity.

    Who names and refuses groups one after another changes none of these: they are read once.
    """

    state: tuple[float | None, int]
    groups: NDArray[np.int64]
    means: NDArray[np.float32]

    @classmethod
    def of(cls, library: Library, kept: GroupMeans | None) -> GroupMeans:
        """Return the means of a library's groups, those that are `kept` if they are of the last grouping."""
        state = library.groups.grouped_at, len(library.set_index)
        if kept is not None and kept.state == state:
            return kept
        with library.database.reading() as db, transaction(db, "BEGIN"):
            faces = LibraryFaces.read(db, library.set_index, library.matching.model)
            members = np.array(db.execute("SELECT id, grp FROM group_members").fetchall(), np.int64)
        rows = faces.rows_of(members.reshape(-1, 2)[:, 0])
        groups, to = np.unique(members.reshape(-1, 2)[rows >= 0, 1], return_inverse=True)
        vectors = faces.vectors[rows[rows >= 0]]
        if not len(groups):
            return cls(state, groups, vectors)
        return cls(state, groups, Clusters.of(vectors).merged(to.astype(np.int64), len(groups)).means)


class _Match(NamedTuple):
    margin: float
    group: int
    person: int
    similarity: float


def suggestions(library: Library, means: GroupMeans, person: Person | None, limit: int) -> list[Suggestion]:
    """Return the groups without a name that may be a saved person's, the most probable first.

    A group is suggested for the person whose threshold it exceeds by most; with `person`, for them alone.
    """
    wanted = [person] if person is not None else list(library.people)
    people = NamedPeople.of(library, wanted)
    uids = {someone.name: someone.id for someone in wanted}
    found = []
    with library.database.reading() as db, transaction(db, "BEGIN"):
        for match in _best(db, means, people):
            name, recogniser = people.people[match.person].name, people.recognisers[match.person]
            probability = recogniser.probability(match.similarity)
            found.append((probability, match.similarity, -match.group, name))
        return [
            Suggestion(name, uids[name], group_at(db, f"g{-group}"), similarity, probability)
            for probability, similarity, group, name in sorted(found, reverse=True)[:limit]
        ]


def _best(db: sqlite3.Connection, means: GroupMeans, people: NamedPeople) -> Iterator[_Match]:
    """Yield the best match of each group that has any."""
    rows = db.execute(f"SELECT id FROM face_groups AS g WHERE {STATES['unnamed']} AND faces > 0")
    nameless = np.isin(means.groups, np.array([row[0] for row in rows], np.int64))
    best: dict[int, _Match] = {}
    for number, (person, recogniser) in enumerate(zip(people.people, people.recognisers, strict=True)):
        similarities = means.means @ recogniser.vector
        may = nameless & (similarities >= recogniser.maybe) & ~np.isin(means.groups, _refused(db, person))
        for row in np.flatnonzero(may).tolist():
            similarity, group = float(similarities[row]), int(means.groups[row])
            match = _Match(similarity - recogniser.maybe, group, number, similarity)
            best[group] = max(best.get(group, match), match)
    yield from best.values()


def _refused(db: sqlite3.Connection, person: QueryPerson) -> list[int]:
    """Return the groups with a face that was refused for a person."""
    groups = []
    for photo, face in person.refused:
        row = db.execute(
            "SELECT grp FROM group_members WHERE id = ?", (face_number(int(photo), face),)
        ).fetchone()
        groups += [] if row is None else [row[0]]
    return groups
