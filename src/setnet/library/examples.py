"""Example faces of people: read from photos that the user gives, or chosen among the faces of a group."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, PhotoError
from setnet.library.folder_scan import FolderScan
from setnet.library.paths import display_path, path_bytes, resolve_path
from setnet.library.person import Example
from setnet.library.photos import content_hash
from setnet.library.pictures import face_picture

if TYPE_CHECKING:
    from setnet.faces import Face, FaceSettings

_MAX_PHOTOS = 100


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
        if len(examples) == _MAX_PHOTOS:
            notes.append(f"{display_path(folder)}: took the first {_MAX_PHOTOS} photos")
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
    from setnet.faces import extract_faces, open_photo

    photo = open_photo(path)
    faces = sorted(extract_faces(photo, settings), key=lambda f: f.box.x0 + f.box.x1)
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


MAX_EXAMPLES = 12
_WORST = 0.5  # of the best face's quality: worse ones are no examples where there are others
_FAR = 0.2  # the share of faces least like the group, which may be somebody else's: no examples of many


def example_faces(
    vectors: NDArray[np.float32], quality: NDArray[np.float64], max_faces: int = MAX_EXAMPLES
) -> list[int]:
    """Return the rows of faces to keep as examples, the most typical one first.

    The next one is always that which is least like those chosen, among good faces that are like the group:
    views and ages that the others do not show.

    >>> views = np.array([[1, 0], [0.9, 0.436], [0.8, 0.6], [0.99, 0.141]], np.float32)
    >>> example_faces(views, np.array([1.0, 1.0, 1.0, 0.3]), max_faces=3)
    [1, 0, 2]
    """
    mean = quality @ vectors
    central = vectors @ (mean / max(float(np.linalg.norm(mean)), 1e-12))
    usable = quality >= _WORST * quality.max(initial=0.0)
    if usable.sum() > max_faces:
        usable &= central >= np.quantile(central[usable], _FAR)
    rows = np.flatnonzero(usable)
    chosen = [int(rows[np.argmax((central * quality)[rows])])]
    nearest = vectors[rows] @ vectors[chosen[0]]
    while len(chosen) < min(max_faces, len(rows)):
        gain = (1.0 - nearest) * quality[rows]
        gain[np.isin(rows, chosen)] = -1.0
        chosen.append(int(rows[np.argmax(gain)]))
        nearest = np.maximum(nearest, vectors[rows] @ vectors[chosen[-1]])
    return chosen
