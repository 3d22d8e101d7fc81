"""A saved person: names of every script, example faces, labels on matches, look-up.

A name has a key, by which people are found whatever the spelling, and an id that never changes.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, near_names
from setnet.faces import Box
from setnet.library.face_references import FaceReference, resolve_all_references
from setnet.library.paths import display_path
from setnet.library.schema import FACES
from setnet.wording import utc_time

if TYPE_CHECKING:
    from setnet.faces import Box

_LONGEST = 200
_ID_BYTES = 6
_LETTERS_PER_SLIP = 8
# Zero-width non-joiner and joiner, Mongolian vowel separator: part of how Persian, Hindi and other names are
# spelt, and told from their absence by few.
_JOINERS = "\u200c\u200d\u180e"
_DIRECTIONS = "\u200e\u200f\u061c"  # marks that come along when right-to-left names are copied
_NOT_IN_KEYS = dict.fromkeys(map(ord, _JOINERS + _DIRECTIONS))
_NO_DIRECTIONS = dict.fromkeys(map(ord, _DIRECTIONS))
# Controls, formats such as overrides of direction, halves of pairs, ends of lines and paragraphs. Characters
# that this version of Python does not know are allowed: names are what many new ones are made for.
_UNPRINTABLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}


def name_key(name: str) -> str:
    """Return the key under which a name is stored; a file name that is no text gets one nobody has.

    Joiners are left out: names that differ in nothing visible are one name.
    """
    text = name.encode("utf-8", "backslashreplace").decode().translate(_NOT_IN_KEYS)
    return unicodedata.normalize("NFKC", text).casefold().strip()


def checked_name(name: str) -> str:
    r"""Return a name as it is stored; one that is empty, too long or not printable is an error.

    >>> checked_name("  Zoe\u0308 ")
    'Zoë'
    """
    clean = unicodedata.normalize("NFC", name.translate(_NO_DIRECTIONS)).strip().strip(_JOINERS).strip()
    if group_number(clean) is not None:
        raise InvalidInputError(f"name {name!r}: a group of faces is called so; choose another name")
    if not clean or len(clean) > _LONGEST or not all(map(_is_printable, clean)):
        raise InvalidInputError(f"name {name!r}: 1 to {_LONGEST} printable characters are expected")
    return clean


_GROUP_ID = re.compile(r"g([1-9]\d{0,17})")


def group_number(group_id: str) -> int | None:
    """Return the number of a group's id; None for what is no id.

    >>> group_number("g17"), group_number("G17 "), group_number("g017"), group_number("anna")
    (17, 17, None, None)
    """
    found = _GROUP_ID.fullmatch(group_id.strip().lower())
    return None if found is None else int(found[1])


def spelling_hints(db: sqlite3.Connection, new: Iterable[str]) -> list[str]:
    """Return a remark for each new name that another person's may be a spelling of."""
    known = [(name, _letters(name)) for (name,) in db.execute("SELECT name FROM people ORDER BY id")]
    hints, said = [], set[frozenset[str]]()
    for name in new:
        letters = _letters(name)
        for other, others in known:
            pair = frozenset((name, other))
            if other != name and pair not in said and _is_spelling(letters, others):
                said.add(pair)
                hints.append(
                    f"{name!r} may be another spelling of {other!r}: `setnet people merge`, or `people edit "
                    "--alias`, makes the two one"
                )
    return hints


def _letters(name: str) -> str:
    """Return the words of a name in the order of the alphabet, without accents and signs."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return " ".join(sorted(re.findall(r"\w+", plain.casefold())))


def _is_spelling(one: str, other: str) -> bool:
    """Return whether names are the same but for a letter in eight, or the order of their words."""
    if abs(len(one) - len(other)) > max(len(one), len(other)) // _LETTERS_PER_SLIP:
        return False
    return one == other or SequenceMatcher(None, one, other).ratio() >= 1 - 1 / _LETTERS_PER_SLIP


def _is_printable(character: str) -> bool:
    code = ord(character)
    is_noncharacter = code & 0xFFFE == 0xFFFE or 0xFDD0 <= code <= 0xFDEF
    return character in _JOINERS or not (is_noncharacter or unicodedata.category(character) in _UNPRINTABLE)


def new_id() -> str:
    """Return a person's id, which no other has or will have: 12 random hexadecimal digits."""
    return secrets.token_hex(_ID_BYTES)


def is_id(text: str) -> bool:
    """Return whether a text has the form of a person's id.

    >>> is_id("0123456789ab"), is_id("Anna")
    (True, False)
    """
    return re.fullmatch(rf"[0-9a-f]{{{2 * _ID_BYTES}}}", text) is not None


# A photo given by the user, a match they confirmed, a group they named, an imported file.
ORIGINS = ("portrait", "confirmed", "group", "import")


@dataclass(frozen=True, slots=True, eq=False)
class Example:
    """An example face of a person.

    Attributes
    ----------
    descriptor
        What the face is compared by.
    source, content, box
        The photo it came from, the hash of its file's bytes where that is known, and the place in it.
    picture
        A small JPEG of the face.
    origin
        How it became an example: one of `ORIGINS`.
    number, added
        Its number in the library, which is never another's, and since when; None before it is kept.
    """

    descriptor: NDArray[np.float32]
    source: str | None = None
    box: Box | None = None
    picture: bytes | None = None
    origin: str = "portrait"
    content: bytes | None = None
    number: int | None = None
    added: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return where the face comes from, as values that JSON can hold."""
        return {
            "number": self.number,
            "origin": self.origin,
            "source": self.source,
            "content": None if self.content is None else self.content.hex(),
            "box": None if self.box is None else list(self.box),
            "has_picture": self.picture is not None,
            "added": None if self.added is None else utc_time(self.added).isoformat(),
        }


# Without the person, in the order of `parse_example`.
EXAMPLE_COLUMNS = "descriptor, source, x0, y0, x1, y1, picture, origin, content, id, added"


def parse_example(row: Sequence[Any]) -> Example:
    """Return the example of a row with `EXAMPLE_COLUMNS`."""
    from setnet.faces import Box

    descriptor, source, x0, y0, x1, y1, picture, origin, content, number, added = row
    return Example(
        descriptor_from(descriptor),
        None if source is None else display_path(source),
        None if x0 is None else Box(x0, y0, x1, y1),
        picture,
        origin,
        content,
        number,
        added,
    )


def read_examples(db: sqlite3.Connection, person: int) -> list[Example]:
    """Return all examples of a person, oldest first."""
    rows = db.execute(f"SELECT {EXAMPLE_COLUMNS} FROM examples WHERE person = ? ORDER BY id", (person,))
    return [parse_example(row) for row in rows]


def stack_examples(name: str, examples: Sequence[Example]) -> NDArray[np.float32]:
    """Return the (n, dim) descriptors of a person's examples; a person without any is an error."""
    if not examples:
        raise InvalidInputError(
            f"{name!r} has no example face left, as they were removed or the photos they "
            "came from forgotten: `setnet people add NAME PHOTO...` gives new ones"
        )
    return np.stack([example.descriptor for example in examples])


def cover_picture(cover: int | None, examples: Sequence[Example]) -> bytes | None:
    """Return the picture of the example that is the cover, else of the oldest that has one."""
    pictures = {example.number: example.picture for example in examples if example.picture}
    return pictures.get(cover) or next(iter(pictures.values()), None)


def example_values(example: Example) -> dict[str, Any]:
    """Return the columns of a new row, but for the person and the time."""
    box: Sequence[float | None] = (None,) * 4 if example.box is None else [float(x) for x in example.box]
    return {
        "descriptor": example.descriptor.astype("<f4").tobytes(),
        "source": None if example.source is None else example.source.encode("utf-8", "surrogateescape"),
        **dict(zip(("x0", "y0", "x1", "y1"), box, strict=True)),
        "picture": example.picture,
        "origin": example.origin,
        "content": example.content,
    }


def descriptor_from(stored: bytes) -> NDArray[np.float32]:
    """Return the descriptor of its stored bytes."""
    return np.frombuffer(stored, "<f4").astype(np.float32)


def check_descriptor(descriptor: NDArray[np.float32], dim: int, name: str) -> None:
    """Raise when a descriptor is none of a library with descriptors of `dim` numbers."""
    if descriptor.shape != (dim,) or not np.isfinite(descriptor).all():
        raise InvalidInputError(
            f"a descriptor of shape {descriptor.shape} for {name!r}: this library's have {dim} finite numbers"
        )


@dataclass(frozen=True, slots=True)
class Person:
    """A named person, how many example faces are kept of them, and whether any of these has a picture.

    Attributes
    ----------
    name
        What they are called; `id` stays the same whatever it is.
    aliases
        Other names that find them.
    note
        What the user wants to remember of them.
    cover
        The number of the example whose picture stands for them; None for the oldest that has one.
    change
        The number of the change in the journal that led here, in what a change returns.
    """

    name: str
    examples: int
    added: datetime
    has_picture: bool
    id: str
    aliases: tuple[str, ...] = ()
    note: str = ""
    cover: int | None = None
    change: int | None = None


Who = str | Person  # a name, an alias or an id; or the person, whoever else may be called like them
_MAX_NAMES = 20
_SELECT_PEOPLE = (
    "SELECT people.id, people.name, count(examples.id), people.added, max(examples.picture IS NOT NULL), "
    "uid, note, cover FROM people LEFT JOIN examples ON examples.person = people.id"
)


def all_people(db: sqlite3.Connection) -> list[Person]:
    """Return all people in the order of their names."""
    aliases: defaultdict[int, list[str]] = defaultdict(list)
    for person, name in db.execute("SELECT person, name FROM aliases ORDER BY key"):
        aliases[person].append(name)
    rows = db.execute(f"{_SELECT_PEOPLE} GROUP BY people.id ORDER BY people.key")
    return [_person(row, aliases.get(row[0], ())) for row in rows]


def person_at(db: sqlite3.Connection, row: int, change: int | None = None) -> Person:
    """Return the person of a row of the table."""
    found = db.execute(f"{_SELECT_PEOPLE} WHERE people.id = ? GROUP BY people.id", (row,)).fetchone()
    aliases = db.execute("SELECT name FROM aliases WHERE person = ? ORDER BY key", (row,)).fetchall()
    return _person(found, [name for (name,) in aliases], change)


def find_person(db: sqlite3.Connection, text: str) -> int | None:
    """Return the row of whoever has this name, else this alias, else this id; None for nobody."""
    key = name_key(text)
    for statement in ("SELECT id FROM people WHERE key = ?", "SELECT person FROM aliases WHERE key = ?"):
        found = db.execute(statement, (key,)).fetchone()
        if found is not None:
            return int(found[0])
    return _with_id(db, key)


def _with_id(db: sqlite3.Connection, uid: str) -> int | None:
    found = db.execute("SELECT id FROM people WHERE uid = ?", (uid,)).fetchone()
    return None if found is None else int(found[0])


def require_person(db: sqlite3.Connection, who: Who) -> int:
    """Return the row of a person; one who is not there is an error that lists those who are."""
    text = who.name if isinstance(who, Person) else who
    found = _with_id(db, who.id) if isinstance(who, Person) else find_person(db, text)
    if found is None:
        saved = saved_names(text, [name for (name,) in db.execute("SELECT name FROM people ORDER BY key")])
        raise InvalidInputError(f"no person {text!r}: {saved} (`setnet people add NAME PHOTO...` adds one)")
    return found


def saved_names(text: str, names: Sequence[str]) -> str:
    """Return who is saved, and whom of them a name may mean that is nobody's: the end of an error.

    >>> saved_names("Clea", ["Anna", "Cleo"])
    'known are Anna, Cleo; did you mean Cleo?'
    """
    if not names:
        return "nobody is saved yet"
    near = near_names(text, names)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return f"known are {', '.join(names[:_MAX_NAMES])}{hint}"


def person_name(db: sqlite3.Connection, row: int) -> str:
    """Return the name of the person of a row."""
    return str(db.execute("SELECT name FROM people WHERE id = ?", (row,)).fetchone()[0])


def _person(row: Sequence[Any], aliases: Sequence[str], change: int | None = None) -> Person:
    _, name, examples, added, has_picture, uid, note, cover = row
    facts = name, examples, utc_time(added), bool(has_picture), uid, tuple(aliases), note, cover, change
    return Person(*facts)


@dataclass(frozen=True, slots=True, eq=False)
class Label:
    """What a user said of a face: that it is a person (`is_match`), or that it is not.

    Attributes
    ----------
    person, is_match
        Who it is about, by name, and whether the face is theirs.
    photo_id, face
        Where the face is now: the photo, and the number of the face in it, from 0. None when no photo of
        this content is in the library.
    descriptor
        The face as it was described.
    content, box
        What refers to the face, whatever becomes of its photo.
    id, added
        Its number, the same for each copy of the photo, and since when.
    """

    person: str
    is_match: bool
    photo_id: str | None
    face: int | None
    descriptor: NDArray[np.float32]
    content: bytes
    box: Box
    id: int
    added: float


def read_labels(db: sqlite3.Connection, person: int) -> list[Label]:
    """Return all labels on a person, oldest first; of a photo that was copied, one for each copy."""
    name = person_name(db, person)
    rows = db.execute(
        "SELECT content, x0, y0, x1, y1, descriptor, is_match, id, added FROM labels "
        "WHERE person = ? ORDER BY id",
        (person,),
    ).fetchall()
    references = [FaceReference(row[0], Box(*row[1:5])) for row in rows]
    found = []
    for reference, places, row in zip(references, resolve_all_references(db, references), rows, strict=True):
        stored, is_match, number, added = row[5:]
        now: list[tuple[str | None, int | None]] = [(str(photo), face) for photo, face in places]
        for photo_id, face in now or [(None, None)]:
            vector = descriptor_from(stored)
            found.append(Label(name, bool(is_match), photo_id, face, vector, *reference, number, added))
    return found


Faces = frozenset[tuple[str, int]]  # each the id of a photo and the number of a face in it, from 0


class PersonFaces(NamedTuple):
    """What is known of faces of photos and one person.

    `tagged` are photos with a tag of the person at which there is no face, or that says no place; the box is
    that of the tag. A tag at a face is a confirmed face.
    """

    confirmed: Faces = frozenset()
    rejected: Faces = frozenset()
    grouped: Faces = frozenset()
    tagged: Mapping[str, Box | None] = MappingProxyType({})


def read_known_faces(db: sqlite3.Connection, person: int | None = None) -> dict[int, PersonFaces]:
    """Return by person the faces that are theirs, those that are not, and others in groups of theirs.

    They are of one person, or of all.
    """
    whose = "1" if person is None else "person = ?1"
    values = () if person is None else (person,)
    judged = db.execute(
        f"SELECT person, is_match, content, x0, y0, x1, y1 FROM labels WHERE {whose} UNION ALL "
        "SELECT person, 1, content, x0, y0, x1, y1 FROM examples "
        f"WHERE {whose} AND content IS NOT NULL AND x0 IS NOT NULL",
        values,
    ).fetchall()
    references = [FaceReference(content, Box(*box)) for _, _, content, *box in judged]
    confirmed, rejected, grouped = (defaultdict[int, set[tuple[str, int]]](set) for _ in range(3))
    for (row, is_match, *_), places in zip(judged, resolve_all_references(db, references), strict=True):
        (confirmed if is_match else rejected)[row] |= {(str(photo), face) for photo, face in places}
    tagged = defaultdict[int, dict[str, Box | None]](dict)
    for row, tag in _tags_by_person(db, whose, values):
        if tag.face is None:
            tagged[row][tag.photo_id] = tag.box
        else:
            confirmed[row].add((tag.photo_id, tag.face))
    members = db.execute(
        "SELECT person, group_members.id FROM face_groups JOIN group_members ON grp = face_groups.id "
        f"JOIN photos ON photos.id = group_members.id / {FACES} AND state = 'ready' "
        f"WHERE person IS NOT NULL AND {whose}",
        values,
    )
    for row, number in members:
        grouped[row].add((str(number // FACES), number % FACES))
    rows = {*confirmed, *rejected, *grouped, *tagged} if person is None else {person}
    return {
        row: PersonFaces(
            frozenset(confirmed[row] - rejected[row]),
            frozenset(rejected[row]),
            frozenset(grouped[row] - rejected[row] - confirmed[row]),
            tagged[row],
        )
        for row in rows
    }


class Tag(NamedTuple):
    """A person whom the user sees in a photo, and where; `face` is the number of the face there, if any."""

    person: str
    photo_id: str
    box: Box | None
    face: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the tag as values that JSON can hold."""
        return self._asdict() | {"box": None if self.box is None else list(self.box)}


def read_tags(db: sqlite3.Connection, photo: int) -> list[Tag]:
    """Return the tags on a photo, oldest first."""
    return [tag for _, tag in _tags_by_person(db, "photos.id = ?1", (photo,))]


def _tags_by_person(db: sqlite3.Connection, condition: str, values: tuple[int, ...]) -> list[tuple[int, Tag]]:
    """Return the tags that meet a condition, each after its person, for each copy of their photo."""
    rows = db.execute(
        "SELECT person, people.name, photos.id, content, x0, y0, x1, y1 FROM tags "
        "JOIN people ON people.id = person JOIN photos ON hash = content AND state = 'ready' "
        f"WHERE {condition} ORDER BY tags.id, photos.id",
        values,
    ).fetchall()
    references = [FaceReference(row[3], Box(*row[4:])) for row in rows if row[4] is not None]
    faces = {
        (reference, photo): face
        for reference, places in zip(references, resolve_all_references(db, references), strict=True)
        for photo, face in places
    }
    found = []
    for person, name, photo, content, *corners in rows:
        box = None if corners[0] is None else Box(*corners)
        face = None if box is None else faces.get((FaceReference(content, box), photo))
        found.append((person, Tag(name, str(photo), box, face)))
    return found


def labels_on_face(db: sqlite3.Connection, reference: FaceReference) -> list[tuple[int, int, bool]]:
    """Return the labels on a face, of all people: (number, person, whether it is theirs)."""
    rows = db.execute(
        "SELECT id, person, is_match, x0, y0, x1, y1 FROM labels WHERE content = ? ORDER BY id",
        (reference.content,),
    )
    return [
        (number, person, bool(is_match))
        for number, person, is_match, *box in rows
        if reference.is_same(FaceReference(reference.content, Box(*box)))
    ]
