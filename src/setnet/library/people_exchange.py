"""People in a JSON file: written by one library, read into another.

A file may come from anywhere: whatever does not fit is an error that names the place in the file. Reading is
one step that can be undone; what is there stays as it is. Descriptors are taken from the file, or found again
in the photos of this library, by the content of each photo and the place of the face in it.
"""

from __future__ import annotations

import base64
import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from setnet.durable import replace_file
from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library.examples import KnownFaces, reference_in
from setnet.library.face_references import FaceReference, Place, resolve_references
from setnet.library.paths import display_path
from setnet.library.people import People
from setnet.library.people_edits import (
    add_examples,
    add_tag,
    create_person,
    insert_row,
    label_face,
    set_cover,
    set_note,
)
from setnet.library.person import (
    ORIGINS,
    Example,
    Label,
    Person,
    checked_name,
    find_person,
    is_id,
    labels_on_face,
    name_key,
    read_examples,
    spelling_hints,
)
from setnet.library.photos import HASH_BYTES
from setnet.library.undo import enter_change

Vector = NDArray[np.float32]

FORMAT, VERSION = "setnet people", 1
LARGEST_FILE = 256 << 20  # bytes
_LARGEST_PICTURE = 1 << 20
_MAX_PEOPLE, _MAX_EXAMPLES = 100_000, 1_000_000
_JPEG = b"\xff\xd8\xff"
_LARGEST_COORDINATE = 1e7
_LATEST = 1e11  # seconds since 1970
_NO_DESCRIPTOR = np.zeros(0, np.float32)  # of a face that must be found again


@dataclass(frozen=True, slots=True, eq=False)
class PersonRecord:
    """A person in a file: their examples, the place of the cover among these, their labels and tags.

    A tag is the content of a photo that they are in, and the box there or None.
    """

    id: str
    name: str
    aliases: tuple[str, ...]
    note: str
    added: float
    examples: tuple[Example, ...]
    cover: int | None
    labels: tuple[Label, ...]
    tags: tuple[tuple[bytes, Box | None], ...] = ()

    @classmethod
    def of(cls, people: People, person: Person) -> PersonRecord:
        """Return a person of a library."""
        examples = tuple(people.examples(person))
        cover = next((place for place, e in enumerate(examples) if e.number == person.cover), None)
        labels = {label.id: label for label in people.labels(person)}  # one for all copies of a photo
        facts = person.id, person.name, person.aliases, person.note, person.added.timestamp()
        return cls(*facts, examples, cover, tuple(labels.values()), people.tagged_contents(person))

    def to_dict(self, has_descriptors: bool) -> dict[str, Any]:
        """Return the person as values that JSON can hold."""

        def descriptor(of: Example | Label) -> str | None:
            vector = of.descriptor
            return _base64_text(vector.astype("<f4").tobytes()) if has_descriptors and vector.any() else None

        return {
            "id": self.id,
            "name": self.name,
            "aliases": list(self.aliases),
            "note": self.note,
            "added": self.added,
            "examples": [
                {
                    "descriptor": descriptor(example),
                    "origin": example.origin,
                    "source": example.source,
                    "content": None if example.content is None else example.content.hex(),
                    "box": None if example.box is None else list(example.box),
                    "picture": None if example.picture is None else _base64_text(example.picture),
                    "added": example.added or 0.0,
                    "is_cover": place == self.cover,
                }
                for place, example in enumerate(self.examples)
            ],
            "labels": [
                {
                    "is_match": label.is_match,
                    "content": label.content.hex(),
                    "box": list(label.box),
                    "descriptor": descriptor(label),
                    "added": label.added,
                }
                for label in self.labels
            ],
            "tags": [
                {"content": content.hex(), "box": None if box is None else list(box)}
                for content, box in self.tags
            ],
        }


def _base64_text(data: bytes) -> str:
    return base64.b64encode(data).decode()


@dataclass(frozen=True, slots=True, eq=False)
class PeopleFile:
    """All of a file; `model` and `dim` say what made its descriptors, None where it has none."""

    model: str | None
    dim: int | None
    people: tuple[PersonRecord, ...]

    def to_bytes(self) -> bytes:
        """Return the file."""
        about = {"format": FORMAT, "version": VERSION, "model": self.model, "dim": self.dim}
        people = [person.to_dict(self.dim is not None) for person in self.people]
        return json.dumps(about | {"people": people}, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> PeopleFile:
        """Return what a file says."""
        if len(data) > LARGEST_FILE:
            raise InvalidInputError(f"a file of people has at most {LARGEST_FILE >> 20} MB")
        file = _Fields(_parse(data), "")
        if file.value.get("format") != FORMAT:
            raise InvalidInputError("no file of people: `setnet people export` writes them")
        if file.value.get("version") != VERSION:
            raise InvalidInputError(
                f"a file of people of version {file.value.get('version')!r}; this setnet reads {VERSION}: "
                "update setnet"
            )
        dim = None if file.value.get("dim") is None else int(file.number("dim", 1, 1 << 20))
        model = None if file.value.get("model") is None else file.text("model", 1000)
        parts = file.objects("people", _MAX_PEOPLE)
        if sum(len(part.entries("examples", _MAX_EXAMPLES)) for part in parts) > _MAX_EXAMPLES:
            raise InvalidInputError(f"a file of people has at most {_MAX_EXAMPLES:,} examples")
        people = tuple(_read_person(part, dim) for part in parts)
        for what, values in (("id", [p.id for p in people]), ("name", [name_key(p.name) for p in people])):
            seen: set[str] = set()
            for number, value in enumerate(values):
                if value in seen:
                    _fail(f"people[{number}].{what}", f"another person in the file has the {what} {value!r}")
                seen.add(value)
        return cls(model, dim, people)


def _parse(data: bytes) -> Any:
    def refuse(text: str) -> NoReturn:
        raise InvalidInputError(f"no file of people: {text} is no number of JSON")

    try:
        return json.loads(data, parse_constant=refuse)
    except RecursionError:
        raise InvalidInputError("no file of people: its JSON is nested too deeply") from None
    except (ValueError, UnicodeError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"no file of people: no valid JSON ({str(error)[:200]})") from None


def _fail(at: str, expected: str) -> NoReturn:
    raise InvalidInputError(f"the file of people does not fit at {at or 'its beginning'}: {expected}")


class _Fields:
    """A JSON object; reading a field that is missing or of another type is an error that says where."""

    def __init__(self, value: Any, at: str) -> None:
        if not isinstance(value, dict):
            _fail(at, "an object is expected")
        self.value, self.at = value, at

    def fail(self, name: str, expected: str) -> NoReturn:
        """Raise for a field that does not fit."""
        _fail(f"{self.at}.{name}".lstrip("."), expected)

    def text(self, name: str, longest: int) -> str:
        """Return a text that can be written as UTF-8."""
        value = self.value.get(name)
        if not isinstance(value, str) or len(value) > longest:
            self.fail(name, f"a text of at most {longest:,} characters is expected")
        if "\0" in value or value != value.encode("utf-8", "ignore").decode():
            self.fail(name, "a text without null characters and halves of surrogate pairs is expected")
        return value

    def number(self, name: str, lowest: float, highest: float) -> float:
        """Return a number between two limits, whole where these are."""
        value = self.value.get(name)
        kind: Any = int if isinstance(lowest, int) else int | float
        if isinstance(value, bool) or not isinstance(value, kind) or not lowest <= value <= highest:
            self.fail(name, f"a number between {lowest:g} and {highest:g} is expected")
        return float(value)

    def flag(self, name: str) -> bool:
        """Return true or false."""
        value = self.value.get(name)
        if not isinstance(value, bool):
            self.fail(name, "true or false is expected")
        return value

    def entries(self, name: str, max_entries: int) -> list[Any]:
        """Return a list, empty where the field is missing."""
        value = self.value.get(name, [])
        if not isinstance(value, list) or len(value) > max_entries:
            self.fail(name, f"a list of at most {max_entries:,} is expected")
        return value

    def objects(self, name: str, max_entries: int) -> list[_Fields]:
        """Return a list of objects."""
        return [
            _Fields(v, f"{self.at}.{name}[{n}]".lstrip("."))
            for n, v in enumerate(self.entries(name, max_entries))
        ]

    def data(self, name: str, max_bytes: int) -> bytes:
        """Return bytes written as base64."""
        text = self.text(name, 4 * (max_bytes + 2) // 3 + 2)
        try:
            return base64.b64decode(text, validate=True)
        except ValueError:
            self.fail(name, "no valid base64")


def _read_person(fields: _Fields, dim: int | None) -> PersonRecord:
    if not is_id(fields.text("id", 12)):
        fields.fail("id", "12 hexadecimal digits are expected")
    examples = fields.objects("examples", _MAX_EXAMPLES)
    covers = [place for place, example in enumerate(examples) if example.flag("is_cover")]
    name = _read_name(fields, "name", fields.value.get("name"))
    return PersonRecord(
        fields.text("id", 12),
        name,
        tuple(_read_name(fields, "aliases", alias) for alias in fields.entries("aliases", 1000)),
        fields.text("note", 10_000),
        fields.number("added", 0.0, _LATEST),
        tuple(_read_example(example, dim) for example in examples),
        covers[0] if covers else None,
        tuple(_read_label(label, name, dim) for label in fields.objects("labels", _MAX_EXAMPLES)),
        tuple(
            (_read_content(tag), _read_box(tag) if tag.value.get("box") is not None else None)
            for tag in fields.objects("tags", _MAX_EXAMPLES)
        ),
    )


def _read_name(fields: _Fields, field_name: str, value: Any) -> str:
    if not isinstance(value, str):
        fields.fail(field_name, "a name is expected")
    try:
        return checked_name(value)
    except InvalidInputError as error:
        fields.fail(field_name, str(error))


def _read_example(fields: _Fields, dim: int | None) -> Example:
    def has(name: str) -> bool:
        return fields.value.get(name) is not None

    origin = fields.text("origin", 20)
    picture = fields.data("picture", _LARGEST_PICTURE) if has("picture") else None
    if picture is not None and not picture.startswith(_JPEG):
        fields.fail("picture", "a JPEG is expected")
    return Example(
        _read_vector(fields, dim),
        fields.text("source", 1 << 15) if has("source") else None,
        _read_box(fields) if has("box") else None,
        picture,
        origin if origin in ORIGINS else "import",
        _read_content(fields) if has("content") else None,
        added=fields.number("added", 0.0, _LATEST),
    )


def _read_label(fields: _Fields, person: str, dim: int | None) -> Label:
    added = fields.number("added", 0.0, _LATEST)
    face = _read_vector(fields, dim), _read_content(fields), _read_box(fields)
    return Label(person, fields.flag("is_match"), None, None, *face, 0, added)


def _read_content(fields: _Fields) -> bytes:
    try:
        content = bytes.fromhex(fields.text("content", 2 * HASH_BYTES))
    except ValueError:
        content = b""
    if len(content) != HASH_BYTES:
        fields.fail("content", f"{2 * HASH_BYTES} hexadecimal digits are expected")
    return content


def _read_box(fields: _Fields) -> Box:
    corners = _Fields({str(n): v for n, v in enumerate(fields.entries("box", 4))}, f"{fields.at}.box")
    box = Box(*(corners.number(str(n), -_LARGEST_COORDINATE, _LARGEST_COORDINATE) for n in range(4)))
    if box.width <= 0 or box.height <= 0:
        fields.fail("box", "x0, y0, x1, y1 with x0 < x1 and y0 < y1 are expected")
    return box


def _read_vector(fields: _Fields, dim: int | None) -> Vector:
    if dim is None or fields.value.get("descriptor") is None:
        return _NO_DESCRIPTOR
    data = fields.data("descriptor", 4 * dim)
    vector = np.frombuffer(data, "<f4").astype(np.float32) if len(data) == 4 * dim else _NO_DESCRIPTOR
    if not np.isfinite(vector).all() or not vector.any():
        fields.fail("descriptor", f"{dim} finite numbers, not all zero, are expected")
    return vector


@dataclass(frozen=True, slots=True)
class PeopleExport:
    """How many people, examples and labels were written."""

    people: int
    examples: int
    labels: int


def write_people(file: PeopleFile, path: Path) -> PeopleExport:
    """Write a file whole or not at all, for its owner alone."""
    if not path.parent.is_dir():
        raise InvalidInputError(
            f"no folder {display_path(path.parent)} for {display_path(path.name)}: make it first"
        )
    replace_file(path, file.to_bytes())
    counts = [(len(person.examples), len(person.labels)) for person in file.people]
    return PeopleExport(len(counts), sum(e for e, _ in counts), sum(n for _, n in counts))


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
        The number of the change in the history; None when nothing was new.
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
    read = PeopleFile.from_bytes(file if isinstance(file, bytes) else _contents(Path(file)))
    if use_descriptors and read.dim is not None and (read.model, read.dim) != (model, people.dim):
        raise InvalidInputError(
            f"the descriptors of the file were made by {_model_name(read.model)!r}, this library's by "
            f"{_model_name(model)!r}: they do not compare. Import it --without-descriptors: faces are then "
            "found again in the photos of this library"
        )
    with people.recording() as db:
        return _Import(db, read, people.descriptors_in, use_descriptors).run()


def _contents(path: Path) -> bytes:
    if not path.is_file():
        raise InvalidInputError(f"no file {display_path(path)}")
    if path.stat().st_size > LARGEST_FILE:
        raise InvalidInputError(f"{display_path(path)}: a file of people has at most {LARGEST_FILE >> 20} MB")
    return path.read_bytes()


def _model_name(fingerprint: str | None) -> str:
    return (fingerprint or "an unknown model").partition(" ")[0]


class _Import:
    """Adds the people of a file to those that are there, inside one transaction."""

    def __init__(
        self, db: sqlite3.Connection, file: PeopleFile, descriptors: Callable[[str], Vector], use: bool
    ) -> None:
        self._db, self._file, self._descriptors, self._use = db, file, descriptors, use
        self._report = PeopleImport(len(file.people))
        faces: list[Example | Label] = []
        for person in file.people:
            faces += [*person.examples, *person.labels]
        missing = list({reference for face in faces if (reference := self._missing(face)) is not None})
        self._places: dict[FaceReference, Place | None] = dict(
            zip(missing, resolve_references(db, missing), strict=True)
        )
        self._photos: dict[int, Vector] = {}

    def run(self) -> PeopleImport:
        db, report, people = self._db, self._report, self._file.people
        there = {uid for (uid,) in db.execute("SELECT uid FROM people")}
        rows = [self._add(record) for record in people]
        report.notes += spelling_hints(db, [record.name for record in people if record.id not in there])
        summary = f"imported {len(people)} {'person' if len(people) == 1 else 'people'}"
        report.change = enter_change(db, "import", summary, rows)
        return report

    def _missing(self, face: Example | Label) -> FaceReference | None:
        """Return what refers to a face whose descriptor must be found in the library."""
        if (self._use and face.descriptor.size) or face.content is None or face.box is None:
            return None
        return FaceReference(face.content, face.box)

    def _described(self, face: Example | Label) -> Vector | None:
        """Return the descriptor of a face: the file's, or that of the same face in the library."""
        if self._use and face.descriptor.size:
            return face.descriptor
        reference = self._missing(face)
        place = None if reference is None else self._places[reference]
        if place is None:
            return None
        photo, ordinal = place
        if photo not in self._photos:
            self._photos[photo] = self._descriptors(str(photo))
        found: Vector = self._photos[photo][ordinal]
        return found

    def _add(self, record: PersonRecord) -> int:
        db, report = self._db, self._report
        person = self._find_or_create(record)
        self._add_aliases(person, record.aliases)
        note, cover = db.execute("SELECT note, cover FROM people WHERE id = ?", (person,)).fetchone()
        if record.note and not note:
            set_note(db, person, record.note)
        examples = {
            place: replace(example, descriptor=vector)
            for place, example in enumerate(record.examples)
            if (vector := self._described(example)) is not None
        }
        report.examples += add_examples(db, person, examples.values())
        if record.cover in examples and cover is None:
            chosen = examples[record.cover]
            theirs = (e for e in read_examples(db, person) if e.picture and chosen in KnownFaces([e]))
            set_cover(db, person, next((e.number or 0 for e in theirs), 0))
        labels = [
            (label, vector) for label in record.labels if (vector := self._described(label)) is not None
        ]
        for label, vector in labels:
            report.labels += self._add_label(person, label, vector)
        for content, box in record.tags:
            add_tag(db, person, content, box)
        lost = len(record.examples) - len(examples), len(record.labels) - len(labels)
        report.not_found += sum(lost)
        if any(lost):
            report.notes.append(
                f"{record.name}: {lost[0]} of {len(record.examples)} example faces and {lost[1]} of "
                f"{len(record.labels)} confirmed or rejected faces are in no photo of this library. Index "
                "the photos and import the file again"
            )
        return person

    def _find_or_create(self, record: PersonRecord) -> int:
        """Return whoever has the id of a record, or somebody new; a name that is taken gets a number."""
        known = self._db.execute("SELECT id FROM people WHERE uid = ?", (record.id,)).fetchone()
        if known is not None:
            return int(known[0])
        self._report.new += 1
        name = record.name
        if self._is_taken(name):
            name = next(n for i in count(2) if not self._is_taken(n := f"{record.name[:180]} ({i})"))
            self._report.notes.append(
                f"{record.name!r} is somebody else here: imported as {name!r}. Merge the two if they are one"
            )
        return create_person(self._db, name, record.id, record.added)

    def _is_taken(self, name: str) -> bool:
        statement = "SELECT 1 FROM people WHERE key = ?1 UNION ALL SELECT 1 FROM aliases WHERE key = ?1"
        return self._db.execute(statement, (name_key(name),)).fetchone() is not None

    def _add_aliases(self, person: int, aliases: Sequence[str]) -> None:
        for alias in aliases:
            if not self._is_taken(alias):
                insert_row(self._db, "aliases", person=person, name=alias, key=name_key(alias))
            elif find_person(self._db, alias) != person:
                self._report.notes.append(f"the alias {alias!r} is somebody else's here: left out")

    def _add_label(self, person: int, label: Label, vector: Vector) -> int:
        """Keep what was said of a face, unless something was said of it here; return how many were added."""
        face = Example(vector, None, label.box, None, content=label.content)
        reference = reference_in(face)
        said = [] if reference is None else labels_on_face(self._db, reference)
        if any(who == person or (is_match and label.is_match) for _, who, is_match in said):
            return 0
        label_face(self._db, person, face, label.is_match, label.added)
        return 1
