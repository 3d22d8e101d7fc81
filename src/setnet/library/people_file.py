"""The JSON file in which people travel from one library to another: what it holds, written and read.

A file may come from anywhere. Whatever does not fit is an error that names the place in the file.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library.person import ORIGINS, checked_name, is_id, key_of
from setnet.library.photos import HASH_BYTES


def raise_invalid_field(at: str, expected: str) -> NoReturn:
    """Raise for something in a file of people that does not fit."""
    raise InvalidInputError(f"the file of people does not fit at {at or 'its beginning'}: {expected}")


class Fields:
    """A JSON object; reading a field that is missing or of another type is an error that says where."""

    def __init__(self, value: Any, at: str) -> None:
        if not isinstance(value, dict):
            raise_invalid_field(at, "an object is expected")
        self.value, self.at = value, at

    def text(self, name: str, longest: int) -> str:
        """Return a text that can be written as UTF-8."""
        value = self.value.get(name)
        if not isinstance(value, str) or len(value) > longest:
            raise_invalid_field(self._place(name), f"a text of at most {longest:,} characters is expected")
        if "\0" in value or not _is_unicode(value):
            raise_invalid_field(
                self._place(name), "a text without null characters and halves of surrogate pairs is expected"
            )
        return value

    def text_or_none(self, name: str, longest: int) -> str | None:
        """Return a text, or None where the field is null or missing."""
        return None if self.value.get(name) is None else self.text(name, longest)

    def number(self, name: str | int, lowest: float, highest: float) -> float:
        """Return a number between two limits."""
        value = self.value.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise_invalid_field(self._place(name), "a number is expected")
        if not lowest <= value <= highest or not math.isfinite(value):
            raise_invalid_field(self._place(name), f"a number between {lowest:g} and {highest:g} is expected")
        return float(value)

    def integer(self, name: str, lowest: int, highest: int) -> int:
        """Return a whole number between two limits."""
        value = self.number(name, lowest, highest)
        if value != int(value):
            raise_invalid_field(self._place(name), "a whole number is expected")
        return int(value)

    def flag(self, name: str) -> bool:
        """Return true or false; false where the field is missing."""
        value = self.value.get(name, False)
        if not isinstance(value, bool):
            raise_invalid_field(self._place(name), "true or false is expected")
        return value

    def list(self, name: str, most: int) -> list[Any]:
        """Return a list, empty where the field is missing."""
        value = self.value.get(name, [])
        if not isinstance(value, list) or len(value) > most:
            raise_invalid_field(self._place(name), f"a list of at most {most:,} is expected")
        return value

    def _place(self, name: str | int) -> str:
        return f"{self.at}.{name}".lstrip(".")


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


FORMAT, VERSION = "setnet people", 1
LARGEST_FILE = 256 << 20  # bytes
_LARGEST_PICTURE = 1 << 20
_MOST_PEOPLE, _MOST_EXAMPLES = 100_000, 1_000_000
_JPEG = b"\xff\xd8\xff"
_LARGEST_COORDINATE = 1e7
_LATEST = 1e11  # seconds since 1970


@dataclass(frozen=True, slots=True, eq=False)
class ExampleRecord:
    """An example face in a file; without its descriptor it is found again by `content` and `box`."""

    descriptor: NDArray[np.float32] | None
    origin: str
    source: str | None
    content: bytes | None
    box: Box | None
    picture: bytes | None
    added: float
    is_cover: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the example as values that JSON can hold."""
        return {
            "descriptor": _vector_text(self.descriptor),
            "origin": self.origin,
            "source": self.source,
            "content": None if self.content is None else self.content.hex(),
            "box": None if self.box is None else list(self.box),
            "picture": None if self.picture is None else base64.b64encode(self.picture).decode(),
            "added": self.added,
            "is_cover": self.is_cover,
        }


@dataclass(frozen=True, slots=True, eq=False)
class LabelRecord:
    """A confirmed or refused face in a file."""

    is_match: bool
    content: bytes
    box: Box
    descriptor: NDArray[np.float32] | None
    added: float

    def to_dict(self) -> dict[str, Any]:
        """Return the label as values that JSON can hold."""
        return {
            "is_match": self.is_match,
            "content": self.content.hex(),
            "box": list(self.box),
            "descriptor": _vector_text(self.descriptor),
            "added": self.added,
        }


@dataclass(frozen=True, slots=True, eq=False)
class PersonRecord:
    """A person in a file."""

    id: str
    name: str
    aliases: tuple[str, ...]
    note: str
    added: float
    examples: tuple[ExampleRecord, ...]
    labels: tuple[LabelRecord, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the person as values that JSON can hold."""
        return {
            "id": self.id,
            "name": self.name,
            "aliases": list(self.aliases),
            "note": self.note,
            "added": self.added,
            "examples": [example.to_dict() for example in self.examples],
            "labels": [label.to_dict() for label in self.labels],
        }


@dataclass(frozen=True, slots=True, eq=False)
class PeopleFile:
    """All of a file; `model` and `dim` say what made its descriptors, None where it has none."""

    model: str | None
    dim: int | None
    people: tuple[PersonRecord, ...]

    def to_bytes(self) -> bytes:
        """Return the file."""
        about = {"format": FORMAT, "version": VERSION, "model": self.model, "dim": self.dim}
        return json.dumps(about | {"people": [p.to_dict() for p in self.people]}, indent=1).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> PeopleFile:
        """Return what a file says."""
        if len(data) > LARGEST_FILE:
            raise InvalidInputError(f"a file of people has at most {LARGEST_FILE >> 20} MB")
        file = Fields(_parsed(data), "")
        if file.value.get("format") != FORMAT:
            raise InvalidInputError("no file of people: `setnet people export` writes them")
        if file.value.get("version") != VERSION:
            raise InvalidInputError(
                f"a file of people of version {file.value.get('version')!r}; this setnet reads {VERSION}: "
                "update setnet"
            )
        dim = None if file.value.get("dim") is None else file.integer("dim", 1, 1 << 20)
        model = file.text_or_none("model", 1000)
        parts = [Fields(v, f"people[{n}]") for n, v in enumerate(file.list("people", _MOST_PEOPLE))]
        if sum(len(part.list("examples", _MOST_EXAMPLES)) for part in parts) > _MOST_EXAMPLES:
            raise InvalidInputError(f"a file of people has at most {_MOST_EXAMPLES:,} examples")
        people = tuple(_person(part, dim) for part in parts)
        _check_no_doubles(people)
        return cls(model, dim, people)


def _parsed(data: bytes) -> Any:
    def refused(text: str) -> NoReturn:
        raise InvalidInputError(f"no file of people: {text} is no number of JSON")

    try:
        return json.loads(data, parse_constant=refused)
    except RecursionError:
        raise InvalidInputError("no file of people: its JSON is nested too deeply") from None
    except (ValueError, UnicodeError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(f"no file of people: no valid JSON ({str(error)[:200]})") from None


def _check_no_doubles(people: Sequence[PersonRecord]) -> None:
    for what, values in (("id", [p.id for p in people]), ("name", [key_of(p.name) for p in people])):
        seen: set[str] = set()
        for number, value in enumerate(values):
            if value in seen:
                raise_invalid_field(
                    f"people[{number}].{what}", f"another person in the file has the {what} {value!r}"
                )
            seen.add(value)


def _person(fields: Fields, dim: int | None) -> PersonRecord:
    number = fields.text("id", 12)
    if not is_id(number):
        raise_invalid_field(f"{fields.at}.id", "12 hexadecimal digits are expected")
    examples = fields.list("examples", _MOST_EXAMPLES)
    labels = fields.list("labels", _MOST_EXAMPLES)
    return PersonRecord(
        number,
        _name(fields.text("name", 1000), f"{fields.at}.name"),
        tuple(_name(alias, f"{fields.at}.aliases") for alias in fields.list("aliases", 1000)),
        fields.text("note", 10_000),
        fields.number("added", -_LATEST, _LATEST),
        tuple(_example(Fields(v, f"{fields.at}.examples[{n}]"), dim) for n, v in enumerate(examples)),
        tuple(_label(Fields(v, f"{fields.at}.labels[{n}]"), dim) for n, v in enumerate(labels)),
    )


def _example(fields: Fields, dim: int | None) -> ExampleRecord:
    origin = fields.text("origin", 20)
    return ExampleRecord(
        _vector(fields, dim),
        origin if origin in ORIGINS else "import",
        fields.text_or_none("source", 1 << 15),
        None if fields.value.get("content") is None else _content(fields),
        None if fields.value.get("box") is None else _box(fields),
        _picture(fields),
        fields.number("added", -_LATEST, _LATEST),
        fields.flag("is_cover"),
    )


def _label(fields: Fields, dim: int | None) -> LabelRecord:
    if not isinstance(is_match := fields.value.get("is_match"), bool):
        raise_invalid_field(f"{fields.at}.is_match", "true or false is expected")
    added = fields.number("added", -_LATEST, _LATEST)
    return LabelRecord(is_match, _content(fields), _box(fields), _vector(fields, dim), added)


def _name(value: Any, at: str) -> str:
    if not isinstance(value, str):
        raise_invalid_field(at, "a name is expected")
    try:
        return checked_name(value)
    except InvalidInputError as error:
        raise_invalid_field(at, str(error))


def _content(fields: Fields) -> bytes:
    try:
        content = bytes.fromhex(fields.text("content", 2 * HASH_BYTES))
    except ValueError:
        content = b""
    if len(content) != HASH_BYTES:
        raise_invalid_field(f"{fields.at}.content", f"{2 * HASH_BYTES} hexadecimal digits are expected")
    return content


def _box(fields: Fields) -> Box:
    limits = (-_LARGEST_COORDINATE, _LARGEST_COORDINATE)
    corners = Fields(dict(enumerate(fields.list("box", 4))), f"{fields.at}.box")
    box = Box(*(corners.number(n, *limits) for n in range(4)))
    if box.width <= 0 or box.height <= 0:
        raise_invalid_field(f"{fields.at}.box", "x0, y0, x1, y1 with x0 < x1 and y0 < y1 are expected")
    return box


def _picture(fields: Fields) -> bytes | None:
    if fields.value.get("picture") is None:
        return None
    picture = _base64(fields, "picture", _LARGEST_PICTURE)
    if not picture.startswith(_JPEG):
        raise_invalid_field(f"{fields.at}.picture", "a JPEG is expected")
    return picture


def _vector(fields: Fields, dim: int | None) -> NDArray[np.float32] | None:
    if dim is None or fields.value.get("descriptor") is None:
        return None
    data = _base64(fields, "descriptor", 4 * dim)
    vector = (
        np.frombuffer(data, "<f4").astype(np.float32) if len(data) == 4 * dim else np.zeros(0, np.float32)
    )
    if not np.isfinite(vector).all() or not vector.any():
        raise_invalid_field(f"{fields.at}.descriptor", f"{dim} finite numbers, not all zero, are expected")
    return vector


def _vector_text(vector: NDArray[np.float32] | None) -> str | None:
    return (
        None
        if vector is None or not vector.any()
        else base64.b64encode(vector.astype("<f4").tobytes()).decode()
    )


def _base64(fields: Fields, name: str, most: int) -> bytes:
    try:
        return base64.b64decode(fields.text(name, 4 * (most + 2) // 3 + 2), validate=True)
    except (binascii.Error, ValueError) as error:
        if isinstance(error, InvalidInputError):
            raise
        raise_invalid_field(f"{fields.at}.{name}", "no valid base64")
