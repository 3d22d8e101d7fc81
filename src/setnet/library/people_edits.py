"""What can be done to people, step by step, with everything recorded; for calls inside one transaction.

Naming many faces at once, as other programs' tags do, never changes what is said already.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library.examples import KnownFaces, reference_in
from setnet.library.face_references import FaceReference, photo_number, refer_to_face, resolve_references
from setnet.library.paths import display_path
from setnet.library.person import (
    EXAMPLE_COLUMNS,
    Example,
    checked_name,
    descriptor_from,
    example_values,
    find_person,
    labels_on_face,
    name_key,
    new_id,
    parse_example,
    person_name,
    read_examples,
    spelling_hints,
)
from setnet.library.schema import FACES, face_number
from setnet.library.undo import bring_back, check_name_free, enter_change

_LONGEST_NOTE = 10_000
_MAX_COMPARED = 100  # faces of a group


def create_person(
    db: sqlite3.Connection, name: str, uid: str | None = None, added: float | None = None
) -> int:
    """Insert a person; a name that is taken is an error."""
    name = checked_name(name)
    check_name_free(db, name, name_key(name))
    added = time.time() if added is None else added
    return insert_row(db, "people", name=name, key=name_key(name), added=added, uid=uid or new_id())


def insert_row(db: sqlite3.Connection, table: str, **values: Any) -> int:
    """Insert a row under a number that no row of its table ever had; return that."""
    marks = ", ".join("?" * len(values))
    statement = f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks}) RETURNING id"
    return int(db.execute(statement, [*values.values()]).fetchone()[0])


def delete_row(db: sqlite3.Connection, table: str, row: int) -> None:
    """Delete a row with what belongs to it."""
    db.execute(f"DELETE FROM {table} WHERE id = ?", (row,))


def rename_person(db: sqlite3.Connection, person: int, new: str) -> None:
    """Give a person another name, which may be one of their aliases."""
    new = checked_name(new)
    db.execute("DELETE FROM aliases WHERE person = ? AND key = ?", (person, name_key(new)))
    check_name_free(db, new, name_key(new), "people", person)
    db.execute("UPDATE people SET name = ?, key = ? WHERE id = ?", (new, name_key(new), person))


def set_aliases(db: sqlite3.Connection, person: int, names: Sequence[str]) -> None:
    """Let a person be found by these other names and no others."""
    (own,) = db.execute("SELECT key FROM people WHERE id = ?", (person,)).fetchone()
    new_names = {name_key(name): name for name in map(checked_name, names) if name_key(name) != own}
    there = db.execute("SELECT id, key FROM aliases WHERE person = ? ORDER BY id", (person,)).fetchall()
    for row, key in there:
        if key in new_names:
            db.execute("UPDATE aliases SET name = ? WHERE id = ?", (new_names.pop(key), row))
        else:
            delete_row(db, "aliases", row)
    for key, name in new_names.items():
        check_name_free(db, name, key)
        insert_row(db, "aliases", person=person, name=name, key=key)


def set_note(db: sqlite3.Connection, person: int, note: str) -> None:
    """Keep what the user wants to remember of a person."""
    if len(note) > _LONGEST_NOTE or "\0" in note:
        raise InvalidInputError(f"a note has at most {_LONGEST_NOTE:,} characters, and no null character")
    db.execute("UPDATE people SET note = ? WHERE id = ?", (note, person))


def set_cover(db: sqlite3.Connection, person: int, number: int) -> None:
    """Let the picture of an example stand for a person; 0 takes the choice back."""
    if number:
        (example,) = own_examples(db, person, [number])
        if example.picture is None:
            raise InvalidInputError(f"example {number} has no picture: choose one that has")
    db.execute("UPDATE people SET cover = ? WHERE id = ?", (number or None, person))


def add_examples(db: sqlite3.Connection, person: int, examples: Iterable[Example]) -> int:
    """Insert examples; a face that the person has already counts once. Returns how many are new."""
    there, new = KnownFaces(read_examples(db, person)), 0
    for example in examples:
        if example not in there:
            added = time.time() if example.added is None else example.added
            insert_row(db, "examples", person=person, added=added, **example_values(example))
            there.add(example)
            new += 1
    return new


def move_examples(db: sqlite3.Connection, examples: Iterable[Example], to: int) -> None:
    """Give examples to another person, with what was confirmed of them."""
    there = KnownFaces(read_examples(db, to))
    for example in examples:
        assert example.number is not None
        (owner,) = db.execute("SELECT person FROM examples WHERE id = ?", (example.number,)).fetchone()
        if example in there:
            delete_row(db, "examples", example.number)
        else:
            _give(db, "examples", example.number, to)
            there.add(example)
        reference = reference_in(example)
        if reference is not None:
            for number, person, is_match in labels_on_face(db, reference):
                if person == owner and is_match:
                    _move_label(db, number, reference, is_match, to)


def _give(db: sqlite3.Connection, table: str, row: int, to: int) -> None:
    db.execute(f"UPDATE {table} SET person = ? WHERE id = ?", (to, row))


def merge_people(db: sqlite3.Connection, into: int, other: int) -> None:
    """Give everything of another person to `into`; the other name is gone."""
    move_examples(db, read_examples(db, other), into)
    rows = db.execute(
        "SELECT id, is_match, content, x0, y0, x1, y1 FROM labels WHERE person = ? ORDER BY id", (other,)
    ).fetchall()
    for number, is_match, content, *box in rows:
        _move_label(db, number, FaceReference(content, Box(*box)), bool(is_match), into)
    theirs = db.execute(
        "SELECT id, content, x0, y0, x1, y1 FROM labels WHERE person = ? AND NOT is_match", (into,)
    ).fetchall()
    for number, content, *box in theirs:  # what was not the one is an example of the other
        if any(who == into for who, _ in examples_at(db, FaceReference(content, Box(*box)))):
            delete_row(db, "labels", number)
    db.execute(
        "DELETE FROM tags WHERE person = ?1 AND content IN (SELECT content FROM tags WHERE person = ?2)",
        (other, into),
    )
    for table in ("aliases", "face_groups", "tags"):
        db.execute(f"UPDATE {table} SET person = ? WHERE person = ?", (into, other))
    _replace_in_searches(db, other, into)
    notes = [
        db.execute("SELECT note FROM people WHERE id = ?", (row,)).fetchone()[0] for row in (into, other)
    ]
    set_note(db, into, "\n".join(filter(None, notes))[:_LONGEST_NOTE])
    delete_row(db, "people", other)


def searched_ids(query: str) -> list[str]:
    """Return the ids of the people in the query of a saved search."""
    stored = json.loads(query)
    return [*stored["people"], *stored["without"]]


def searches_with(db: sqlite3.Connection, uids: Iterable[str]) -> list[int]:
    """Return the rows of the saved searches that have one of these people."""
    gone = set(uids)
    rows = db.execute("SELECT id, query FROM searches").fetchall()
    return [row for row, query in rows if gone & {*searched_ids(query)}]


def _replace_in_searches(db: sqlite3.Connection, old: int, new: int) -> None:
    """Let saved searches have another person in the place of one."""
    (was,), (now,) = (
        db.execute("SELECT uid FROM people WHERE id = ?", (row,)).fetchone() for row in (old, new)
    )
    for row in searches_with(db, [was]):
        (query,) = db.execute("SELECT query FROM searches WHERE id = ?", (row,)).fetchone()
        stored = json.loads(query)
        for key in ("people", "without"):
            stored[key] = list(dict.fromkeys(now if uid == was else uid for uid in stored[key]))
        stored["at_least"] = min(stored["at_least"], len(stored["people"]))
        db.execute("UPDATE searches SET query = ? WHERE id = ?", (json.dumps(stored), row))


def undo_merge(db: sqlite3.Connection, person: int, numbers: Sequence[int], made: int) -> bool:
    """Give `made` all that a merge gave a person with just these examples; return whether there was one."""
    merged = db.execute(
        "SELECT changes.id, tbl, row, before FROM changed_rows JOIN changes ON changes.id = change WHERE "
        "kind = 'merge' AND tbl IN ('examples', 'labels', 'aliases', 'face_groups', 'tags') "
        "ORDER BY changes.id DESC"
    ).fetchall()
    came: defaultdict[tuple[int, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for change, table, row, before in merged:
        there = db.execute(f"SELECT 1 FROM {table} WHERE id = ? AND person = ?", (row, person)).fetchone()
        other = before.partition(",")[0] if before else None
        # a row that was another's, and is this person's since; of a merge that was undone, it always was
        if other and there and other != str(person):
            came[change, other][table].append(row)
    for (change, other), tables in came.items():
        if set(tables["examples"]) == set(numbers):
            for table, rows in tables.items():
                for row in rows:
                    _give(db, table, row, made)
            bring_back(db, change, {int(other): made, person: person})
            return True
    return False


def share_faces(
    db: sqlite3.Connection, person: int, made: int, descriptors: Callable[[str], NDArray[np.float32]]
) -> None:
    """Give groups and confirmed faces of a person to `made` where they look more like that one's examples.

    A confirmed face that is an example stays with the example.
    """
    own, other = (_mean([e.descriptor for e in read_examples(db, row)]) for row in (person, made))
    towards = other - own
    for number, stored, content, *box in db.execute(
        "SELECT id, descriptor, content, x0, y0, x1, y1 FROM labels WHERE person = ? AND is_match", (person,)
    ).fetchall():
        is_example = bool(examples_at(db, FaceReference(content, Box(*box))))
        if not is_example and descriptor_from(stored) @ towards > 0:
            _give(db, "labels", number, made)
    for (group,) in db.execute("SELECT id FROM face_groups WHERE person = ?", (person,)).fetchall():
        members = db.execute("SELECT id FROM group_members WHERE grp = ? ORDER BY id", (group,)).fetchall()
        some = [divmod(number, FACES) for (number,) in members[:: max(1, len(members) // _MAX_COMPARED)]]
        if _mean([descriptors(str(photo))[face] for photo, face in some]) @ towards > 0:
            _give(db, "face_groups", group, made)


def _mean(descriptors: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    rows = np.stack(descriptors)
    mean = (rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)).mean(axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), np.float32)


def confirm_face(db: sqlite3.Connection, person: int, face: Example) -> set[int]:
    """Keep that a face is a person: it becomes an example, and no other person's; return whose it was."""
    owners = take_from_others(db, person, face)
    label_face(db, person, face, True)
    add_examples(db, person, [face])
    return owners


def take_from_others(db: sqlite3.Connection, person: int, face: Example) -> set[int]:
    """Let a face be no other person's, and not rejected for this one; return whose it was."""
    reference, owners = _reference(face), set[int]()
    for number, who, is_match in labels_on_face(db, reference):
        if (who == person) != is_match:
            owners.add(who)
            delete_row(db, "labels", number)
    for who, example in examples_at(db, reference):
        if who != person and example.number is not None:
            owners.add(who)
            delete_row(db, "examples", example.number)
    for number, who in tags_at(db, reference):
        if who != person:
            owners.add(who)
            delete_row(db, "tags", number)
    return owners


def reject_face(db: sqlite3.Connection, person: int, face: Example) -> None:
    """Keep that a face is not a person; it is no example of theirs any more."""
    reference = _reference(face)
    for number, who, is_match in labels_on_face(db, reference):
        if who == person and is_match:
            delete_row(db, "labels", number)
    label_face(db, person, face, False)
    for who, example in examples_at(db, reference):
        if who == person and example.number is not None:
            delete_row(db, "examples", example.number)
    for number, who in tags_at(db, reference):
        if who == person:
            delete_row(db, "tags", number)


def tag_photo(db: sqlite3.Connection, person: int, photo_id: str, box: Box | None) -> None:
    """Keep that a person is in a photo, at a place or anywhere; a tag that says nothing new is an error."""
    photo, name = photo_number(photo_id), person_name(db, person)
    row = db.execute(
        "SELECT hash, width, height, path FROM photos WHERE id = ? AND state = 'ready' AND start IS NULL",
        (photo,),
    ).fetchone()
    if row is None:
        raise InvalidInputError(f"no photo {photo_id!r} in this library")
    content, width, height, path = row
    where = display_path(path)
    if db.execute("SELECT 1 FROM tags WHERE person = ? AND content = ?", (person, content)).fetchone():
        raise InvalidInputError(f"{name} is tagged in {where} already")
    if box is not None:
        if not (0 <= box.x0 < box.x1 <= width and 0 <= box.y0 < box.y1 <= height):
            raise InvalidInputError(
                f"the box is empty or not in {where}, which has {width} x {height} pixels"
            )
        reference = FaceReference(content, box)
        is_face = resolve_references(db, [reference])[0] is not None
        if is_face and any(said[1:] == (person, False) for said in labels_on_face(db, reference)):
            raise InvalidInputError(f"the face there in {where} was rejected for {name}: confirm it instead")
        if is_face and (owners := _owners(db, reference)):
            owner = person_name(db, min(owners))
            raise InvalidInputError(
                f"the face there in {where} is {owner} already: `people confirm` moves it"
            )
    add_tag(db, person, content, box)


def add_tag(db: sqlite3.Connection, person: int, content: bytes, box: Box | None) -> None:
    """Keep a tag on photos of a content, unless the person has one there."""
    corners: Sequence[float | None] = (None,) * 4 if box is None else [float(value) for value in box]
    db.execute(
        "INSERT OR IGNORE INTO tags (person, content, x0, y0, x1, y1, added) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (person, content, *corners, time.time()),
    )


def _owners(db: sqlite3.Connection, reference: FaceReference) -> set[int]:
    """Return whose a face is, by labels, examples and tags."""
    owners = {who for _, who, is_match in labels_on_face(db, reference) if is_match}
    owners |= {who for who, _ in examples_at(db, reference)}
    return owners | {who for _, who in tags_at(db, reference)}


def tags_at(db: sqlite3.Connection, reference: FaceReference) -> list[tuple[int, int]]:
    """Return the tags at a face: (number, person)."""
    rows = db.execute(
        "SELECT id, person, x0, y0, x1, y1 FROM tags WHERE content = ? AND x0 IS NOT NULL",
        (reference.content,),
    ).fetchall()
    return [
        (number, who)
        for number, who, *box in rows
        if reference.is_same(FaceReference(reference.content, Box(*box)))
    ]


def untag_photo(db: sqlite3.Connection, person: int, photo_id: str) -> None:
    """Take a tag back."""
    gone = db.execute(
        "DELETE FROM tags WHERE person = ? AND content = (SELECT hash FROM photos WHERE id = ?)",
        (person, photo_number(photo_id)),
    ).rowcount
    if not gone:
        raise InvalidInputError(f"{person_name(db, person)} is not tagged in photo {photo_id}")


def own_examples(db: sqlite3.Connection, person: int, numbers: Sequence[int]) -> list[Example]:
    """Return examples of a person by number; another's number is an error."""
    there = {example.number: example for example in read_examples(db, person)}
    name, listed = person_name(db, person), ", ".join(map(str, there)) or "none"
    if not numbers:
        raise InvalidInputError(f"say which examples of {name!r}: there are {listed}")
    for number in numbers:
        if number not in there:
            raise InvalidInputError(f"{name!r} has no example {number}: there are {listed}")
    return [there[number] for number in dict.fromkeys(numbers)]


def _reference(face: Example) -> FaceReference:
    reference = reference_in(face)
    if reference is None:
        raise InvalidInputError("only a face of a photo in the library can be confirmed or rejected")
    return reference


def label_face(
    db: sqlite3.Connection, person: int, face: Example, is_match: bool, added: float | None = None
) -> None:
    """Keep that a face is a person, or that it is not, unless that is kept already."""
    reference, values = _reference(face), example_values(face)
    if any(label[1:] == (person, is_match) for label in labels_on_face(db, reference)):
        return
    insert_row(
        db,
        "labels",
        person=person,
        content=reference.content,
        **{name: values[name] for name in ("x0", "y0", "x1", "y1")},
        descriptor=values["descriptor"],
        is_match=int(is_match),
        added=time.time() if added is None else added,
    )


def _move_label(
    db: sqlite3.Connection, number: int, reference: FaceReference, is_match: bool, to: int
) -> None:
    """Give a label to another person; of two on one face a confirmation is kept."""
    for other, person, other_is_match in labels_on_face(db, reference):
        if person != to or other == number:
            continue
        if other_is_match == is_match or not is_match:
            delete_row(db, "labels", number)
            return
        delete_row(db, "labels", other)
    _give(db, "labels", number, to)


def face_in_photo(
    db: sqlite3.Connection,
    descriptors: Callable[[str], NDArray[np.float32]],
    photo_id: str,
    face: int,
    picture: bytes | None,
) -> Example:
    """Return a face of a photo as a confirmed example; `descriptors` returns those of a photo."""
    number = photo_number(photo_id)
    content, box = refer_to_face(db, number, face)
    (path,) = db.execute("SELECT path FROM photos WHERE id = ?", (number,)).fetchone()
    return Example(descriptors(photo_id)[face], display_path(path), box, picture, "confirmed", content)


def examples_at(db: sqlite3.Connection, reference: FaceReference) -> list[tuple[int, Example]]:
    """Return the examples of all people that are this face, each after its person."""
    rows = db.execute(
        f"SELECT person, {EXAMPLE_COLUMNS} FROM examples WHERE content = ?", (reference.content,)
    )
    found = [(row[0], parse_example(row[1:])) for row in rows]
    return [(who, e) for who, e in found if (r := reference_in(e)) is not None and r.is_same(reference)]


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
    known, rejected
        How many had it already, and of how many it was said before that they are not that person.
    conflicts
        Those that are somebody else's; they stay so.
    people, new
        Names of the people who got faces, as they are saved, and how many of them were not there before.
    hints
        New names that may be other spellings of a person's, a sentence each.
    change
        The number of the change in the journal; None when nothing was new.
    """

    named: list[FaceName] = field(default_factory=list)
    known: int = 0
    rejected: int = 0
    conflicts: list[FaceConflict] = field(default_factory=list)
    people: list[str] = field(default_factory=list)
    new: int = 0
    hints: list[str] = field(default_factory=list)
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
        reference = refer_to_face(self._db, photo_number(said.photo_id), said.face)
        person = find_person(self._db, said.name)
        who = f"person {person}" if person is not None else name_key(checked_name(said.name))
        for other, other_who, name in self._said[reference.content]:
            if other.is_same(reference):
                if other_who == who:
                    self.report.known += 1
                else:
                    self.report.conflicts.append(FaceConflict(said, name))
                return
        owners, is_rejected = self._owners(reference, said, person)
        if person is not None and person in owners:
            self.report.known += 1
        elif owners:
            name = person_name(self._db, next(iter(owners)))
            self.report.conflicts.append(FaceConflict(said, name))
        elif is_rejected:
            self.report.rejected += 1
        else:
            self.report.named.append(said)
            self.by_person[who].append(said)
            self._said[reference.content].append((reference, who, self._name(said.name)))

    def _owners(self, reference: FaceReference, said: FaceName, person: int | None) -> tuple[set[int], bool]:
        """Return whose a face is: confirmed, an example, or in a group with a name; and whether rejected."""
        labels = labels_on_face(self._db, reference)
        is_rejected = any(label[1:] == (person, False) for label in labels)
        if owners := _owners(self._db, reference):
            return owners, is_rejected
        member = face_number(int(said.photo_id), said.face)
        row = self._db.execute(
            "SELECT person FROM group_members JOIN face_groups ON face_groups.id = grp "
            "WHERE group_members.id = ? AND person IS NOT NULL",
            (member,),
        ).fetchone()
        # That a group is this person's is a guess, which the name makes certain.
        return set() if row is None or row[0] == person else {row[0]}, is_rejected

    def _name(self, name: str) -> str:
        person = find_person(self._db, name)
        return checked_name(name) if person is None else person_name(self._db, person)


def name_faces(
    db: sqlite3.Connection,
    faces: Iterable[FaceName],
    pictures: Mapping[Place, bytes | None],
    descriptors: Callable[[str], NDArray[np.float32]],
) -> FacesNamed:
    """Confirm faces as the people they are called, new or known, in one change that can be undone.

    Those with an entry in `pictures` become examples too.
    """
    naming = FaceNaming(db, faces)
    there = {name for (name,) in db.execute("SELECT name FROM people")}
    rows = []
    for members in naming.by_person.values():
        name = members[0].name
        person = find_person(db, name)
        if person is None:
            person = create_person(db, name)
        rows.append(person)
        for said in members:
            place = said.photo_id, said.face
            example = face_in_photo(db, descriptors, *place, pictures.get(place))
            label_face(db, person, example, True)
            if place in pictures:
                add_examples(db, person, [example])
    report = naming.report
    report.hints = spelling_hints(db, [name for name in report.people if name not in there])
    number, people = len(report.named), len(rows)
    summary = (
        f"named {number:,} face{'' if number == 1 else 's'} of {people:,} "
        f"{'person' if people == 1 else 'people'} by tags"
    )
    report.change = enter_change(db, "import tags", summary, rows)
    return report
