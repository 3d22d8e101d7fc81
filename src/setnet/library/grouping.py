"""One grouping of a library's faces: new faces join, or all are grouped again.

What users said about faces is known beforehand: it links faces or keeps them apart, and decides which
number and whose name a cluster gets, so that groups last from one run to the next.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.durable import transaction
from setnet.engine import SetIndex
from setnet.faces import Box
from setnet.library.clustering import (
    FacesToLink,
    GroupingScores,
    OnProgress,
    group_faces,
    in_one_photo,
    join_faces,
)
from setnet.library.database import Database
from setnet.library.face_references import FaceReference, resolve_all_references
from setnet.library.linkage import CannotLink
from setnet.library.person import descriptor_from
from setnet.library.schema import FACES, face_number, refresh_groups
from setnet.library.score_calibration import ScoreCalibration

_MIN_WEIGHT = 0.05
_CHUNK = 20_000  # rows read at once


@dataclass(frozen=True, slots=True, eq=False)
class LibraryFaces:
    """The faces of a library's photos."""

    # what they are called in the database, in ascending order: see `face_number`
    numbers: NDArray[np.int64]
    vectors: NDArray[np.float32]  # (n, dim) descriptors of length 1
    # the share of its similarity that each face keeps for its size, sharpness and turn: 1 for a good one
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def read(cls, db: sqlite3.Connection, index: SetIndex, model: ScoreCalibration) -> LibraryFaces:
        """Return the faces that both the database and the index have."""
        contents = index.contents()
        photos = np.array([int(name) if name.isdecimal() else -1 for name in contents.ids], np.int64)
        starts = np.cumsum(contents.counts) - contents.counts
        order = np.argsort(photos)
        numbers, weights = _stored(db, model)
        photo, ordinal = np.divmod(numbers, FACES)
        at = np.minimum(np.searchsorted(photos[order], photo), max(len(order) - 1, 0))
        if not len(order):
            return cls(np.empty(0, np.int64), contents.elements, np.empty(0))
        item = order[at]
        there = (photos[item] == photo) & (ordinal < contents.counts[item])
        vectors = contents.elements[(starts[item] + ordinal)[there]]
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return cls(numbers[there], vectors, weights[there])

    def find_rows(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of each face by its number; -1 for one that is not there."""
        if not len(self):
            return np.full(len(numbers), -1)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self) - 1)
        return np.where(self.numbers[at] == numbers, at, -1)


def _stored(db: sqlite3.Connection, model: ScoreCalibration) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    rows = db.execute(
        f"SELECT photo * {FACES} + ordinal, quality FROM faces JOIN photos ON photos.id = photo "
        "WHERE state = 'ready' ORDER BY photo, ordinal"
    )
    numbers, weights = [np.empty(0, np.int64)], [np.empty(0)]
    while chunk := rows.fetchmany(_CHUNK):
        numbers.append(np.array([number for number, _ in chunk], np.int64))
        weights.append(np.array([_weight(text, model) for _, text in chunk]))
    return np.concatenate(numbers), np.concatenate(weights)


def _weight(quality: Any, model: ScoreCalibration) -> float:
    try:
        return max(_MIN_WEIGHT, model.quality(json.loads(quality)))
    except (TypeError, ValueError, AttributeError):  # damaged, as a check will say
        return 1.0


Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class KnownLabels:
    """What is known about the faces of a library, one entry for each; 0 says nothing."""

    group: Ints  # the group a face is in
    person: Ints  # whose group that is
    hidden: NDArray[np.bool_]  # whether that group is hidden
    label: Ints  # whose face it is by what users said: it is an example of theirs, or was confirmed
    # faces, by row, and the people they are not
    rejected_face: Ints
    rejected_person: Ints
    # examples of people that are not among the faces, such as portraits; (n, dim) at unit length
    example_person: Ints
    examples: NDArray[np.float32]

    @classmethod
    def read(cls, db: sqlite3.Connection, faces: LibraryFaces) -> KnownLabels:
        """Return what a library's database says about its faces; for calls inside one transaction."""
        group = _group_members(db, faces)
        person, hidden = _of_groups(db, group)
        label = np.zeros(len(faces), np.int64)
        outside = _label_examples(db, faces, label)
        rejected = _label_judged(db, faces, label)
        dim = faces.vectors.shape[1]
        vectors = [vector for _, vector in outside if vector.shape == (dim,) and vector.any()]
        owners = [who for who, vector in outside if vector.shape == (dim,) and vector.any()]
        return cls(
            group,
            person,
            hidden,
            label,
            np.array([row for row, _ in rejected], np.int64),
            np.array([who for _, who in rejected], np.int64),
            np.array(owners, np.int64),
            np.array([v / np.linalg.norm(v) for v in vectors], np.float32).reshape(-1, dim),
        )

    @property
    def fixed(self) -> Ints:
        """The group that each face stays in whatever it looks like; 0 where it may go elsewhere.

        These are the faces of named and hidden groups, but those that users said are somebody else's.
        """
        free = (self.label != 0) & (self.label != self.person)
        free[self.rejected_face[self.person[self.rejected_face] == self.rejected_person]] = True
        return np.where(((self.person != 0) | self.hidden) & ~free, self.group, 0)


def _group_members(db: sqlite3.Connection, faces: LibraryFaces) -> Ints:
    found = np.array(db.execute("SELECT id, grp FROM group_members").fetchall(), np.int64).reshape(-1, 2)
    rows = faces.find_rows(found[:, 0])
    group = np.zeros(len(faces), np.int64)
    group[rows[rows >= 0]] = found[rows >= 0, 1]
    return group


def _of_groups(db: sqlite3.Connection, group: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    special = db.execute(
        "SELECT id, coalesce(person, 0), hidden FROM face_groups WHERE person IS NOT NULL OR hidden"
    ).fetchall()
    highest = max(int(group.max(initial=0)), *(row[0] for row in special), 0)
    people, hidden = np.zeros(highest + 1, np.int64), np.zeros(highest + 1, bool)
    for number, person, is_hidden in special:
        people[number], hidden[number] = person, bool(is_hidden)
    return people[group], hidden[group]


def _label_examples(
    db: sqlite3.Connection, faces: LibraryFaces, label: Ints
) -> list[tuple[int, NDArray[np.float32]]]:
    """Label the faces that are examples; return the people and descriptors of the other examples."""
    rows = db.execute(
        "SELECT person, descriptor, content, x0, y0, x1, y1 FROM examples ORDER BY id"
    ).fetchall()
    outside = []
    places = _places(db, faces, [(row[2], row[3:]) for row in rows])
    for (person, descriptor, *_), found in zip(rows, places, strict=True):
        label[found] = person
        if not len(found):
            outside.append((person, descriptor_from(descriptor)))
    return outside


def _label_judged(db: sqlite3.Connection, faces: LibraryFaces, label: Ints) -> list[tuple[int, int]]:
    """Label the faces that were confirmed; return faces that were rejected, with the people they are not."""
    rows = db.execute("SELECT person, is_match, content, x0, y0, x1, y1 FROM labels ORDER BY id").fetchall()
    rejected = []
    places = _places(db, faces, [(row[2], row[3:]) for row in rows])
    for (person, is_match, *_), found in zip(rows, places, strict=True):
        if is_match:
            label[found] = person
        else:
            rejected += [(row, person) for row in found]
    return rejected


def _places(
    db: sqlite3.Connection, faces: LibraryFaces, boxes: list[tuple[bytes | None, tuple[float, ...]]]
) -> list[list[int]]:
    """Return the rows of faces by the content of their photo and their box; all copies of a photo."""
    known = [n for n, (content, box) in enumerate(boxes) if content is not None and None not in box]
    references = [FaceReference(boxes[n][0] or b"", Box(*boxes[n][1])) for n in known]
    found: list[list[int]] = [[] for _ in boxes]
    for n, places in zip(known, resolve_all_references(db, references), strict=True):
        numbers = np.array([face_number(*place) for place in places], np.int64)
        rows = faces.find_rows(numbers)
        found[n] = rows[rows >= 0].tolist()
    return found


@dataclass(frozen=True, slots=True, eq=False)
class LinkedFaces:
    """Faces of a library, then examples of people, to be grouped; and which of them are new."""

    faces: FacesToLink
    is_new: NDArray[np.bool_]


def link_known_faces(faces: LibraryFaces, known: KnownLabels, *, again: bool) -> LinkedFaces:
    """Return the faces with what is known of them; `again` gives up all groups but named and hidden ones.

    A unit is a group, or all that is known of a person beside their groups: portraits, and faces that were
    confirmed and are in no group of theirs. Units of a person have one name; a hidden group has its own, so
    that it is never a part of another.
    """
    fixed, examples = known.fixed, len(known.examples)
    is_loose = (known.person != 0) | known.hidden  # in a named group and, by what users said, should not be
    labelled = (fixed == 0) & (known.label != 0)
    kept = fixed if again else np.where(fixed > 0, fixed, np.where(is_loose, 0, known.group))
    key = np.concatenate([np.where(labelled, -known.label, kept), -known.example_person])
    values, unit = np.unique(key, return_inverse=True)
    unit = unit.astype(np.int64)
    persons = np.unique(np.concatenate([known.person, known.label, known.example_person]))
    names = _names(values, unit[: len(faces)], known, persons)
    is_new = np.concatenate([labelled | (kept == 0), np.ones(examples, bool)])
    photos = np.concatenate([faces.numbers // FACES, -1 - np.arange(examples)])
    return LinkedFaces(
        FacesToLink(
            np.concatenate([faces.vectors, known.examples]),
            np.concatenate([faces.weights, np.ones(examples)]),
            np.where(key == 0, -1, unit),
            names,
            _both(in_one_photo(photos), _cannot_link(known, key, unit, names, persons)),
        ),
        is_new,
    )


def _names(values: Ints, unit: Ints, known: KnownLabels, persons: Ints) -> NDArray[np.int32]:
    """Return the name of each unit: the place of its person among `persons`, or one of its own if hidden."""
    fixed, names = known.fixed, np.full(len(values), -1, np.int32)
    names[values < 0] = np.searchsorted(persons, -values[values < 0])
    named = np.flatnonzero((fixed > 0) & (known.person > 0))
    names[unit[named]] = np.searchsorted(persons, known.person[named])
    hidden = np.unique(unit[(fixed > 0) & known.hidden & (known.person == 0)])
    names[hidden] = len(persons) + np.arange(len(hidden))
    return names


def _cannot_link(
    known: KnownLabels, key: Ints, unit: Ints, names: NDArray[np.int32], persons: Ints
) -> CannotLink:
    """Return rejected faces, each with a face of every unit of the person that it is not."""
    units, first = np.unique(unit, return_index=True)
    has_name = (names[units] >= 0) & (key[first] != 0)
    units, first = units[has_name], first[has_name]
    one, other = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for face, person in zip(known.rejected_face, known.rejected_person, strict=True):
        at = np.searchsorted(persons, person)
        if at < len(persons) and persons[at] == person:
            theirs = first[(names[units] == at) & (unit[first] != unit[face])]
            one.append(np.full(len(theirs), face))
            other.append(theirs)
    pairs = np.concatenate(one), np.concatenate(other)
    return CannotLink(*pairs, np.full(len(pairs[0]), np.inf, np.float32))


def _both(some: CannotLink, more: CannotLink) -> CannotLink:
    return CannotLink(
        np.concatenate([some.one, more.one]),
        np.concatenate([some.other, more.other]),
        np.concatenate([some.weight, more.weight]),
    )


class GroupAssignment:
    """The groups that clusters become; what users said comes first.

    `clusters` has the cluster of each face, `claims` the person whose portraits are in a cluster. Faces of
    named and hidden groups stay where they are, and the others of their cluster come to them. Other clusters
    take over the group that has most of its faces in them, or get a new one. A face that was rejected goes by
    itself rather than to the group of a person that it is not.

    Attributes
    ----------
    group
        The group's number of each face; -1, -2 and so on for new ones.
    person
        Whose a group without a name is from now on, and whose a new one is, by number.
    """

    def __init__(self, clusters: Ints, claims: Mapping[int, int], known: KnownLabels) -> None:
        self._cluster, self._claims, self._known = clusters, claims, known
        self._fixed = known.fixed
        self.group = self._fixed.copy()
        self.person: dict[int, int] = {}
        self._new = 0
        named = np.flatnonzero(known.person)
        self._owner = dict(zip(known.group[named].tolist(), known.person[named].tolist(), strict=True))
        free = np.flatnonzero(self._fixed == 0)
        group_of = self._groups_of_clusters(free)
        self.group[free] = [group_of[cluster] for cluster in clusters[free].tolist()]
        self._gather_labelled()
        self._send_rejected_away()

    def _groups_of_clusters(self, free: Ints) -> dict[int, int]:
        """Return the group of each cluster that has free faces; the largest ones get the first numbers."""
        group_of = self._anchors()
        clusters, first, sizes = np.unique(self._cluster[free], return_index=True, return_counts=True)
        inherited = self._inherit_groups(free)
        labelled = free[self._known.label[free] > 0]  # by what users said
        labels = dict(
            zip(self._cluster[labelled].tolist(), self._known.label[labelled].tolist(), strict=True)
        )
        for at in np.lexsort((first, -sizes)).tolist():
            cluster = int(clusters[at])
            if cluster not in group_of:
                group_of[cluster] = inherited.get(cluster) or self._next()
                person = self._claims.get(cluster) or labels.get(cluster)
                if person:
                    self.person[group_of[cluster]] = person
        return group_of

    def _anchors(self) -> dict[int, int]:
        """Return the named or hidden group of which a cluster has most faces; a named one comes first."""
        rows = np.flatnonzero(self._fixed)
        best: dict[int, tuple[bool, int, int]] = {}
        for cluster, group, count in _overlaps(self._cluster[rows], self._fixed[rows]):
            rank = group in self._owner, count, -group
            best[cluster] = max(best.get(cluster, rank), rank)
        return {cluster: -rank[2] for cluster, rank in best.items()}

    def _inherit_groups(self, free: Ints) -> dict[int, int]:
        """Return which group without a name each cluster takes over.

        A group goes to the cluster with most of its faces; of several, a cluster takes the one that most come
        from.
        """
        known = self._known
        rows = free[(known.group[free] > 0) & (known.person[free] == 0) & ~known.hidden[free]]
        taken: dict[int, int] = {}
        placed: set[int] = set()
        for group, cluster, _ in _overlaps(known.group[rows], self._cluster[rows]):
            if group not in placed:
                placed.add(group)
                taken.setdefault(cluster, group)
        return taken

    def _gather_labelled(self) -> None:
        """Put confirmed faces that are elsewhere into a group of their person."""
        label = self._known.label
        for row in np.flatnonzero((self._fixed == 0) & (label > 0)).tolist():
            person = int(label[row])
            if self._person_in(int(self.group[row])) != person:
                theirs = [g for g, who in (self._owner | self.person).items() if who == person]
                group_of = min(theirs, key=lambda group: (group < 0, abs(group)), default=0) or self._next()
                self.person.setdefault(group_of, person)
                self.group[row] = group_of

    def _send_rejected_away(self) -> None:
        known = self._known
        for row, person in zip(known.rejected_face.tolist(), known.rejected_person.tolist(), strict=True):
            if self._person_in(int(self.group[row])) == person and known.label[row] != person:
                self.group[row] = self._next()

    def _person_in(self, group: int) -> int:
        return self.person.get(group) or self._owner.get(group, 0)

    def _next(self) -> int:
        self._new -= 1
        return self._new


def _overlaps(one: Ints, other: Ints) -> list[tuple[int, int, int]]:
    """Return the different pairs of two arrays and how often each comes, the most frequent first.

    >>> _overlaps(np.array([4, 5, 5]), np.array([1, 7, 7]))
    [(5, 7, 2), (4, 1, 1)]
    """
    scale = int(other.max(initial=0)) + 1
    key, first, count = np.unique(one * scale + other, return_index=True, return_counts=True)
    order = np.lexsort((first, -count))
    pairs = np.divmod(key[order], scale)
    return list(zip(pairs[0].tolist(), pairs[1].tolist(), count[order].tolist(), strict=True))


def last_grouping(db: sqlite3.Connection) -> tuple[float, int]:
    """Return when faces were grouped last (0: never), and how many there were when all were grouped again."""
    sums = dict(db.execute("SELECT name, value FROM sums").fetchall())
    return float(sums.get("grouped_at", 0)), int(sums.get("grouped_faces", 0))


# Early decisions weigh too much once there are so many times more faces than when all were grouped again.
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
    again
        Whether all faces were grouped again, but those of named and hidden groups.
    interrupted
        Whether it was stopped: the groups are as they were.
    """

    faces: int = 0
    groups: int = 0
    new_groups: int = 0
    moved: int = 0
    again: bool = False
    interrupted: bool = False
    seconds: float = 0.0


class _Stopped(Exception):  # noqa: N818 - no error: somebody asked for it
    pass


def group_library(
    database: Database,
    index: SetIndex,
    model: ScoreCalibration,
    *,
    again: bool = False,
    interim: bool = False,
    progress: OnProgress | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> GroupingReport:
    """Group the faces of a library that nobody else is writing photos to.

    People may be changed meanwhile: what users said when the result is stored is what counts. An `interim`
    grouping is one in the middle of a run, which the next one counts as none.
    """

    def say(stage: str, done: int, total: int) -> None:
        if should_stop is not None and should_stop():
            raise _Stopped
        if progress is not None:
            progress(stage, done, total)

    begun = time.monotonic()
    with database.reading() as db, transaction(db, "BEGIN"):
        _, before = last_grouping(db)
        faces = LibraryFaces.read(db, index, model)
        known = KnownLabels.read(db, faces)
    again = again or len(faces) > GROWTH * before
    expected = GroupingScores.expected(index.logistic.threshold)
    linked = link_known_faces(faces, known, again=again)
    try:
        if again:
            clusters = group_faces(linked.faces, expected, say)[0]
        else:
            clusters = join_faces(linked.faces, linked.is_new, expected, say)
    except _Stopped:
        return GroupingReport(interrupted=True)
    with database.writing() as db:
        now = KnownLabels.read(db, faces)
        assignment = GroupAssignment(clusters[: len(faces)], _claims(db, clusters[len(faces) :], known), now)
        moved, new = _store_groups(db, faces.numbers, now.group, assignment)
        if not interim:
            values = (time.time(), "grouped_at"), (len(faces) if again else before, "grouped_faces")
            db.executemany("UPDATE sums SET value = ? WHERE name = ?", values)
        (groups,) = db.execute("SELECT count(*) FROM face_groups").fetchone()
    return GroupingReport(len(faces), groups, new, moved, again, seconds=time.monotonic() - begun)


def _claims(db: sqlite3.Connection, clusters: NDArray[np.int64], known: KnownLabels) -> dict[int, int]:
    """Return the clusters that portraits are in, and whose, as far as these are still saved."""
    there = {person for (person,) in db.execute("SELECT id FROM people")}
    pairs = zip(clusters.tolist(), known.example_person.tolist(), strict=True)
    return {cluster: person for cluster, person in pairs if person in there}


def _store_groups(
    db: sqlite3.Connection, numbers: NDArray[np.int64], before: NDArray[np.int64], assignment: GroupAssignment
) -> tuple[int, int]:
    """Store which face is in which group; return how many faces and groups are new in their place."""
    new = np.unique(assignment.group[assignment.group < 0])[::-1]
    insert = "INSERT INTO face_groups (person) VALUES (?) RETURNING id"
    number_of = {
        group: int(db.execute(insert, (assignment.person.get(group),)).fetchone()[0])
        for group in new.tolist()
    }
    db.executemany(
        "UPDATE face_groups SET person = ? WHERE id = ? AND person IS NULL",
        [(person, group) for group, person in assignment.person.items() if group > 0],
    )
    moved = np.flatnonzero(assignment.group != before)
    db.executemany(
        "INSERT INTO group_members VALUES (?, ?) ON CONFLICT (id) DO UPDATE SET grp = excluded.grp",
        [
            (number, number_of.get(group, group))
            for number, group in zip(numbers[moved].tolist(), assignment.group[moved].tolist(), strict=True)
        ],
    )
    refresh_groups(db)
    return len(moved), len(new)
