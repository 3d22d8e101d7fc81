"""What can be done to people, step by step, with everything recorded; for calls inside one transaction.

Naming many faces at once, as other programs' tags do, never changes what is said already.
"""

from __future__ import annotations

import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library.face_references import FaceReference, photo_number, reference_of
from setnet.library.paths import display_path
from setnet.library.person import (
    EXAMPLE_COLUMNS,
    Example,
    checked_name,
    example_of,
    example_values,
    find_person,
    key_of,
    new_id,
    person_name,
    verdicts_on_face,
)
from setnet.library.same_person import KnownFaces, reference_in
from setnet.library.schema import face_number
from setnet.library.undo import OWNED, Recorder

_LONGEST_NOTE = 10_000


def create_person(recorder: Recorder, name: str, uid: str | None = None, added: float | None = None) -> int:
    """Insert a person; a name that is taken is an error."""
    name = checked_name(name)
    added = time.time() if added is None else added
    return recorder.insert("people", name=name, key=key_of(name), added=added, uid=uid or new_id())


def rename_person(recorder: Recorder, person: int, new: str) -> None:
    """Give a person another name, which may be one of their aliases."""
    new = checked_name(new)
    for row, key in _aliases(recorder, person).items():
        if key == key_of(new):
            recorder.delete("aliases", row)
    recorder.update("people", person, name=new, key=key_of(new))


def set_aliases(recorder: Recorder, person: int, names: Sequence[str]) -> None:
    """Let a person be found by these other names and no others."""
    own = recorder.values("people", person, ["key"])["key"]
    wanted = {key_of(name): name for name in map(checked_name, names) if key_of(name) != own}
    for row, key in _aliases(recorder, person).items():
        if key in wanted:
            recorder.update("aliases", row, name=wanted.pop(key))
        else:
            recorder.delete("aliases", row)
    for key, name in wanted.items():
        recorder.insert("aliases", person=person, name=name, key=key)


def set_note(recorder: Recorder, person: int, note: str) -> None:
    """Keep what the user wants to remember of a person."""
    if len(note) > _LONGEST_NOTE or "\0" in note:
        raise InvalidInputError(f"a note has at most {_LONGEST_NOTE:,} characters, and no null character")
    recorder.update("people", person, note=note)


def set_cover(recorder: Recorder, person: int, number: int) -> None:
    """Let the picture of an example stand for a person; 0 takes the choice back."""
    if number:
        (example,) = own_examples(recorder, person, [number])
        if example.picture is None:
            raise InvalidInputError(f"example {number} has no picture: choose one that has")
    recorder.update("people", person, cover=number or None)


def add_examples(recorder: Recorder, person: int, examples: Iterable[Example]) -> int:
    """Insert examples; a face that the person has already counts once. Returns how many are new."""
    there, new = KnownFaces(examples_of(recorder, person)), 0
    for example in examples:
        if example not in there:
            added = time.time() if example.added is None else example.added
            recorder.insert("examples", person=person, added=added, **example_values(example))
            there.add(example)
            new += 1
    return new


def move_examples(recorder: Recorder, examples: Iterable[Example], to: int) -> None:
    """Give examples to another person, with what was confirmed of them."""
    there = KnownFaces(examples_of(recorder, to))
    for example in examples:
        assert example.number is not None
        owner = recorder.values("examples", example.number, ["person"])["person"]
        if example in there:
            recorder.delete("examples", example.number)
        else:
            recorder.update("examples", example.number, person=to)
            there.add(example)
        reference = reference_in(example)
        if reference is not None:
            for number, person, says in verdicts_on_face(recorder.db, reference):
                if person == owner and says == "yes":
                    _move_verdict(recorder, number, reference, to)


def merge_people(recorder: Recorder, into: int, other: int) -> None:
    """Give everything of another person to `into`; the other name is gone."""
    move_examples(recorder, examples_of(recorder, other), into)
    rows = recorder.db.execute(
        "SELECT id, content, x0, y0, x1, y1 FROM verdicts WHERE person = ? ORDER BY id", (other,)
    ).fetchall()

    for number, content, *box in rows:
        _move_verdict(recorder, number, FaceReference(content, Box(*box)), into)
    for table in ("aliases", "face_groups"):
        own = recorder.db.execute(f"SELECT id FROM {table} WHERE person = ? ORDER BY id", (other,)).fetchall()
        for (row,) in own:
            recorder.update(table, row, person=into)
    notes = [recorder.values("people", person, ["note"])["note"] for person in (into, other)]
    recorder.update("people", into, note="\n".join(filter(None, notes))[:_LONGEST_NOTE])
    recorder.delete("people", other)


def remove_person(recorder: Recorder, person: int) -> None:
    """Delete a person with all that is theirs; their groups are nobody's."""
    for table in OWNED:
        own = recorder.db.execute(
            f"SELECT id FROM {table} WHERE person = ? ORDER BY id", (person,)
        ).fetchall()
        for (row,) in own:
            recorder.delete(table, row)
    recorder.delete("people", person)


def confirm_face(recorder: Recorder, person: int, face: Example) -> None:
    """Keep that a face is a person: it becomes an example, and is no other person's any more."""
    take_from_others(recorder, person, face)
    if not is_confirmed(recorder, person, face):
        insert_verdict(recorder, person, face, "yes")
    add_examples(recorder, person, [face])


def is_confirmed(recorder: Recorder, person: int, face: Example) -> bool:
    """Return whether a face was confirmed as a person's."""
    return any(said[1:] == (person, "yes") for said in verdicts_on_face(recorder.db, _reference(face)))


def take_from_others(recorder: Recorder, person: int, face: Example) -> set[int]:
    """Let a face be no other person's, and not refused for this one; return whose it was."""
    reference, owners = _reference(face), set[int]()
    for number, who, says in verdicts_on_face(recorder.db, reference):
        if (who == person) != (says == "yes"):
            owners.add(who)
            recorder.delete("verdicts", number)
    for who, example in examples_at(recorder.db, reference):
        if who != person and example.number is not None:
            owners.add(who)
            recorder.delete("examples", example.number)
    return owners


def reject_face(recorder: Recorder, person: int, face: Example) -> None:
    """Keep that a face is not a person; it is no example of theirs any more."""
    reference = _reference(face)
    has_verdict = False
    for number, who, says in verdicts_on_face(recorder.db, reference):
        if who == person and says == "yes":
            recorder.delete("verdicts", number)
        elif who == person:
            has_verdict = True
    if not has_verdict:
        insert_verdict(recorder, person, face, "no")
    for who, example in examples_at(recorder.db, reference):
        if who == person and example.number is not None:
            recorder.delete("examples", example.number)


def examples_of(recorder: Recorder, person: int) -> list[Example]:
    """Return all examples of a person, oldest first."""
    rows = recorder.db.execute(
        f"SELECT {EXAMPLE_COLUMNS} FROM examples WHERE person = ? ORDER BY id", (person,)
    )
    return [example_of(row) for row in rows]


def own_examples(recorder: Recorder, person: int, numbers: Sequence[int]) -> list[Example]:
    """Return examples of a person by number; another's number is an error."""
    there = {example.number: example for example in examples_of(recorder, person)}
    name, listed = person_name(recorder.db, person), ", ".join(map(str, there)) or "none"
    if not numbers:
        raise InvalidInputError(f"say which examples of {name!r}: there are {listed}")
    for number in numbers:
        if number not in there:
            raise InvalidInputError(f"{name!r} has no example {number}: there are {listed}")
    return [there[number] for number in dict.fromkeys(numbers)]


def _reference(face: Example) -> FaceReference:
    reference = reference_in(face)
    if reference is None:
        raise InvalidInputError("only a face of a photo in the library can be confirmed or refused")
    return reference


def insert_verdict(
    recorder: Recorder, person: int, face: Example, says: str, added: float | None = None
) -> None:
    """Insert what was said of a face."""
    reference, values = _reference(face), example_values(face)
    box = {name: values[name] for name in ("x0", "y0", "x1", "y1")}
    recorder.insert(
        "verdicts",
        person=person,
        content=reference.content,
        **box,
        descriptor=values["descriptor"],
        says=says,
        added=time.time() if added is None else added,
    )


def _move_verdict(recorder: Recorder, number: int, reference: FaceReference, to: int) -> None:
    """Give a verdict to another person; of two on one face a confirmation is kept."""
    says = recorder.values("verdicts", number, ["says"])["says"]
    for other, person, said in verdicts_on_face(recorder.db, reference):
        if person != to or other == number:
            continue
        if said == says or says == "no":
            recorder.delete("verdicts", number)
            return
        recorder.delete("verdicts", other)
    recorder.update("verdicts", number, person=to)


def face_in_photo(
    db: sqlite3.Connection,
    descriptors: Callable[[str], NDArray[np.float32]],
    photo_id: str,
    face: int,
    picture: bytes | None,
) -> Example:
    """Return a face of a photo as a confirmed example; `descriptors` returns those of a photo."""
    number = photo_number(photo_id)
    content, box = reference_of(db, number, face)
    (path,) = db.execute("SELECT path FROM photos WHERE id = ?", (number,)).fetchone()
    return Example(descriptors(photo_id)[face], display_path(path), box, picture, "confirmed", content)


def examples_at(db: sqlite3.Connection, reference: FaceReference) -> list[tuple[int, Example]]:
    """Return the examples of all people that are this face, each after its person."""
    rows = db.execute(
        f"SELECT person, {EXAMPLE_COLUMNS} FROM examples WHERE content = ?", (reference.content,)
    )
    found = [(row[0], example_of(row[1:])) for row in rows]
    return [(who, e) for who, e in found if (r := reference_in(e)) is not None and r.is_same(reference)]


def _aliases(recorder: Recorder, person: int) -> dict[int, str]:
    rows = recorder.db.execute("SELECT id, key FROM aliases WHERE person = ? ORDER BY id", (person,))
    return dict(rows.fetchall())


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
        self.report.new = sum(find_person(db, members[0].name) is None for members in self.by_person.values())

    def _decide(self, said: FaceName) -> None:
        reference = reference_of(self._db, photo_number(said.photo_id), said.face)
        person = find_person(self._db, said.name)
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
            name = person_name(self._db, next(iter(owners)))
            self.report.conflicts.append(FaceConflict(said, name))
        elif is_refused:
            self.report.refused += 1
        else:
            self.report.named.append(said)
            self.by_person[who].append(said)
            self._said[reference.content].append((reference, who, self._name(said.name)))

    def _owners(self, reference: FaceReference, said: FaceName, person: int | None) -> tuple[set[int], bool]:
        """Return whose a face is: confirmed, an example, or in a group with a name; and whether refused."""
        verdicts = verdicts_on_face(self._db, reference)
        is_refused = any(verdict[1:] == (person, "no") for verdict in verdicts)
        owners = {who for _, who, says in verdicts if says == "yes"}
        owners |= {who for who, _ in examples_at(self._db, reference)}
        if owners:
            return owners, is_refused
        member = face_number(int(said.photo_id), said.face)
        row = self._db.execute(
            "SELECT person FROM group_members JOIN face_groups ON face_groups.id = grp "
            "WHERE group_members.id = ? AND person IS NOT NULL",
            (member,),
        ).fetchone()
        # That a group is this person's is a guess, which the name makes certain.
        return set() if row is None or row[0] == person else {row[0]}, is_refused

    def _name(self, name: str) -> str:
        person = find_person(self._db, name)
        return checked_name(name) if person is None else person_name(self._db, person)


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
        person = find_person(recorder.db, name)
        if person is None:
            person = create_person(recorder, name)
        rows.append(person)
        for said in members:
            place = said.photo_id, said.face
            example = face_in_photo(recorder.db, descriptors, *place, pictures.get(place))
            insert_verdict(recorder, person, example, "yes")
            if place in pictures:
                add_examples(recorder, person, [example])
    report = naming.report
    number, people = len(report.named), len(rows)
    summary = (
        f"named {number:,} face{'' if number == 1 else 's'} of {people:,} "
        f"{'person' if people == 1 else 'people'} by tags"
    )
    report.change = recorder.write("import tags", summary, rows)
    return report
