"""Gives a group the name of a saved person, or keeps that it is not theirs; each one change with undo."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library.grouping.groups.group import Group
from setnet.library.grouping.groups.groups import group_at
from setnet.library.people import lookup, mending
from setnet.library.people.example import Example
from setnet.library.people.people import People
from setnet.library.people.person import Person
from setnet.library.people.recorder import Recorder
from setnet.library.store.paths import shown
from setnet.library.store.tables import group_tables
from setnet.library.store.tables.group_tables import FACES

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


def refuse_changed(db: sqlite3.Connection, group: GroupToName) -> None:
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
    person = lookup.find(recorder.db, name)
    if person is None:
        person = mending.create(recorder, name)
    number, owners = group.group.number, _owner(recorder.db, group.group.number)
    for example in group.faces.values():
        owners |= mending.take_from_others(recorder, person, example)
    mending.add_examples(recorder, person, chosen)
    faces = list(group.faces.values())
    sure = is_sure(np.stack([example.descriptor for example in faces]))
    for example, is_known in zip(faces, sure.tolist(), strict=True):
        if not is_known and not mending.is_confirmed(recorder, person, example):
            mending.insert_verdict(recorder, person, example, "yes")
    for place, example in group.left_out.items():
        mending.refuse(recorder, person, example)
        _set_apart(recorder, place)
    recorder.update("face_groups", number, person=person, hidden=0)
    group_tables.refresh(recorder.db)
    summary = f"named {group.group.id} ({_faces(len(faces))}) {lookup.name_of(recorder.db, person)}"
    return person, recorder.write("name group", summary, {person, *owners})


def refuse_group(people: People, group_id: str, who: Person) -> Group:
    """Keep that no face of a group is a person's."""
    with people.recording() as recorder:
        person = lookup.known(recorder.db, who)
        group = group_at(recorder.db, group_id)
        for example in _examples(recorder.db, people, group).values():
            mending.refuse(recorder, person, example)
        if _owner(recorder.db, group.number) == {person}:
            recorder.update("face_groups", group.number, person=None)
        name = lookup.name_of(recorder.db, person)
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
        found[str(photo), ordinal] = Example(vector, shown(path), Box(*box), None, "group", content)
    return found


def _owner(db: sqlite3.Connection, number: int) -> set[int]:
    (person,) = db.execute("SELECT person FROM face_groups WHERE id = ?", (number,)).fetchone()
    return set() if person is None else {person}


def _set_apart(recorder: Recorder, place: Place) -> None:
    """Let a face be a group by itself; the next grouping finds who it is."""
    own = recorder.insert("face_groups")
    recorder.update("group_members", group_tables.face_number(int(place[0]), place[1]), grp=own)


def _faces(number: int) -> str:
    return "1 face" if number == 1 else f"{number:,} faces"
