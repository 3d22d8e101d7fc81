"""Writes the people of a library to a file, and reads people of a file into a library.

Reading is one step that can be undone; what is there stays as it is. Descriptors are taken from the file,
or found again in the photos of this library, by the content of each photo and the place of the face in it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library.face_references import FaceReference, resolve_references
from setnet.library.paths import display_path
from setnet.library.people import People
from setnet.library.people_edits import (
    add_examples,
    create_person,
    examples_of,
    insert_row,
    label_face,
    set_cover,
    set_note,
)
from setnet.library.people_file import LARGEST_FILE, ExampleRecord, LabelRecord, PeopleFile, PersonRecord
from setnet.library.person import Example, Person, find_person, key_of, labels_on_face
from setnet.library.same_person import KnownFaces
from setnet.library.undo import enter_change


@dataclass(frozen=True, slots=True)
class PeopleExport:
    """How many people, examples and labels were written."""

    people: int
    examples: int
    labels: int


def export_people(people: People, model: str | None, dim: int) -> PeopleFile:
    """Return all people as a file; without the `model` that made them descriptors are left out."""
    records = tuple(_person_record(people, person, model is not None) for person in people)
    return PeopleFile(model, None if model is None else dim, records)


def write_people(file: PeopleFile, path: Path) -> PeopleExport:
    """Write a file whole or not at all, for its owner alone."""
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"no folder {display_path(path.parent)} for {display_path(path.name)}: make it first"
        )
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)
    try:
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as opened:
            opened.write(file.to_bytes())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return PeopleExport(
        len(file.people),
        sum(len(person.examples) for person in file.people),
        sum(len(person.labels) for person in file.people),
    )


def _person_record(people: People, person: Person, has_descriptors: bool) -> PersonRecord:
    examples = tuple(
        ExampleRecord(
            example.descriptor if has_descriptors else None,
            example.origin,
            example.source,
            example.content,
            example.box,
            example.picture,
            example.added or 0.0,
            example.number == person.cover,
        )
        for example in people.examples(person)
    )
    labels = {
        label.id: LabelRecord(
            label.is_match,
            label.content,
            label.box,
            label.descriptor if has_descriptors else None,
            label.added,
        )
        for label in people.labels(person)
    }
    return PersonRecord(
        person.id,
        person.name,
        person.aliases,
        person.note,
        person.added,
        examples,
        tuple(labels.values()),
    )


Vector = NDArray[np.float32]


@dataclass(slots=True)
class PeopleImport:
    """What came into a library with a file.

    Attributes
    ----------
    people, new
        How many people the file has, and how many of them were not there before.
    examples, labels
        How many were added.
    not_found
        How many were not, as they are faces of photos that are not in this library.
    notes
        Remarks for the user, a sentence each.
    change
        The number of the change in the journal; None when nothing was new.
    """

    people: int
    new: int = 0
    examples: int = 0
    labels: int = 0
    not_found: int = 0
    notes: list[str] = field(default_factory=list)
    change: int | None = None


def import_file(
    people: People, file: str | Path | bytes, model: str, *, use_descriptors: bool
) -> PeopleImport:
    """Add the people of a file, given by its path or its bytes, to those of a library made by a `model`."""
    data = file if isinstance(file, bytes) else _contents(Path(file))
    read = PeopleFile.from_bytes(data)
    if use_descriptors:
        check_same_model(read, model, people.dim)
    with people.recording() as db:
        return import_people(db, read, people.descriptors_in, use_descriptors=use_descriptors)


def _contents(path: Path) -> bytes:
    if not path.is_file():
        raise InvalidInputError(f"no file {display_path(path)}")
    if path.stat().st_size > LARGEST_FILE:
        raise InvalidInputError(f"{display_path(path)}: a file of people has at most {LARGEST_FILE >> 20} MB")
    return path.read_bytes()


def check_same_model(file: PeopleFile, model: str, dim: int) -> None:
    """Raise when the descriptors of a file are not of a library's model."""
    if file.dim is not None and (file.model != model or file.dim != dim):
        raise InvalidInputError(
            f"the descriptors of the file were made by {_model_name(file.model)!r}, this library's by "
            f"{_model_name(model)!r}: they do not compare. Import it --without-descriptors: faces are then "
            "found again in the photos of this library"
        )


def import_people(
    db: sqlite3.Connection, file: PeopleFile, descriptors: Callable[[str], Vector], *, use_descriptors: bool
) -> PeopleImport:
    """Add the people of a file to those that are there; for a call inside one transaction.

    `descriptors` returns those of a photo of the library.
    """
    report, rows = PeopleImport(len(file.people)), []
    found = _Found(db, file, descriptors, use_descriptors)
    for record in file.people:
        rows.append(_import_one(db, record, found, report))
    number = len(file.people)
    summary = f"imported {number} {'person' if number == 1 else 'people'}"
    report.change = enter_change(db, "import", summary, rows)
    return report


class _Found:
    """The descriptors of the faces of a file: its own, or those of the same faces in the library."""

    def __init__(
        self, db: sqlite3.Connection, file: PeopleFile, descriptors: Callable[[str], Vector], use: bool
    ) -> None:
        self._use, self._descriptors = use, descriptors
        references = list({reference for record in _records(file) if (reference := self._missing(record))})
        self._places = dict(zip(references, resolve_references(db, references), strict=True))
        self._photos: dict[int, Vector] = {}

    def of(self, record: ExampleRecord | LabelRecord) -> Vector | None:
        if self._use and record.descriptor is not None:
            return record.descriptor
        reference = self._missing(record)
        place = None if reference is None else self._places[reference]
        if place is None:
            return None
        photo, face = place
        if photo not in self._photos:
            self._photos[photo] = self._descriptors(str(photo))
        found: Vector = self._photos[photo][face]
        return found

    def _missing(self, record: ExampleRecord | LabelRecord) -> FaceReference | None:
        """Return what refers to a face whose descriptor must be found in the library."""
        if (self._use and record.descriptor is not None) or record.content is None or record.box is None:
            return None
        return FaceReference(record.content, record.box)


def _records(file: PeopleFile) -> Iterator[ExampleRecord | LabelRecord]:
    for person in file.people:
        yield from person.examples
        yield from person.labels


def _import_one(db: sqlite3.Connection, record: PersonRecord, found: _Found, report: PeopleImport) -> int:
    person = _find_or_create(db, record, report)
    _add_aliases(db, person, record.aliases, report)
    note, cover = db.execute("SELECT note, cover FROM people WHERE id = ?", (person,)).fetchone()
    if record.note and not note:
        set_note(db, person, record.note)
    examples = [(e, vector) for e in record.examples if (vector := found.of(e)) is not None]
    report.examples += add_examples(db, person, [_example_from(*pair) for pair in examples])
    covers = [_example_from(*pair) for pair in examples if pair[0].is_cover]
    if covers and cover is None:
        _cover(db, person, covers[0])
    labels = [(v, vector) for v in record.labels if (vector := found.of(v)) is not None]
    for label, vector in labels:
        report.labels += _add_label(db, person, label, vector)
    lost = len(record.examples) - len(examples), len(record.labels) - len(labels)
    report.not_found += sum(lost)
    if any(lost):
        report.notes.append(
            f"{record.name}: {lost[0]} of {len(record.examples)} example faces and {lost[1]} of "
            f"{len(record.labels)} confirmed or refused faces are in no photo of this library. Index the "
            "photos and import the file again"
        )
    return person


def _find_or_create(db: sqlite3.Connection, record: PersonRecord, report: PeopleImport) -> int:
    """Return whoever has the id of a record, or somebody new; a name that is taken gets a number."""
    known = db.execute("SELECT id FROM people WHERE uid = ?", (record.id,)).fetchone()
    if known is not None:
        return int(known[0])
    report.new += 1
    name = record.name
    if _is_taken(db, name):
        name = next(n for i in count(2) if not _is_taken(db, n := f"{record.name[:180]} ({i})"))
        report.notes.append(
            f"{record.name!r} is somebody else here: imported as {name!r}. Merge the two if they are one"
        )
    return create_person(db, name, record.id, record.added)


def _is_taken(db: sqlite3.Connection, name: str) -> bool:
    statement = "SELECT 1 FROM people WHERE key = ?1 UNION ALL SELECT 1 FROM aliases WHERE key = ?1"
    return db.execute(statement, (key_of(name),)).fetchone() is not None


def _add_aliases(db: sqlite3.Connection, person: int, aliases: Sequence[str], report: PeopleImport) -> None:
    for alias in aliases:
        if not _is_taken(db, alias):
            insert_row(db, "aliases", person=person, name=alias, key=key_of(alias))
        elif find_person(db, alias) != person:
            report.notes.append(f"the alias {alias!r} is somebody else's here: left out")


def _example_from(record: ExampleRecord, vector: Vector) -> Example:
    return Example(
        vector,
        record.source,
        record.box,
        record.picture,
        record.origin,
        record.content,
        added=record.added,
    )


def _cover(db: sqlite3.Connection, person: int, cover: Example) -> None:
    for example in examples_of(db, person):
        if example.picture is not None and cover in KnownFaces([example]):
            set_cover(db, person, example.number or 0)
            return


def _add_label(db: sqlite3.Connection, person: int, record: LabelRecord, vector: Vector) -> int:
    """Keep what was said of a face, unless something was said of it here; return how many were added."""
    said = labels_on_face(db, FaceReference(record.content, record.box))
    if any(who == person or (is_match and record.is_match) for _, who, is_match in said):
        return 0
    face = Example(vector, None, record.box, None, content=record.content)
    label_face(db, person, face, record.is_match, record.added)
    return 1


def _model_name(fingerprint: str | None) -> str:
    return (fingerprint or "an unknown model").partition(" ")[0]
