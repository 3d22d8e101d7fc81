"""People in a JSON file: written by one library, read into another.

A file may come from anywhere: whatever does not fit is an error that names the place in the file. Reading is
one step that can be undone; what is there stays as it is. Descriptors are taken from the file, or found again
in the photos of this library, by the content of each photo and the place of the face in it.
"""

from __future__ import annotations

import base64
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
)

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
from setnet.library.undo import enter_change, recording

if TYPE_CHECKING:
    from setnet.library.library import Library

Vector = NDArray[np.float32]
T = TypeVar("T")

LARGEST_FILE = 256 << 20  # bytes
_VERSION = 1
_LARGEST_PICTURE = 1 << 20
_MAX_PEOPLE, _MAX_EXAMPLES = 100_000, 1_000_000
_JPEG = b"\xff\xd8\xff"


def _require(is_right: Callable[[T], bool], expected: str) -> AfterValidator:
    """Return a test of a field's value."""

    def check(value: T) -> T:
        if not is_right(value):
            raise ValueError(f"{expected} is expected")
        return value

    return AfterValidator(check)


def _read_base64(value: object) -> object:
    return base64.b64decode(value, validate=True) if isinstance(value, str) else value


def _read_hex(value: object) -> object:
    return bytes.fromhex(value) if isinstance(value, str) else value


_Base64 = Annotated[
    bytes, BeforeValidator(_read_base64), PlainSerializer(lambda data: base64.b64encode(data).decode())
]
_Picture = Annotated[
    _Base64, Field(max_length=_LARGEST_PICTURE), _require(lambda data: data.startswith(_JPEG), "a JPEG")
]
_Content = Annotated[
    bytes,
    BeforeValidator(_read_hex),
    PlainSerializer(bytes.hex),
    Field(min_length=HASH_BYTES, max_length=HASH_BYTES),
]
_Coordinate = Annotated[float, Field(ge=-1e7, le=1e7)]
_Corners = Annotated[
    tuple[_Coordinate, _Coordinate, _Coordinate, _Coordinate],
    _require(lambda box: box[0] < box[2] and box[1] < box[3], "x0, y0, x1, y1 with x0 < x1 and y0 < y1"),
]
_Moment = Annotated[float, Field(ge=0, le=1e11)]  # seconds since 1970
_Name = Annotated[str, AfterValidator(checked_name)]
_Text = Annotated[str, _require(lambda text: "\0" not in text, "a text without null characters")]


class _Record(BaseModel):
    """A part of a file: no value is converted, and fields that nobody knows are passed over."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class _FaceRecord(_Record):
    descriptor: _Base64 | None = None
    content: _Content | None = None
    box: _Corners | None = None
    added: _Moment

    @property
    def vector(self) -> Vector:
        """The descriptor; empty for a face that must be found again."""
        return np.frombuffer(self.descriptor or b"", "<f4").astype(np.float32)

    @property
    def reference(self) -> FaceReference | None:
        """What refers to the face in photos of this library."""
        if self.content is None or self.box is None:
            return None
        return FaceReference(self.content, Box(*self.box))


class _ExampleRecord(_FaceRecord):
    origin: Annotated[str, Field(max_length=20)]
    source: Annotated[_Text, Field(max_length=1 << 15)] | None = None
    picture: _Picture | None = None
    is_cover: bool

    def example(self, vector: Vector) -> Example:
        """Return the example with its descriptor."""
        box = None if self.box is None else Box(*self.box)
        origin = self.origin if self.origin in ORIGINS else "import"
        return Example(vector, self.source, box, self.picture, origin, self.content, added=self.added)


class _LabelRecord(_FaceRecord):
    content: _Content
    box: _Corners
    is_match: bool


class _TagRecord(_Record):
    content: _Content
    box: _Corners | None = None


class PersonRecord(_Record):
    """A person in a file; a tag is the content of a photo that they are in, and the box there, if any."""

    id: Annotated[str, _require(is_id, "12 hexadecimal digits")]
    name: _Name
    aliases: Annotated[list[_Name], Field(max_length=1000)] = []
    note: Annotated[_Text, Field(max_length=10_000)]
    added: _Moment
    examples: Annotated[list[_ExampleRecord], Field(max_length=_MAX_EXAMPLES)] = []
    labels: Annotated[list[_LabelRecord], Field(max_length=_MAX_EXAMPLES)] = []
    tags: Annotated[list[_TagRecord], Field(max_length=_MAX_EXAMPLES)] = []

    @classmethod
    def of(cls, people: People, person: Person, has_descriptors: bool) -> Self:
        """Return a person of a library."""

        def descriptor(vector: Vector) -> bytes | None:
            return vector.astype("<f4").tobytes() if has_descriptors and vector.any() else None

        labels = {label.id: label for label in people.labels(person)}  # one for all copies of a photo
        return cls.model_construct(
            id=person.id,
            name=person.name,
            aliases=list(person.aliases),
            note=person.note,
            added=person.added.timestamp(),
            examples=[
                _ExampleRecord.model_construct(
                    descriptor=descriptor(example.descriptor),
                    content=example.content,
                    box=example.box,
                    added=example.added or 0.0,
                    origin=example.origin,
                    source=example.source,
                    picture=example.picture,
                    is_cover=example.number == person.cover,
                )
                for example in people.examples(person)
            ],
            labels=[
                _LabelRecord.model_construct(
                    descriptor=descriptor(label.descriptor),
                    content=label.content,
                    box=label.box,
                    added=label.added,
                    is_match=label.is_match,
                )
                for label in labels.values()
            ],
            tags=[
                _TagRecord.model_construct(content=content, box=box)
                for content, box in people.tagged_contents(person)
            ],
        )


class PeopleFile(_Record):
    """All of a file; `model` and `dim` say what made its descriptors, None where it has none."""

    format: Literal["setnet people"]
    version: Literal[1]
    model: Annotated[str, Field(max_length=1000)] | None = None
    dim: Annotated[int, Field(ge=1, le=1 << 20)] | None = None
    people: Annotated[list[PersonRecord], Field(max_length=_MAX_PEOPLE)] = []

    @classmethod
    def of(cls, people: Sequence[PersonRecord], model: str | None = None, dim: int | None = None) -> Self:
        """Return a file of people, with what made their descriptors if they have them."""
        return cls.model_construct(
            format="setnet people", version=_VERSION, model=model, dim=dim, people=people
        )

    def to_bytes(self) -> bytes:
        """Return the file."""
        return self.model_dump_json(indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return what a file says; whatever does not fit is an error that names the place."""
        if len(data) > LARGEST_FILE:
            raise InvalidInputError(f"a file of people has at most {LARGEST_FILE >> 20} MB")
        try:
            file = cls.model_validate_json(data)
        except ValidationError as error:
            raise _explain(error) from None
        if sum(len(person.examples) for person in file.people) > _MAX_EXAMPLES:
            raise InvalidInputError(f"a file of people has at most {_MAX_EXAMPLES:,} examples")
        ids, names = set[str](), set[str]()
        for number, person in enumerate(file.people):
            for what, value, seen in (("id", person.id, ids), ("name", name_key(person.name), names)):
                if value in seen:
                    raise _misfit(("people", number, what), f"another person in the file has it: {value!r}")
                seen.add(value)
            for kind, faces in (("examples", person.examples), ("labels", person.labels)):
                for place, face in enumerate(faces):
                    vector = face.vector if file.dim is not None and face.descriptor is not None else None
                    if vector is not None and not _is_descriptor(vector, file.dim):
                        at = ("people", number, kind, place, "descriptor")
                        raise _misfit(at, f"{file.dim} finite numbers, not all zero, are expected")
        return file


def _is_descriptor(vector: Vector, dim: int | None) -> bool:
    return vector.shape == (dim,) and bool(np.isfinite(vector).all() and vector.any())


def _explain(error: ValidationError) -> InvalidInputError:
    """Return what is wrong with a file, first of all if it is no file of people of this version."""
    places = {each["loc"]: each for each in error.errors(include_url=False)}
    at, first = next(iter(places.items()))
    reason = first["msg"].removeprefix("Value error, ")[:200]
    if ("version",) in places and ("format",) not in places:
        return InvalidInputError(
            f"a file of people of version {places['version',]['input']!r}; this setnet reads {_VERSION}: "
            "update setnet"
        )
    if () in places or ("format",) in places:
        return InvalidInputError(f"no file of people ({reason}): `setnet people export` writes one")
    return _misfit(at, reason)


def _misfit(at: tuple[int | str, ...], reason: str) -> InvalidInputError:
    place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in at).lstrip(".")
    return InvalidInputError(f"the file of people does not fit at {place}: {reason}")


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


def import_file(library: Library, file: str | Path | bytes, *, use_descriptors: bool) -> PeopleImport:
    """Add the people of a file, given by its path or its bytes, to those of a library."""
    read = PeopleFile.from_bytes(file if isinstance(file, bytes) else _contents(Path(file)))
    model = library.photos.meta("model") or ""
    if use_descriptors and read.dim is not None and (read.model, read.dim) != (model, library.dim):
        raise InvalidInputError(
            f"the descriptors of the file were made by {_model_name(read.model)!r}, this library's by "
            f"{_model_name(model)!r}: they do not compare. Import it --without-descriptors: faces are then "
            "found again in the photos of this library"
        )
    with recording(library._database) as db:
        return _Import(db, read, library.photos.descriptors, use_descriptors).run()


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
        self._db, self._file, self._descriptors = db, file, descriptors
        self._use = use and file.dim is not None
        self._report = PeopleImport(len(file.people))
        faces = [face for person in file.people for face in (*person.examples, *person.labels)]
        missing = list({at for face in faces if not self._has_descriptor(face) and (at := face.reference)})
        self._places: dict[FaceReference | None, Place | None] = dict(
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

    def _has_descriptor(self, face: _FaceRecord) -> bool:
        return self._use and face.descriptor is not None

    def _describe(self, face: _FaceRecord) -> Vector | None:
        """Return the descriptor of a face: the file's, or that of the same face in the library."""
        if self._has_descriptor(face):
            return face.vector
        place = self._places.get(face.reference)
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
        found = [(face, self._describe(face)) for face in record.examples]
        examples = [(face, face.example(vector)) for face, vector in found if vector is not None]
        report.examples += add_examples(db, person, [example for _, example in examples])
        chosen = next((example for face, example in examples if face.is_cover), None)
        if chosen is not None and cover is None:
            theirs = (e for e in read_examples(db, person) if e.picture and chosen in KnownFaces([e]))
            set_cover(db, person, next((e.number or 0 for e in theirs), 0))
        lost = [len(record.examples) - len(examples), 0]
        for label in record.labels:
            if (vector := self._describe(label)) is None:
                lost[1] += 1
            else:
                report.labels += self._add_label(person, label, vector)
        for tag in record.tags:
            add_tag(db, person, tag.content, None if tag.box is None else Box(*tag.box))
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

    def _add_aliases(self, person: int, aliases: list[str]) -> None:
        for alias in aliases:
            if not self._is_taken(alias):
                insert_row(self._db, "aliases", person=person, name=alias, key=name_key(alias))
            elif find_person(self._db, alias) != person:
                self._report.notes.append(f"the alias {alias!r} is somebody else's here: left out")

    def _add_label(self, person: int, label: _LabelRecord, vector: Vector) -> int:
        """Keep what was said of a face, unless something was said of it here; return how many were added."""
        face = Example(vector, None, Box(*label.box), None, content=label.content)
        reference = reference_in(face)
        said = [] if reference is None else labels_on_face(self._db, reference)
        if any(who == person or (is_match and label.is_match) for _, who, is_match in said):
            return 0
        label_face(self._db, person, face, label.is_match, label.added)
        return 1
