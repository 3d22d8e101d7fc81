"""Names a group of faces as a saved person, rejects it, or suggests it as theirs.

Naming and rejecting are each one change with undo. The faces that then stand for the person are good ones,
spread over the group.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.durable import transaction
from setnet.engine import Clusters
from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library.grouping import LibraryFaces
from setnet.library.groups import STATES, Group, group_at
from setnet.library.paths import display_path
from setnet.library.people import People
from setnet.library.people_edits import (
    add_examples,
    create_person,
    insert_verdict,
    is_confirmed,
    reject_face,
    take_from_others,
)
from setnet.library.person import Example, Person, find_person, person_name, require_person
from setnet.library.person_matcher import NamedPeople
from setnet.library.query import QueryPerson
from setnet.library.schema import FACES, face_number, refresh_groups
from setnet.library.undo import Recorder

if TYPE_CHECKING:
    from setnet.library.library import Library

MOST_EXAMPLES = 12
_WORST = 0.5  # of the best face's quality: worse ones are no examples where there are others
_FAR = 0.2  # the share of faces least like the group, which may be somebody else's: no examples of many


def example_faces(
    vectors: NDArray[np.float32], quality: NDArray[np.float64], most: int = MOST_EXAMPLES
) -> list[int]:
    """Return the rows of faces to keep as examples, the most typical one first.

    The next one is always that which is least like those chosen, among good faces that are like the group:
    views and ages that the others do not show.

    >>> views = np.array([[1, 0], [0.9, 0.436], [0.8, 0.6], [0.99, 0.141]], np.float32)
    >>> example_faces(views, np.array([1.0, 1.0, 1.0, 0.3]), most=3)
    [1, 0, 2]
    """
    mean = quality @ vectors
    central = vectors @ (mean / max(float(np.linalg.norm(mean)), 1e-12))
    usable = quality >= _WORST * quality.max(initial=0.0)
    if usable.sum() > most:
        usable &= central >= np.quantile(central[usable], _FAR)
    rows = np.flatnonzero(usable)
    chosen = [int(rows[np.argmax((central * quality)[rows])])]
    nearest = vectors[rows] @ vectors[chosen[0]]
    while len(chosen) < min(most, len(rows)):
        gain = (1.0 - nearest) * quality[rows]
        gain[np.isin(rows, chosen)] = -1.0
        chosen.append(int(rows[np.argmax(gain)]))
        nearest = np.maximum(nearest, vectors[rows] @ vectors[chosen[-1]])
    return chosen


Place = tuple[str, int]  # the id of a photo, and the number of a face in it, from 0
IsSure = Callable[[NDArray[np.float32]], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, eq=False)
class GroupToName:
    """A group with its faces: what there is to decide before it gets a name.

    Attributes
    ----------
    faces
        Those that get the name, as examples without pictures, by place.
    left_out
        Those that are somebody else's.
    """

    group: Group
    faces: Mapping[Place, Example]
    left_out: Mapping[Place, Example]


def group_to_name(
    db: sqlite3.Connection,
    people: People,
    group_id: str,
    without: Collection[Place],
    refused: Collection[Place] = (),
) -> GroupToName:
    """Return a group's faces; one of `without` that it does not have is an error.

    Faces that were `refused` for the person before are left out too, unless all of them were.
    """
    group = group_at(db, group_id)
    faces = _examples(db, people, group)
    for place in without:
        if place not in faces:
            raise InvalidInputError(f"{group.id} has no face {place[1]} of photo {place[0]} to leave out")
    gone = set(without)
    if set(faces) - gone - set(refused):
        gone |= set(faces) & set(refused)
    if gone == set(faces):
        raise InvalidInputError(f"all faces of {group.id} are left out: nobody is left to name")
    kept = {place: face for place, face in faces.items() if place not in gone}
    return GroupToName(group, kept, {place: faces[place] for place in faces if place in gone})


def check_unchanged(db: sqlite3.Connection, group: GroupToName) -> None:
    """Raise when a group has other faces by now than it had."""
    rows = db.execute(
        "SELECT m.id FROM group_members AS m JOIN photos ON photos.id = m.id / ? AND state = 'ready' "
        "WHERE grp = ?",
        (FACES, group.group.number),
    )
    places = {(str(number // FACES), number % FACES) for (number,) in rows}
    if places != {*group.faces, *group.left_out}:
        raise InvalidInputError(f"{group.group.id} was changed a moment ago: look at its faces again")


def name_group(
    recorder: Recorder, group: GroupToName, name: str, chosen: Sequence[Example], is_sure: IsSure
) -> tuple[int, int | None]:
    """Give a group to the person of this name, new or known; return their row, and the change's number.

    `chosen` become examples. Faces that are not surely the person's (`is_sure`) are kept as confirmed, so
    that a search finds all that had the name; those left out are kept as refused.
    """
    person = find_person(recorder.db, name)
    if person is None:
        person = create_person(recorder, name)
    number, owners = group.group.number, _owner(recorder.db, group.group.number)
    for example in group.faces.values():
        owners |= take_from_others(recorder, person, example)
    add_examples(recorder, person, chosen)
    faces = list(group.faces.values())
    sure = is_sure(np.stack([example.descriptor for example in faces]))
    for example, is_known in zip(faces, sure.tolist(), strict=True):
        if not is_known and not is_confirmed(recorder, person, example):
            insert_verdict(recorder, person, example, "yes")
    for place, example in group.left_out.items():
        reject_face(recorder, person, example)
        _set_apart(recorder, place)
    recorder.update("face_groups", number, person=person, hidden=0)
    refresh_groups(recorder.db)
    summary = f"named {group.group.id} ({_faces(len(faces))}) {person_name(recorder.db, person)}"
    return person, recorder.write("name group", summary, {person, *owners})


def reject_group(people: People, group_id: str, who: Person) -> Group:
    """Keep that no face of a group is a person's."""
    with people.recording() as recorder:
        person = require_person(recorder.db, who)
        group = group_at(recorder.db, group_id)
        for example in _examples(recorder.db, people, group).values():
            reject_face(recorder, person, example)
        if _owner(recorder.db, group.number) == {person}:
            recorder.update("face_groups", group.number, person=None)
        name = person_name(recorder.db, person)
        summary = f"refused {group.id} ({_faces(group.faces)}) for {name}"
        change = recorder.write("refuse group", summary, [person])
        return group_at(recorder.db, group_id).changed(change)


def _examples(db: sqlite3.Connection, people: People, group: Group) -> dict[Place, Example]:
    """Return the faces of a group as examples without pictures."""
    rows = db.execute(
        f"SELECT photo, ordinal, x0, y0, x1, y1, path, hash FROM group_members AS m "
        f"JOIN photos ON photos.id = m.id / {FACES} AND state = 'ready' "
        f"JOIN faces ON faces.photo = photos.id AND faces.ordinal = m.id % {FACES} "
        "WHERE grp = ? ORDER BY m.id",
        (group.number,),
    ).fetchall()
    found: dict[Place, Example] = {}
    vectors: dict[int, NDArray[np.float32]] = {}
    for photo, ordinal, *box, path, content in rows:
        if photo not in vectors:
            vectors[photo] = people.descriptors_in(str(photo))
        vector = vectors[photo][ordinal]
        found[str(photo), ordinal] = Example(vector, display_path(path), Box(*box), None, "group", content)
    return found


def _owner(db: sqlite3.Connection, number: int) -> set[int]:
    (person,) = db.execute("SELECT person FROM face_groups WHERE id = ?", (number,)).fetchone()
    return set() if person is None else {person}


def _set_apart(recorder: Recorder, place: Place) -> None:
    """Let a face be a group by itself; the next grouping finds who it is."""
    own = recorder.insert("face_groups")
    recorder.update("group_members", face_number(int(place[0]), place[1]), grp=own)


def _faces(number: int) -> str:
    return "1 face" if number == 1 else f"{number:,} faces"


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A group that may be a saved person's; `similarity` is the mean of its faces' to them."""

    person: str
    id: str
    group: Group
    similarity: float
    probability: float

    def to_dict(self) -> dict[str, Any]:
        """Return the suggestion as values that JSON can hold; `id` is the person's."""
        return {
            "person": self.person,
            "id": self.id,
            "group": self.group.to_dict(),
            "similarity": round(self.similarity, 4),
            "probability": round(self.probability, 6),
        }


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
        with library._database.reading() as db, transaction(db, "BEGIN"):
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
    with library._database.reading() as db, transaction(db, "BEGIN"):
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
