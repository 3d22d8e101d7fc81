"""Example faces of people: read from photos, compared with each other, or chosen among a group's.

Compared are those of one person: whether they look alike, and whether two are the very same face.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, PhotoError
from setnet.heads import Logistic
from setnet.library.face_references import FaceReference
from setnet.library.folder_scan import FolderScan
from setnet.library.linkage import CannotLink, Clusters, LinkageRule, link
from setnet.library.neighbours import nearest_neighbours
from setnet.library.paths import as_path, display_path, resolve_path
from setnet.library.person import Example
from setnet.library.photos import content_hash
from setnet.library.pictures import face_picture

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_MAX_PHOTOS = 100


def examples_from(
    texts: Sequence[str], settings: FaceSettings, *, has_pictures: bool = True
) -> tuple[list[Example], list[str]]:
    """Return one example face per photo named in `texts`, and remarks for the user.

    In a folder, photos without a face are skipped; a photo named directly must have one.
    """
    examples: list[Example] = []
    notes: list[str] = []
    for text in texts:
        path, number = split_number(text)
        if path.is_dir():
            found, passed = _examples_in(path, settings, has_pictures)
            examples += found
            notes += passed
        elif path.exists():
            example, note = _example_in(path, number, settings, has_pictures)
            examples.append(example)
            notes += note
        else:
            raise InvalidInputError(f"no photo {display_path(text)!r}")
    return examples, notes


def _examples_in(folder: Path, settings: FaceSettings, has_pictures: bool) -> tuple[list[Example], list[str]]:
    examples: list[Example] = []
    notes: list[str] = []
    for file in FolderScan([os.fsencode(folder.absolute())]).files():
        if len(examples) == _MAX_PHOTOS:
            notes.append(f"{display_path(folder)}: took the first {_MAX_PHOTOS} photos")
            break
        try:
            example, note = _example_in(as_path(file.path), None, settings, has_pictures)
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


def _example_in(
    path: Path, number: int | None, settings: FaceSettings, has_pictures: bool
) -> tuple[Example, list[str]]:
    from setnet.faces import extract_faces, open_photo

    photo = open_photo(path)
    faces = sorted(extract_faces(photo, settings), key=lambda f: f.box.x0 + f.box.x1)
    if not faces:
        raise PhotoError(
            f"no face found in {display_path(path)}: use a photo where the face is larger, sharper or more "
            "frontal (`setnet faces PHOTO --sheet faces.html` shows what is seen)"
        )
    if number is not None and not 1 <= number <= len(faces):
        raise InvalidInputError(
            f"{display_path(path)} has {len(faces)} face(s): the number after # is 1..{len(faces)}, "
            "from the left"
        )
    face = faces[number - 1] if number is not None else max(faces, key=lambda f: f.box.width * f.box.height)
    notes = []
    if number is None and len(faces) > 1:
        position = faces.index(face) + 1
        notes.append(
            f"{display_path(path)} has {len(faces)} faces: took the largest, number {position} from the left "
            f"(choose another with {display_path(path.name)}#N)"
        )
    picture = face_picture(photo.pixels, photo.in_pixels(face.box)) if has_pictures else None
    content = content_hash(path.read_bytes())
    example = Example(face.descriptor, display_path(resolve_path(path)), face.box, picture, content=content)
    return example, notes


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


# Faces are told apart below this probability of a match. Chosen on the people of LFW's training half:
# `python -m studies.mixed_examples` has the figures.
_MIN_PROBABILITY = 0.2
_SAME_DESCRIPTOR = 1 - 1e-5  # similarity: the same numbers, but for how they were rounded


class KnownFaces:
    """Faces that are there already: `example in known` is whether one of them is the very same face.

    That is one at the same place of the same photo, or one with the same descriptor.
    """

    def __init__(self, examples: Iterable[Example]) -> None:
        self._references: list[FaceReference] = []
        self._rows: list[NDArray[np.float64]] = []
        for example in examples:
            self.add(example)

    def add(self, example: Example) -> None:
        """Count a face among those that are there."""
        reference = reference_in(example)
        if reference is not None:
            self._references.append(reference)
        self._rows.append(_unit_rows(example.descriptor[None])[0])

    def __contains__(self, example: Example) -> bool:
        reference = reference_in(example)
        if reference is not None and any(reference.is_same(other) for other in self._references):
            return True
        if not self._rows:
            return False
        similarities = np.stack(self._rows) @ _unit_rows(example.descriptor[None])[0]
        return bool(similarities.max() >= _SAME_DESCRIPTOR)


def reference_in(example: Example) -> FaceReference | None:
    """Return what refers to the face of an example; None where its photo's content is not known."""
    if example.content is None or example.box is None:
        return None
    return FaceReference(example.content, example.box)


def outsiders(descriptors: NDArray[np.float32], logistic: Logistic, known: int = 0) -> list[int]:
    """Return which faces do not look like the person that the others show.

    Faces are joined to groups by average linkage, as long as the mean similarity between two groups is more
    than that of non-matches. The person is the group with most of the first `known` faces, which are theirs
    already; else the largest. Of equals the one with the earliest face.
    """
    rows, n = _unit_rows(descriptors).astype(np.float32), len(descriptors)
    if n < 2:
        return []
    # The kernel of groupings, with the similarity itself as the score.
    floor = (np.log(_MIN_PROBABILITY / (1 - _MIN_PROBABILITY)) - logistic.b) / logistic.w
    rule = LinkageRule(0.0, 1.0, 1.0, 0.0, 0.5, np.full(n + 1, floor))
    group = link(Clusters.of(rows), nearest_neighbours(rows, n - 1, -2.0), CannotLink.none(), rule)

    def size(number: int) -> tuple[int, int, int]:
        own = group == number
        return int(own[:known].sum()), int(own.sum()), -int(own.argmax())

    return np.flatnonzero(group != max(group.tolist(), key=size)).tolist()


def count_unlike(known: Sequence[Example], more: Sequence[Example], logistic: Logistic) -> int:
    """Return how many of `more` faces do not look like the person whose examples are `known`."""
    if not known or not more:
        return 0
    faces = np.stack([example.descriptor for example in (*known, *more)])
    return sum(face >= len(known) for face in outsiders(faces, logistic, known=len(known)))


def mixed_warning(
    name: str, before: Sequence[Example], examples: Sequence[Example], logistic: Logistic
) -> list[str]:
    """Return a remark when example faces do not all look like one person, and did not so `before`."""
    odd, known = (
        [some[face].number for face in outsiders(np.stack([e.descriptor for e in some]), logistic)]
        if some
        else []
        for some in (examples, before)
    )
    if not odd or odd == known:
        return []
    numbers = ", ".join(map(str, odd))
    who = f"{len(odd)} of these {len(examples)}" if len(examples) > 2 else "these 2"
    return [
        f"{who} do not look like the same person: look at example {numbers} of {name}, and remove, move or "
        "split off what is not theirs"
    ]


def _unit_rows(descriptors: NDArray[np.float32]) -> NDArray[np.float64]:
    rows = np.asarray(descriptors, np.float64)
    units: NDArray[np.float64] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    return units
