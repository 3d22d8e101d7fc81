"""The groups of faces of a library: listed, hidden, named as a person's, rejected or suggested for one.

Naming and rejecting are each one change with undo. The faces that then stand for the person are good ones,
spread over the group. Groups without a name are suggested as saved people's where their mean face is like
theirs.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.durable import own_errors, transaction
from setnet.errors import InvalidInputError, TakenError, choice_error
from setnet.faces import Box
from setnet.library.examples import example_faces, mixed_warning
from setnet.library.linkage import Clusters
from setnet.library.paths import as_path, display_path
from setnet.library.people import check_name_free
from setnet.library.people_edits import (
    Place,
    add_examples,
    create_person,
    label_face,
    reject_face,
    take_from_others,
)
from setnet.library.person import (
    Example,
    Person,
    find_person,
    group_number,
    person_at,
    person_name,
    require_person,
    spelling_hints,
)
from setnet.library.person_matcher import NamedPeople
from setnet.library.photos import corners, taken_number, taken_time
from setnet.library.pictures import draw_face_if_there
from setnet.library.query import QueryPerson
from setnet.library.schema import FACES, face_number, members_in, refresh_groups
from setnet.library.undo import enter_change, recording
from setnet.wording import pluralise, utc_time

if TYPE_CHECKING:
    from setnet.library.clustering import OnProgress
    from setnet.library.grouping import GroupingReport
    from setnet.library.library import Library

IsSure = Callable[[NDArray[np.float32]], NDArray[np.bool_]]
# Faces so little above what is sure are kept as confirmed too: the more photos come, the more it takes to be.
_MARGIN = 0.05


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


def _select(db: sqlite3.Connection, condition: str, *values: object) -> list[Group]:
    """Return the groups that meet a condition on `face_groups AS g` and `people`."""
    rows = db.execute(
        "SELECT g.id, people.name, people.uid, hidden, g.faces, photos, first, last, g.cover, x0, y0, x1, y1 "
        "FROM face_groups AS g LEFT JOIN people ON people.id = g.person LEFT JOIN faces AS f "
        f"ON f.photo = g.cover / {FACES} AND f.ordinal = g.cover % {FACES} WHERE {condition}",
        values,
    )
    found = []
    for number, name, uid, hidden, faces, photos, first, last, cover, *box in rows.fetchall():
        shows = None
        if cover is not None and None not in box:
            shows = GroupCover(str(cover // FACES), cover % FACES, Box(*corners(Box(*box))))
        days = _day(first), _day(last)
        found.append(Group(f"g{number}", name, uid, bool(hidden), faces, photos, shows, *days))
    return found


def _day(taken: float | None) -> date | None:
    time = taken_time(taken)
    return None if time is None else time.date()


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
    found = _select(db, "g.id = ?", group_number(group_id))
    if not found:
        raise InvalidInputError(f"no group {group_id!r}: `setnet people discover --all` lists them all")
    return found[0]


_MEMBERS = (
    "SELECT grp, m.id, x0, y0, x1, y1, path, taken, hash FROM group_members AS m "
    f"JOIN photos ON photos.id = m.id / {FACES} AND state = 'ready' "
    f"JOIN faces ON faces.photo = photos.id AND faces.ordinal = m.id % {FACES}"
)


def _faces_in(
    db: sqlite3.Connection, number: int, limit: int | None = None, after: tuple[float, int] | None = None
) -> list[GroupFace]:
    """Return the faces of a group, the latest taken first, of those that follow the key `after`."""
    taken, face = after or (math.inf, 0)
    rows = db.execute(
        f"{_MEMBERS} WHERE grp = ?1 AND (coalesce(taken, ?2) < ?3 OR coalesce(taken, ?2) = ?3 AND m.id > ?4) "
        "ORDER BY coalesce(taken, ?2) DESC, m.id LIMIT ?5",
        (number, UNDATED, taken, face, -1 if limit is None else limit),
    ).fetchall()
    return [_member_face(row) for row in rows]


def _member_face(row: Sequence[Any]) -> GroupFace:
    """Return the face of a row of `_MEMBERS`."""
    _, number, x0, y0, x1, y1, path, taken, _ = row
    photo, face = divmod(number, FACES)
    return GroupFace(str(photo), face, Box(x0, y0, x1, y1), path, taken_time(taken))


class Groups:
    """The groups of faces of a library: found, listed by size, named, hidden; a collection by id."""

    def __init__(self, library: Library) -> None:
        self.path = library.path
        self._library = library
        self._database = library._database
        self._means: _GroupMeans | None = None

    def __contains__(self, group_id: object) -> bool:
        with self._database.reading() as db:
            return isinstance(group_id, str) and bool(_select(db, "g.id = ?", group_number(group_id)))

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
            raise choice_error("state", state, STATES)
        size, number = after or (2**62, 0)
        condition = (
            f"{STATES[state]} AND g.faces >= ?1 AND g.faces <= ?2 AND (g.faces < ?2 OR g.id > ?3) "
            "ORDER BY g.faces DESC, g.id LIMIT ?4"
        )
        with self._database.reading() as db:
            return _select(db, condition, min_faces, size, number, -1 if limit is None else limit)

    def of_photo(self, photo_id: str) -> dict[int, str]:
        """Return the ids of the groups that faces of a photo are in, by the number of the face."""
        with self._database.reading() as db:
            return {member.ordinal: f"g{member.group}" for member in members_in(db, int(photo_id))}

    def members(
        self, group_id: str, limit: int | None = None, after: tuple[float, int] | None = None
    ) -> list[GroupFace]:
        """Return the faces of a group, the latest taken first, of those that follow the key `after`."""
        with self._database.reading() as db:
            return _faces_in(db, group_at(db, group_id).number, limit, after)

    def all_members(self) -> Iterator[tuple[int, GroupFace]]:
        """Yield the faces of all groups, each after the number of its group, one group after another."""
        with self._database.reading() as db:
            for row in db.execute(f"{_MEMBERS} ORDER BY grp, m.id"):
                yield row[0], _member_face(row)

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
        return max(0, self._library.photos.finished()[1] - int(grouped))

    @property
    def grouped_at(self) -> datetime | None:
        """When faces were grouped last; None when they never were."""
        from setnet.library.grouping import last_grouping

        with self._database.reading() as db:
            at, _ = last_grouping(db)
        return utc_time(at) if at else None

    def hide(self, group_ids: Sequence[str], hidden: bool = True) -> list[Group]:
        """Keep that groups show nobody the user knows, or that they do; one change, which can be undone."""
        with recording(self._database) as db:
            groups = [group_at(db, group_id) for group_id in dict.fromkeys(group_ids)]
            for group in groups:
                db.execute("UPDATE face_groups SET hidden = ? WHERE id = ?", (hidden, group.number))
            listed = ", ".join(group.id for group in groups)
            summary = f"{'hid' if hidden else 'showed'} {listed} ({sum(g.faces for g in groups):,} faces)"
            change = enter_change(db, "hide" if hidden else "unhide", summary, ())
            return [replace(group_at(db, group.id), change=change) for group in groups]

    @own_errors
    def update(
        self,
        *,
        again: bool = False,
        progress: OnProgress | None = None,
        should_stop: Callable[[], bool] | None = None,
    ) -> GroupingReport:
        """Group the faces that are in no group yet; an index run ends with that too.

        Parameters
        ----------
        again
            Group all faces again, but those of named and hidden groups, which stay together.
        progress
            Called now and then with what is being done, how much of it is done, and of how much.
        should_stop
            Called again and again; True ends the work. The groups are then as they were, as after Ctrl-C.
        """
        from setnet.library.grouping import group_library

        library = self._library
        with library._lock_writing():
            return group_library(
                self._database,
                library.set_index,
                library._matchers.model,
                again=again,
                progress=progress,
                should_stop=should_stop,
            )

    @own_errors
    def examples_to_name(self, group_id: str, name: str, without: Collection[Place] = ()) -> list[Place]:
        """Return the faces of a group that become examples when it gets this name."""
        group = self._to_name(group_id, name, without)
        return list(self._choose_examples(group))

    @own_errors
    def name(
        self,
        group_id: str,
        name: str,
        without: Collection[Place] = (),
        if_exists: str = "ask",
        pictures: Mapping[Place, bytes | None] | None = None,
    ) -> tuple[Person, list[str]]:
        """Give a group the name of a person, new or saved; return them, and remarks for the user.

        A dozen faces of the group become examples. Faces in `without` are kept as not theirs; faces that were
        rejected for them before are left out too. One change, which can be undone.

        Parameters
        ----------
        if_exists
            `ask`, `add` or `refuse`: see `People.save`. A group that is another person's is given away only
            by `add`.
        pictures
            Small pictures of the faces that `examples_to_name` returns; made from the photos by default.
        """
        group = self._to_name(group_id, name, without)
        chosen = self._choose_examples(group)
        owner = group.group.person
        people = self._library.people
        known = people.get(name).id if name in people else None
        if owner is not None and if_exists != "add" and owner != known:
            faces = pluralise(group.group.faces, "face")
            raise TakenError(
                f"{group.group.id} is {group.group.name}'s already ({faces}): give it to {name} with "
                "if_exists 'add', or name another group",
                asdict(self._library.people.get(owner)),
            )
        check_name_free(
            self._library.people, name, list(chosen.values()), self._library.set_index.logistic, if_exists
        )
        if pictures is None:
            pictures = {
                place: draw_face_if_there(self._library.photos.get(place[0]), place[1]) for place in chosen
            }
        examples = [replace(example, picture=pictures.get(place)) for place, example in chosen.items()]
        before = self._library.people.examples(name) if name in self._library.people else []
        is_sure = self._is_sure(name, [*before, *examples])
        with recording(self._database) as db:
            check_unchanged(db, group)
            is_new = find_person(db, name) is None
            row, change = name_group(db, group, name, examples, is_sure)
            person = person_at(db, row, change)
            notes = spelling_hints(db, [person.name]) if is_new else []
        after = self._library.people.examples(person)
        return person, notes + mixed_warning(person.name, before, after, self._library.set_index.logistic)

    def _to_name(self, group_id: str, name: str, without: Collection[Place]) -> GroupToName:
        rejected = self._rejected_faces(name)
        with self._database.reading() as db:
            return group_to_name(db, self._library, group_id, without, rejected)

    def _rejected_faces(self, name: str) -> frozenset[Place]:
        """Return the faces that were rejected for a person, if there is one of this name."""
        people = self._library.people
        return people.known_faces(name).rejected if name in people else frozenset()

    def _choose_examples(self, group: GroupToName) -> dict[Place, Example]:
        """Return the faces of a group that become examples."""
        places = list(group.faces)
        photos = self._library.photos.get_many(photo for photo, _ in places)
        quality = [
            self._library._matchers.model.quality(photos[photo].faces[face].quality)
            if photo in photos
            else 0.1
            for photo, face in places
        ]
        vectors = np.stack([example.descriptor for example in group.faces.values()])
        return {places[row]: group.faces[places[row]] for row in example_faces(vectors, np.array(quality))}

    def _is_sure(self, name: str, examples: list[Example]) -> IsSure:
        """Return the function that tells which faces would surely be found with these examples."""
        rejected = self._rejected_faces(name)
        person = QueryPerson(name, np.stack([e.descriptor for e in examples]), rejected=rejected)
        matcher = self._library._matchers.matcher(person)

        def is_sure(vectors: NDArray[np.float32]) -> NDArray[np.bool_]:
            return np.asarray(vectors @ matcher.vector >= matcher.sure + _MARGIN)

        return is_sure

    @own_errors
    def reject(self, group_id: str, name: str) -> Group:
        """Keep that no face of a group is this person's: it is not suggested for them any more."""
        with recording(self._database) as db:
            person, group = require_person(db, name), group_at(db, group_id)
            for example in _examples(db, self._library, group).values():
                reject_face(db, person, example)
            if _owner(db, group.number) == {person}:
                db.execute("UPDATE face_groups SET person = NULL WHERE id = ?", (group.number,))
            faces = pluralise(group.faces, "face")
            summary = f"rejected {group.id} ({faces}) for {person_name(db, person)}"
            change = enter_change(db, "reject group", summary, [person])
            return replace(group_at(db, group_id), change=change)

    def as_person(self, group_id: str) -> QueryPerson:
        """Return a group as a person of a query: all its faces are theirs, whatever they look like."""
        with self._database.reading() as db:
            group = group_to_name(db, self._library, group_id, ())
        vectors = np.stack([example.descriptor for example in self._choose_examples(group).values()])
        return QueryPerson(group.group.id, vectors, confirmed=frozenset(group.faces))

    @own_errors
    def suggestions(self, name: str | None = None, limit: int = 20) -> list[Suggestion]:
        """Return groups without a name that may be a saved person's, the most probable first.

        To confirm one, give the group their name; else `reject` it.
        """
        person = None if name is None else self._library.people.get(name)
        self._means = _GroupMeans.of(self._library, self._means)
        return _suggest(self._library, self._means, person, limit)


@dataclass(frozen=True, slots=True, eq=False)
class GroupToName:
    """A group with its faces: what there is to decide before it gets a name."""

    group: Group
    faces: Mapping[Place, Example]  # those that get the name, as examples without pictures, by place
    left_out: Mapping[Place, Example]  # those that are somebody else's


def group_to_name(
    db: sqlite3.Connection,
    library: Library,
    group_id: str,
    without: Collection[Place],
    rejected: Collection[Place] = (),
) -> GroupToName:
    """Return a group's faces; one of `without` that it does not have is an error.

    Faces that were `rejected` for the person before are left out too, unless all of them were.
    """
    group = group_at(db, group_id)
    faces = _examples(db, library, group)
    for place in without:
        if place not in faces:
            raise InvalidInputError(f"{group.id} has no face {place[1]} of photo {place[0]} to leave out")
    gone = set(without)
    if set(faces) - gone - set(rejected):
        gone |= set(faces) & set(rejected)
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
    db: sqlite3.Connection, group: GroupToName, name: str, chosen: Sequence[Example], is_sure: IsSure
) -> tuple[int, int | None]:
    """Give a group to the person of this name, new or known; return their row, and the change's number.

    `chosen` become examples. Faces that are not surely the person's (`is_sure`) are kept as confirmed, so
    that a search finds all that had the name; those left out are kept as rejected.
    """
    person = find_person(db, name)
    if person is None:
        person = create_person(db, name)
    owners = _owner(db, group.group.number)
    for example in group.faces.values():
        owners |= take_from_others(db, person, example)
    add_examples(db, person, chosen)
    faces = list(group.faces.values())
    sure = is_sure(np.stack([example.descriptor for example in faces]))
    for example, is_known in zip(faces, sure.tolist(), strict=True):
        if not is_known:
            label_face(db, person, example, True)
    for place, example in group.left_out.items():
        reject_face(db, person, example)
        # a group by itself; the next grouping finds who it is
        (own,) = db.execute("INSERT INTO face_groups DEFAULT VALUES RETURNING id").fetchone()
        number = face_number(int(place[0]), place[1])
        db.execute("UPDATE group_members SET grp = ? WHERE id = ?", (own, number))
    db.execute("UPDATE face_groups SET person = ?, hidden = 0 WHERE id = ?", (person, group.group.number))
    refresh_groups(db, is_recorded=True)
    summary = f"named {group.group.id} ({pluralise(len(faces), 'face')}) {person_name(db, person)}"
    return person, enter_change(db, "name group", summary, {person, *owners})


def _examples(db: sqlite3.Connection, library: Library, group: Group) -> dict[Place, Example]:
    """Return the faces of a group as examples without pictures."""
    found: dict[Place, Example] = {}
    vectors: dict[str, NDArray[np.float32]] = {}
    for *row, content in db.execute(f"{_MEMBERS} WHERE grp = ? ORDER BY m.id", (group.number,)).fetchall():
        face = _member_face([*row, content])
        if face.photo_id not in vectors:
            vectors[face.photo_id] = library.photos.descriptors(face.photo_id)
        vector = vectors[face.photo_id][face.face]
        example = Example(vector, display_path(face.path), face.box, None, "group", content)
        found[face.photo_id, face.face] = example
    return found


def _owner(db: sqlite3.Connection, number: int) -> set[int]:
    (person,) = db.execute("SELECT person FROM face_groups WHERE id = ?", (number,)).fetchone()
    return set() if person is None else {person}


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A group that may be a saved person's; `similarity` is the mean of its faces' to them."""

    person: str
    id: str
    group: Group
    similarity: float
    probability: float


@dataclass(frozen=True, slots=True, eq=False)
class _GroupMeans:
    """The mean face of each group, as of the last grouping: its product with a vector is a mean similarity.

    Who names and refuses groups one after another changes none of these: they are read once.
    """

    state: tuple[datetime | None, int]
    groups: NDArray[np.int64]
    means: NDArray[np.float32]

    @classmethod
    def of(cls, library: Library, kept: _GroupMeans | None) -> _GroupMeans:
        """Return the means of a library's groups, those that are `kept` if they are of the last grouping."""
        from setnet.library.grouping import LibraryFaces

        state = library.groups.grouped_at, len(library.set_index)
        if kept is not None and kept.state == state:
            return kept
        with library._database.reading() as db, transaction(db, "BEGIN"):
            faces = LibraryFaces.read(db, library.set_index, library._matchers.model)
            members = np.array(db.execute("SELECT id, grp FROM group_members").fetchall(), np.int64)
        rows = faces.find_rows(members.reshape(-1, 2)[:, 0])
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


def _suggest(library: Library, means: _GroupMeans, person: Person | None, limit: int) -> list[Suggestion]:
    """Return the groups without a name that may be a saved person's, the most probable first.

    A group is suggested for the person whose threshold it exceeds by most; with `person`, for them alone.
    """
    people = NamedPeople.of(library, person)
    found = []
    with library._database.reading() as db, transaction(db, "BEGIN"):
        for match in _best(db, means, people):
            who, matcher = people.people[match.person], people.matchers[match.person]
            probability = matcher.probability(match.similarity)
            found.append((probability, match.similarity, -match.group, who.name, str(who.id)))
        return [
            Suggestion(name, uid, group_at(db, f"g{-group}"), similarity, probability)
            for probability, similarity, group, name, uid in sorted(found, reverse=True)[:limit]
        ]


def _best(db: sqlite3.Connection, means: _GroupMeans, people: NamedPeople) -> Iterator[_Match]:
    """Yield the best match of each group that has any."""
    rows = db.execute(f"SELECT id FROM face_groups AS g WHERE {STATES['unnamed']} AND faces > 0")
    nameless = np.isin(means.groups, np.array([row[0] for row in rows], np.int64))
    best: dict[int, _Match] = {}
    for number, (person, matcher) in enumerate(zip(people.people, people.matchers, strict=True)):
        similarities = means.means @ matcher.vector
        may = (
            nameless & (similarities >= matcher.maybe) & ~np.isin(means.groups, _rejected_groups(db, person))
        )
        for row in np.flatnonzero(may).tolist():
            similarity, group = float(similarities[row]), int(means.groups[row])
            match = _Match(similarity - matcher.maybe, group, number, similarity)
            best[group] = max(best.get(group, match), match)
    yield from best.values()


def _rejected_groups(db: sqlite3.Connection, person: QueryPerson) -> list[int]:
    """Return the groups with a face that was rejected for a person."""
    groups = []
    for photo, face in person.rejected:
        row = db.execute(
            "SELECT grp FROM group_members WHERE id = ?", (face_number(int(photo), face),)
        ).fetchone()
        groups += [] if row is None else [row[0]]
    return groups
