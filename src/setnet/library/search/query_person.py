"""Resolve the text that names a person of a query: a saved name, a photo, or a folder of photos."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, PhotoError
from setnet.library.folder_scan import FolderScan
from setnet.library.paths import display_path, path_bytes, resolve_path
from setnet.library.people import People
from setnet.library.person import Example
from setnet.library.photo_result import content_hash
from setnet.library.pictures import face_picture

if TYPE_CHECKING:
    from setnet.faces import Face, FaceSettings

_MOST_EXAMPLES = 100


@dataclass(frozen=True, slots=True, eq=False)
class QueryPerson:
    """A person of a query: a name and the (n, dim) descriptors of their examples.

    `confirmed` and `refused` are faces of photos, each a photo's id and the number of the face in it from 0:
    the user said that they are this person's, or that they are not.
    """

    name: str
    descriptors: NDArray[np.float32]
    picture: bytes | None = None
    notes: tuple[str, ...] = ()
    confirmed: frozenset[tuple[str, int]] = frozenset()
    refused: frozenset[tuple[str, int]] = frozenset()


def person_from(text: str, people: People, settings: Callable[[], FaceSettings]) -> QueryPerson:
    """Return the person meant by `text`; `settings` is called only if faces must be detected.

    A saved name comes first (write `./anna` for a file of that name); then a photo, whose largest face
    is taken, or with `group.jpg#3` the third from the left; then a folder of photos of one person.
    """
    if text in people:
        return _saved(text, people)
    path, number = split_number(text)
    if not path.exists():
        names = ", ".join(p.name for p in list(people)[:20])
        saved = f"saved people are {names}" if names else "nobody is saved yet"
        raise InvalidInputError(f"{text!r} is neither a saved person nor a file or folder: {saved}")
    found, notes = examples_from([text], settings())
    name = display_path(path.resolve().name if path.is_dir() else path.stem) + (
        f"#{number}" if number else ""
    )
    return QueryPerson(name, np.stack([e.descriptor for e in found]), found[0].picture, tuple(notes))


def _saved(name: str, people: People) -> QueryPerson:
    """Return a saved person with the faces that the user confirmed and refused, wherever they are now."""
    confirmed, refused = judged_faces(people, name)
    return QueryPerson(
        people.get(name).name,
        people.descriptors(name),
        people.picture(name),
        confirmed=confirmed,
        refused=refused,
    )


def judged_faces(people: People, name: str) -> tuple[frozenset[tuple[str, int]], frozenset[tuple[str, int]]]:
    """Return the faces of photos that were confirmed as a person's, and those that were refused."""
    judged: dict[str, set[tuple[str, int]]] = {"yes": set(), "no": set()}
    for verdict in people.verdicts(name):
        if verdict.photo_id is not None and verdict.face is not None:
            judged[verdict.says].add((verdict.photo_id, verdict.face))
    return frozenset(judged["yes"]), frozenset(judged["no"])


def with_unique_names(people: Sequence[QueryPerson]) -> list[QueryPerson]:
    """Return the people under unique names: a second `anna` becomes `anna (2)`, if that is free."""
    taken = {person.name for person in people}
    seen: set[str] = set()
    different = []
    for person in people:
        name = person.name
        if name in seen:
            name = next(n for i in count(2) if (n := f"{person.name} ({i})") not in taken)
        seen.add(name)
        taken.add(name)
        different.append(replace(person, name=name))
    return different


def examples_from(texts: Sequence[str], settings: FaceSettings) -> tuple[list[Example], list[str]]:
    """Return one example face per photo named in `texts`, and remarks for the user.

    In a folder, photos without a face are skipped; a photo named directly must have one.
    """
    examples: list[Example] = []
    notes: list[str] = []
    for text in texts:
        path, number = split_number(text)
        if path.is_dir():
            found, passed = _examples_in(path, settings)
            examples += found
            notes += passed
        elif path.exists():
            example, note = _example_in(path, number, settings)
            examples.append(example)
            notes += note
        else:
            raise InvalidInputError(f"no photo {display_path(text)!r}")
    return examples, notes


def _examples_in(folder: Path, settings: FaceSettings) -> tuple[list[Example], list[str]]:
    examples: list[Example] = []
    notes: list[str] = []
    for file in FolderScan([path_bytes(folder.absolute())]).files():
        if len(examples) == _MOST_EXAMPLES:
            notes.append(f"{display_path(folder)}: took the first {_MOST_EXAMPLES} photos")
            break
        try:
            example, note = _example_in(Path(file.path.decode("utf-8", "surrogateescape")), None, settings)
        except PhotoError as error:
            notes.append(f"skipped: {error}")
            continue
        examples.append(example)
        notes += note
    if not examples:
        raise PhotoError(
            f"no face in any photo of {display_path(folder)}: give a folder with photos of one person"
        )
    return examples, notes


def _example_in(path: Path, number: int | None, settings: FaceSettings) -> tuple[Example, list[str]]:
    from setnet.faces import faces_of, open_photo

    photo = open_photo(path)
    faces = sorted(faces_of(photo, settings), key=lambda f: f.box.x0 + f.box.x1)
    if not faces:
        raise PhotoError(
            f"no face found in {display_path(path)}: use a photo where the face is larger, sharper or more "
            "frontal (`setnet faces PHOTO --out drawn.png` shows what is seen)"
        )
    if number is not None and not 1 <= number <= len(faces):
        raise InvalidInputError(
            f"{display_path(path)} has {len(faces)} face(s): the number after # is 1..{len(faces)}, "
            "from the left"
        )
    face = faces[number - 1] if number is not None else max(faces, key=_area)
    notes = []
    if number is None and len(faces) > 1:
        position = faces.index(face) + 1
        notes.append(
            f"{display_path(path)} has {len(faces)} faces: took the largest, number {position} from the left "
            f"(choose another with {display_path(path.name)}#N)"
        )
    picture, content = face_picture(photo.pixels, photo.in_pixels(face.box)), content_hash(path.read_bytes())
    example = Example(face.descriptor, display_path(resolve_path(path)), face.box, picture, content=content)
    return example, notes


def _area(face: Face) -> float:
    return float((face.box.x1 - face.box.x0) * (face.box.y1 - face.box.y0))


def split_number(text: str) -> tuple[Path, int | None]:
    """Return the path and the face number of `group.jpg#3`; a file really called that has no number."""
    path = Path(text).expanduser()
    numbered = re.fullmatch(r"(.+)#(\d{1,5})", text)
    if path.exists() or numbered is None:
        return path, None
    return Path(numbered[1]).expanduser(), int(numbered[2])
