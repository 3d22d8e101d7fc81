"""References to faces that outlive the library's own numbers: the content of a photo, and a box in it.

A photo that is indexed again, moved, copied or described by another model has the same content; the box of a
face found again overlaps the one that was stored.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.faces import Box

SAME_FACE = 0.5  # intersection over union from which two boxes are of one face
_SAME_LOOK = 0.8  # similarity of a face with itself, in a file that was written again
_REFERRING = ("examples", "removed_examples", "labels", "removed_labels")
_LONGEST_PHOTO_ID = 18  # digits
_CHUNK = 500  # SQLite's smallest limit of variables in a statement is 999

Place = tuple[int, int]  # the id of a photo, and the ordinal of a face in it


class FaceReference(NamedTuple):
    """A face by the hash of its photo's file and its box in the upright photo."""

    content: bytes
    box: Box

    def is_same(self, other: FaceReference) -> bool:
        """Return whether both are the same face."""
        return self.content == other.content and self.box.overlap(other.box) >= SAME_FACE


def photo_number(photo_id: str) -> int:
    """Return the row of a photo's id; a text that can be none is an error."""
    if not photo_id.isdecimal() or len(photo_id) > _LONGEST_PHOTO_ID:
        raise InvalidInputError(f"no photo {photo_id!r} in this library")
    return int(photo_id)


def refer_to_face(db: sqlite3.Connection, photo_id: int, ordinal: int) -> FaceReference:
    """Return what refers to a face of a photo from now on."""
    row = db.execute(
        "SELECT hash, x0, y0, x1, y1 FROM faces JOIN photos ON photos.id = photo "
        "WHERE photo = ? AND ordinal = ? AND state = 'ready'",
        (photo_id, ordinal),
    ).fetchone()
    if row is None:
        raise InvalidInputError(f"no face {ordinal} in photo {photo_id} of this library")
    return FaceReference(row[0], Box(*row[1:]))


def resolve_references(db: sqlite3.Connection, references: Sequence[FaceReference]) -> list[Place | None]:
    """Return where faces are now; of several copies of a photo the first stored. None: nowhere."""
    return [places[0] if places else None for places in resolve_all_references(db, references)]


def resolve_all_references(db: sqlite3.Connection, references: Sequence[FaceReference]) -> list[list[Place]]:
    """Return all places of each face: one per copy of its photo that has it."""
    contents = list({reference.content for reference in references})
    faces: dict[bytes, dict[int, list[tuple[int, Box]]]] = defaultdict(lambda: defaultdict(list))
    for start in range(0, len(contents), _CHUNK):
        chunk = contents[start : start + _CHUNK]
        for content, photo, ordinal, *box in db.execute(
            "SELECT hash, photo, ordinal, x0, y0, x1, y1 FROM photos JOIN faces ON photo = photos.id "
            f"WHERE hash IN ({','.join('?' * len(chunk))}) AND state = 'ready' ORDER BY photo, ordinal",
            chunk,
        ):
            faces[content][photo].append((ordinal, Box(*box)))
    return [_places(reference.box, faces.get(reference.content, {})) for reference in references]


def follow_change(
    db: sqlite3.Connection, old: bytes, new: bytes, faces: Sequence[tuple[Box, NDArray[np.float32]]]
) -> None:
    """Let references follow a file whose bytes changed, as when tags were written into it.

    A reference follows to a face at the same place that looks the same; a photo that took the place of
    another one keeps none of its references.
    """
    for table in _REFERRING:
        rows = db.execute(
            f"SELECT id, descriptor, x0, y0, x1, y1 FROM {table} WHERE content = ? AND x0 IS NOT NULL", (old,)
        ).fetchall()
        for number, stored, *box in rows:
            look = np.frombuffer(stored, "<f4")
            if any(is_same_face(Box(*box), b, look, v) for b, v in faces):
                db.execute(f"UPDATE {table} SET content = ? WHERE id = ?", (new, number))


def is_same_face(
    box: Box, other: Box, look: NDArray[np.float32] | None, other_look: NDArray[np.float32]
) -> bool:
    """Return whether two boxes are of one face, which looks the same where its look is known."""
    return box.overlap(other) >= SAME_FACE and (look is None or _alike(look, other_look))


def _alike(a: NDArray[np.float32], b: NDArray[np.float32]) -> bool:
    if a.shape != b.shape:
        return False
    lengths = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return lengths > 0 and float(a @ b) / lengths >= _SAME_LOOK


def find_face(box: Box, others: Sequence[Box]) -> int | None:
    """Return which of some boxes is of the same face, if any: the one that overlaps most."""
    overlaps = [box.overlap(other) for other in others]
    best = max(range(len(overlaps)), key=overlaps.__getitem__, default=None)
    return best if best is not None and overlaps[best] >= SAME_FACE else None


def _places(box: Box, photos: dict[int, list[tuple[int, Box]]]) -> list[Place]:
    best = {photo: find_face(box, [other for _, other in faces]) for photo, faces in photos.items()}
    return [(photo, photos[photo][face][0]) for photo, face in best.items() if face is not None]
