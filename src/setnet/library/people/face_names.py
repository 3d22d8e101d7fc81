"""Names many faces of photos at once, as other programs' tags do; what is said already is never changed."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.library.people import lookup, mending
from setnet.library.people.names import checked_name, key_of
from setnet.library.people.recorder import Recorder
from setnet.library.people.verdict import on_face
from setnet.library.store.face_references import FaceReference, photo_number, reference_of
from setnet.library.store.tables import group_tables

Place = tuple[str, int]  # the id of a photo, and the number of a face in it, from 0


class FaceName(NamedTuple):
    """What somebody said: the face with this number, from 0, of a photo is called so."""

    name: str
    photo_id: str
    face: int


class FaceConflict(NamedTuple):
    """A face that was called one name and is another person's, `owner`, already."""

    said: FaceName
    owner: str


@dataclass(slots=True)
class FacesNamed:
    """What became of faces and their names.

    Attributes
    ----------
    named
        Those that got their name.
    known, refused
        How many had it already, and of how many it was said before that they are not that person.
    conflicts
        Those that are somebody else's; they stay so.
    people, new
        Names of the people who got faces, as they are saved, and how many of them were not there before.
    change
        The number of the change in the journal; None when nothing was new.
    """

    named: list[FaceName] = field(default_factory=list)
    known: int = 0
    refused: int = 0
    conflicts: list[FaceConflict] = field(default_factory=list)
    people: list[str] = field(default_factory=list)
    new: int = 0
    change: int | None = None


class FaceNaming:
    """Decides what becomes of faces and their names, in the order given: of two names the first counts."""

    def __init__(self, db: sqlite3.Connection, faces: Iterable[FaceName]) -> None:
        self._db = db
        self.report = FacesNamed()
        self.by_person: dict[str, list[FaceName]] = defaultdict(list)  # by a name's key, or by id
        self._said: defaultdict[bytes, list[tuple[FaceReference, str, str]]] = defaultdict(list)
        for said in faces:
            self._decide(said)
        self.report.people = sorted(self._name(members[0].name) for members in self.by_person.values())
        self.report.new = sum(lookup.find(db, members[0].name) is None for members in self.by_person.values())

    def _decide(self, said: FaceName) -> None:
        reference = reference_of(self._db, photo_number(said.photo_id), said.face)
        person = lookup.find(self._db, said.name)
        who = f"person {person}" if person is not None else key_of(checked_name(said.name))
        for other, other_who, name in self._said[reference.content]:
            if other.is_same(reference):
                if other_who == who:
                    self.report.known += 1
                else:
                    self.report.conflicts.append(FaceConflict(said, name))
                return
        owners, is_refused = self._owners(reference, said, person)
        if person is not None and person in owners:
            self.report.known += 1
        elif owners:
            name = lookup.name_of(self._db, next(iter(owners)))
            self.report.conflicts.append(FaceConflict(said, name))
        elif is_refused:
            self.report.refused += 1
        else:
            self.report.named.append(said)
            self.by_person[who].append(said)
            self._said[reference.content].append((reference, who, self._name(said.name)))

    def _owners(self, reference: FaceReference, said: FaceName, person: int | None) -> tuple[set[int], bool]:
        """Return whose a face is: confirmed, an example, or in a group with a name; and whether refused."""
        verdicts = on_face(self._db, reference)
        is_refused = any(verdict[1:] == (person, "no") for verdict in verdicts)
        owners = {who for _, who, says in verdicts if says == "yes"}
        owners |= {who for who, _ in mending.examples_at(self._db, reference)}
        if owners:
            return owners, is_refused
        member = group_tables.face_number(int(said.photo_id), said.face)
        row = self._db.execute(
            "SELECT person FROM group_members JOIN face_groups ON face_groups.id = grp "
            "WHERE group_members.id = ? AND person IS NOT NULL",
            (member,),
        ).fetchone()
        # That a group is this person's is a guess, which the name makes certain.
        return set() if row is None or row[0] == person else {row[0]}, is_refused

    def _name(self, name: str) -> str:
        person = lookup.find(self._db, name)
        return checked_name(name) if person is None else lookup.name_of(self._db, person)


def name_faces(
    recorder: Recorder,
    faces: Iterable[FaceName],
    pictures: Mapping[Place, bytes | None],
    descriptors: Callable[[str], NDArray[np.float32]],
) -> FacesNamed:
    """Confirm faces as the people they are called, new or known, in one change that can be undone.

    Those with an entry in `pictures` become examples too.
    """
    naming = FaceNaming(recorder.db, faces)
    rows = []
    for members in naming.by_person.values():
        name = members[0].name
        person = lookup.find(recorder.db, name)
        if person is None:
            person = mending.create(recorder, name)
        rows.append(person)
        for said in members:
            place = said.photo_id, said.face
            example = mending.face_in_photo(recorder.db, descriptors, *place, pictures.get(place))
            mending.insert_verdict(recorder, person, example, "yes")
            if place in pictures:
                mending.add_examples(recorder, person, [example])
    report = naming.report
    number, people = len(report.named), len(rows)
    summary = (
        f"named {number:,} face{'' if number == 1 else 's'} of {people:,} "
        f"{'person' if people == 1 else 'people'} by tags"
    )
    report.change = recorder.write("import tags", summary, rows)
    return report
