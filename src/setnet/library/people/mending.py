"""What can be done to people, step by step, with everything recorded; for calls inside one transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library.people.example import EXAMPLE_COLUMNS, Example, example_of, example_values
from setnet.library.people.likeness import KnownFaces, reference_in
from setnet.library.people.lookup import name_of
from setnet.library.people.names import checked_name, key_of, new_id
from setnet.library.people.recorder import OWNED, Recorder
from setnet.library.people.verdict import on_face
from setnet.library.store.face_references import FaceReference, photo_number, reference_of
from setnet.library.store.paths import shown

_LONGEST_NOTE = 10_000


def create(recorder: Recorder, name: str, uid: str | None = None, added: float | None = None) -> int:
    """Insert a person; a name that is taken is an error."""
    name = checked_name(name)
    added = time.time() if added is None else added
    return recorder.insert("people", name=name, key=key_of(name), added=added, uid=uid or new_id())


def rename(recorder: Recorder, person: int, new: str) -> None:
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
            for number, person, says in on_face(recorder.db, reference):
                if person == owner and says == "yes":
                    _move_verdict(recorder, number, reference, to)


def merge(recorder: Recorder, into: int, other: int) -> None:
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


def remove(recorder: Recorder, person: int) -> None:
    """Delete a person with all that is theirs; their groups are nobody's."""
    for table in OWNED:
        own = recorder.db.execute(
            f"SELECT id FROM {table} WHERE person = ? ORDER BY id", (person,)
        ).fetchall()
        for (row,) in own:
            recorder.delete(table, row)
    recorder.delete("people", person)


def confirm(recorder: Recorder, person: int, face: Example) -> None:
    """Keep that a face is a person: it becomes an example, and is no other person's any more."""
    take_from_others(recorder, person, face)
    if not is_confirmed(recorder, person, face):
        insert_verdict(recorder, person, face, "yes")
    add_examples(recorder, person, [face])


def is_confirmed(recorder: Recorder, person: int, face: Example) -> bool:
    """Return whether a face was confirmed as a person's."""
    return any(said[1:] == (person, "yes") for said in on_face(recorder.db, _refers(face)))


def take_from_others(recorder: Recorder, person: int, face: Example) -> set[int]:
    """Let a face be no other person's, and not refused for this one; return whose it was."""
    reference, owners = _refers(face), set[int]()
    for number, who, says in on_face(recorder.db, reference):
        if (who == person) != (says == "yes"):
            owners.add(who)
            recorder.delete("verdicts", number)
    for who, example in examples_at(recorder.db, reference):
        if who != person and example.number is not None:
            owners.add(who)
            recorder.delete("examples", example.number)
    return owners


def refuse(recorder: Recorder, person: int, face: Example) -> None:
    """Keep that a face is not a person; it is no example of theirs any more."""
    reference = _refers(face)
    has_verdict = False
    for number, who, says in on_face(recorder.db, reference):
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
    name, listed = name_of(recorder.db, person), ", ".join(map(str, there)) or "none"
    if not numbers:
        raise InvalidInputError(f"say which examples of {name!r}: there are {listed}")
    for number in numbers:
        if number not in there:
            raise InvalidInputError(f"{name!r} has no example {number}: there are {listed}")
    return [there[number] for number in dict.fromkeys(numbers)]


def _refers(face: Example) -> FaceReference:
    reference = reference_in(face)
    if reference is None:
        raise InvalidInputError("only a face of a photo in the library can be confirmed or refused")
    return reference


def insert_verdict(
    recorder: Recorder, person: int, face: Example, says: str, added: float | None = None
) -> None:
    """Insert what was said of a face."""
    reference, values = _refers(face), example_values(face)
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
    for other, person, said in on_face(recorder.db, reference):
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
    return Example(descriptors(photo_id)[face], shown(path), box, picture, "confirmed", content)


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
