"""What the user said about a match: this face is that person, or is not."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.faces import Box
from setnet.library.people.example import descriptor_from
from setnet.library.people.lookup import name_of
from setnet.library.store.face_references import FaceReference, resolve_all


@dataclass(frozen=True, slots=True, eq=False)
class Verdict:
    """A confirmed (`yes`) or refused (`no`) match of a person with a face.

    Attributes
    ----------
    person, says
        Who it is about, by name, and `yes` or `no`.
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
    says: str
    photo_id: str | None
    face: int | None
    descriptor: NDArray[np.float32]
    content: bytes
    box: Box
    id: int
    added: float

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as values that JSON can hold."""
        return {
            "id": self.id,
            "person": self.person,
            "says": self.says,
            "photo": self.photo_id,
            "face": self.face,
            "content": self.content.hex(),
            "box": list(self.box),
            "added": self.added,
        }


def verdicts_of(db: sqlite3.Connection, person: int) -> list[Verdict]:
    """Return all verdicts on a person, oldest first; of a photo that was copied, one for each copy."""
    name = name_of(db, person)
    rows = db.execute(
        "SELECT content, x0, y0, x1, y1, descriptor, says, id, added FROM verdicts "
        "WHERE person = ? ORDER BY id",
        (person,),
    ).fetchall()
    references = [FaceReference(row[0], Box(*row[1:5])) for row in rows]
    found = []
    for reference, places, row in zip(references, resolve_all(db, references), rows, strict=True):
        stored, says, number, added = row[5:]
        now: list[tuple[str | None, int | None]] = [(str(photo), face) for photo, face in places]
        for photo_id, face in now or [(None, None)]:
            vector = descriptor_from(stored)
            found.append(Verdict(name, says, photo_id, face, vector, *reference, number, added))
    return found


def on_face(db: sqlite3.Connection, reference: FaceReference) -> list[tuple[int, int, str]]:
    """Return the verdicts on a face, of all people: (number, person, what it says)."""
    rows = db.execute(
        "SELECT id, person, says, x0, y0, x1, y1 FROM verdicts WHERE content = ? ORDER BY id",
        (reference.content,),
    )
    return [
        (number, person, says)
        for number, person, says, *box in rows
        if reference.is_same(FaceReference(reference.content, Box(*box)))
    ]
