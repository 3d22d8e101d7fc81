"""The saved people of a library and their example faces."""

from __future__ import annotations

import os
import sqlite3
import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library.store.database import Database
from setnet.library.store.paths import is_below, shown

if TYPE_CHECKING:
    from setnet.faces import Box

_LONGEST_NAME = 200
# Zero-width non-joiner and joiner: invisible, but part of how Persian, Hindi and other names are spelt.
_JOINERS = "\u200c\u200d"
_NO_JOINERS = dict.fromkeys(map(ord, _JOINERS))


@dataclass(frozen=True, slots=True)
class Person:
    """A named person, how many example faces are kept of them, and whether any of these has a picture."""

    name: str
    examples: int
    added: float
    has_picture: bool

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> Person:
        """Return the person of a row of the database."""
        return cls(row[0], row[1], row[2], bool(row[3]))

    def to_dict(self) -> dict[str, Any]:
        """Return the person as values that JSON can hold."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Example:
    """An example face of a person; `source` is the photo it came from, `picture` a small JPEG of it."""

    descriptor: NDArray[np.float32]
    source: str | None = None
    box: Box | None = None
    picture: bytes | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return where the face comes from, as values that JSON can hold."""
        return {"source": self.source, "box": None if self.box is None else list(self.box)}


@dataclass(frozen=True, slots=True)
class PersonDetails:
    """A named person with their example faces, and in how many photos of the library they are."""

    person: Person
    photos: int
    examples: tuple[Example, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the details as values that JSON can hold; `examples` has each of them."""
        return self.person.to_dict() | {
            "photos": self.photos,
            "examples": [example.to_dict() for example in self.examples],
        }


class People:
    """The people of a library: a collection by name, upper and lower case alike.

    Iterating yields `Person`; `name in people` and `len(people)` work as expected.
    """

    def __init__(self, database: Database, dim: int) -> None:
        self._database = database
        self._dim = dim

    def __iter__(self) -> Iterator[Person]:
        with self._database.reading() as db:
            rows = db.execute(f"{_SELECT} GROUP BY people.id ORDER BY people.key").fetchall()
        return iter([Person.of_row(row) for row in rows])

    def __len__(self) -> int:
        with self._database.reading() as db:
            return int(db.execute("SELECT count(*) FROM people").fetchone()[0])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def get(self, name: str) -> Person:
        """Return a person; an unknown name is an error that lists the known ones."""
        found = self._find(name)
        if found is None:
            raise InvalidInputError(self._unknown(name))
        return found

    def examples(self, name: str) -> list[Example]:
        """Return the example faces of a person, oldest first."""
        self.get(name)
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT descriptor, source, x0, y0, x1, y1, picture FROM examples "
                "JOIN people ON people.id = person WHERE key = ? ORDER BY examples.id",
                (key_of(name),),
            ).fetchall()
        return [_example(row) for row in rows]

    def descriptors(self, name: str) -> NDArray[np.float32]:
        """Return the (n, dim) descriptors of a person's examples; a person without any is an error."""
        examples = self.examples(name)
        if not examples:
            raise InvalidInputError(
                f"{self.get(name).name!r} has no example face left, as the photos they came from were "
                "forgotten: `setnet people add NAME PHOTO...` gives new ones"
            )
        return np.stack([example.descriptor for example in examples])

    def picture(self, name: str) -> bytes | None:
        """Return a small JPEG of a person's face: the oldest example's that has one."""
        return next((example.picture for example in self.examples(name) if example.picture), None)

    def add(self, name: str, examples: Sequence[Example]) -> Person:
        """Keep example faces of a person, new or known."""
        name = _checked(name)
        if not examples:
            raise InvalidInputError(f"no example face for {name!r}: give at least one photo of them")
        for example in examples:
            if example.descriptor.shape != (self._dim,) or not np.isfinite(example.descriptor).all():
                raise InvalidInputError(
                    f"a descriptor of shape {example.descriptor.shape} for {name!r}: "
                    f"this library's have {self._dim} finite numbers"
                )
        with self._database.writing() as db:
            db.execute(
                "INSERT INTO people (name, key, added) VALUES (?, ?, ?) ON CONFLICT (key) DO NOTHING",
                (name, key_of(name), time.time()),
            )
            person = _person_id(db, name)
            for example in examples:
                _insert(db, person, example)
        return self.get(name)

    def rename(self, name: str, new: str) -> Person:
        """Give a person another name; one that is taken is refused, as that is a merge."""
        new = _checked(new)
        self.get(name)
        if key_of(new) != key_of(name) and new in self:
            raise InvalidInputError(f"{new!r} is taken: to make the two one person, merge them")
        with self._database.writing() as db:
            db.execute("UPDATE people SET name = ?, key = ? WHERE key = ?", (new, key_of(new), key_of(name)))
        return self.get(new)

    def merge(self, into: str, others: Sequence[str]) -> Person:
        """Give the examples of `others` to `into`; the other names are gone."""
        self.get(into)
        for other in others:
            self.get(other)
            if key_of(other) == key_of(into):
                raise InvalidInputError(f"{other!r} cannot be merged into itself")
        with self._database.writing() as db:
            target = _person_id(db, into)
            for other in {key_of(other): other for other in others}.values():
                source = _person_id(db, other)
                db.execute("UPDATE examples SET person = ? WHERE person = ?", (target, source))
                db.execute("DELETE FROM people WHERE id = ?", (source,))
        return self.get(into)

    def remove(self, *names: str) -> None:
        """Delete people and their example faces for good, free pages and log included."""
        for name in names:
            self.get(name)
        with self._database.writing() as db:
            db.executemany("DELETE FROM people WHERE key = ?", [(key_of(name),) for name in names])
        self._database.erase_traces()

    def _find(self, name: str) -> Person | None:
        with self._database.reading() as db:
            row = db.execute(f"{_SELECT} WHERE people.key = ? GROUP BY people.id", (key_of(name),)).fetchone()
        return None if row is None else Person.of_row(row)

    def _unknown(self, name: str) -> str:
        names = [p.name for p in self][:20]
        known = f"known are {', '.join(names)}" if names else "nobody is saved yet"
        return f"no person {name!r}: {known} (`setnet people add NAME PHOTO...` adds one)"


def forget_sources(db: sqlite3.Connection, roots: Sequence[bytes]) -> int:
    """Delete the examples that come from these photos or from photos below these folders.

    Whoever loses their last example stays, without any. Returns how many examples were deleted.
    """
    places = [shown(root).encode() for root in roots]
    rows = db.execute("SELECT id, source FROM examples WHERE source IS NOT NULL").fetchall()
    gone = [
        (i,)
        for i, source in rows
        if any(is_below(os.path.normpath(shown(source)).encode(), place) for place in places)
    ]
    db.executemany("DELETE FROM examples WHERE id = ?", gone)
    return len(gone)


_SELECT = (
    "SELECT people.name, count(examples.id), people.added, max(examples.picture IS NOT NULL) FROM people "
    "LEFT JOIN examples ON examples.person = people.id"
)


def key_of(name: str) -> str:
    """Return the key under which a name is stored; a file name that is no text gets one nobody has.

    Joiners are left out: names that differ in nothing visible are one name.
    """
    text = name.encode("utf-8", "backslashreplace").decode().translate(_NO_JOINERS)
    return unicodedata.normalize("NFKC", text).casefold().strip()


def _checked(name: str) -> str:
    clean = unicodedata.normalize("NFC", name).strip().strip(_JOINERS).strip()
    if not clean or len(clean) > _LONGEST_NAME or not clean.translate(_NO_JOINERS).isprintable():
        raise InvalidInputError(f"name {name!r}: 1 to {_LONGEST_NAME} printable characters are expected")
    return clean


def _person_id(db: sqlite3.Connection, name: str) -> int:
    row = db.execute("SELECT id FROM people WHERE key = ?", (key_of(name),)).fetchone()
    if row is None:
        raise InvalidInputError(f"no person {name!r}: they were removed a moment ago")
    return int(row[0])


def _insert(db: sqlite3.Connection, person: int, example: Example) -> None:
    box = example.box
    corners = (None,) * 4 if box is None else (float(box.x0), float(box.y0), float(box.x1), float(box.y1))
    source = None if example.source is None else example.source.encode("utf-8", "surrogateescape")
    db.execute(
        "INSERT INTO examples (person, descriptor, source, x0, y0, x1, y1, picture, added) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            person,
            example.descriptor.astype("<f4").tobytes(),
            source,
            *corners,
            example.picture,
            time.time(),
        ),
    )


def _example(row: Sequence[Any]) -> Example:
    from setnet.faces import Box

    descriptor, source, x0, y0, x1, y1, picture = row
    box = None if x0 is None else Box(x0, y0, x1, y1)
    return Example(
        np.frombuffer(descriptor, "<f4").astype(np.float32),
        None if source is None else shown(source),
        box,
        picture,
    )
