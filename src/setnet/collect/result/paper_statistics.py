"""Statistics of a data set, as the paper's tables 1 to 3 have them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

FACE_BINS = (2, 3, 4, 5, 6)  # the last one is "more than 5"
PEOPLE_BINS = (1, 2, 3, 4, 5, 6)


@dataclass
class SetStatistics:
    """Counts of photos, faces and people, and how many faces and how many known people photos have."""

    photos: int = 0
    faces: int = 0
    known_faces: int = 0
    faces_per_photo: Counter[int] = field(default_factory=Counter)
    people_per_photo: Counter[int] = field(default_factory=Counter)
    people: set[str] = field(default_factory=set)

    def add(self, names: list[str | None]) -> None:
        """Count a photo by the names of its faces; None is an unknown person."""
        known = {name for name in names if name is not None}
        self.photos += 1
        self.faces += len(names)
        self.known_faces += sum(name is not None for name in names)
        self.faces_per_photo[face_bin(len(names))] += 1
        self.people_per_photo[min(len(known), PEOPLE_BINS[-1])] += 1
        self.people |= known

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as values that JSON can hold."""
        return {
            "photos": self.photos,
            "faces": self.faces,
            "known_faces": self.known_faces,
            "people": len(self.people),
            "mean_faces_per_photo": round(self.faces / self.photos, 2) if self.photos else 0.0,
            "faces_per_photo": {label(n, FACE_BINS): self.faces_per_photo[n] for n in FACE_BINS},
            "people_per_photo": {label(n, PEOPLE_BINS): self.people_per_photo[n] for n in PEOPLE_BINS},
        }


def face_bin(faces: int) -> int:
    """Return the column of the paper's table 1 that a number of faces belongs to."""
    return min(faces, FACE_BINS[-1])


def label(number: int, bins: tuple[int, ...]) -> str:
    """Return the heading of a column.

    >>> label(6, FACE_BINS), label(2, FACE_BINS)
    ('>5', '2')
    """
    return f">{number - 1}" if number == bins[-1] else str(number)
