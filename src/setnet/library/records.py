"""What a library knows about a photo without opening it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from setnet.faces import Box

__all__ = ["FailedPhoto", "LibraryPhoto", "PersonMatch", "PhotoHit", "StoredFace"]


@dataclass(frozen=True, slots=True)
class StoredFace:
    """A face of a photo in the library; `ordinal` is its element number in the index."""

    ordinal: int
    box: Box
    landmarks: NDArray[np.float32]
    score: float
    quality: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LibraryPhoto:
    """A photo of the library with its faces, in pixels of the upright photo; `content` is its hash."""

    id: str
    path: Path
    size: int
    content: str
    taken: datetime | None
    width: int
    height: int
    faces: tuple[StoredFace, ...]


@dataclass(frozen=True, slots=True)
class FailedPhoto:
    """A file that could not be read as a photo, and why."""

    id: str
    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class PersonMatch:
    """A person of the query who is in the photo, and the face they were matched with."""

    person: str
    similarity: float
    face: int
    box: Box


@dataclass(frozen=True, slots=True)
class PhotoHit:
    """A photo of an answer; `matches` has the people who are in it, in the order of the query."""

    photo: LibraryPhoto
    score: float
    matches: tuple[PersonMatch, ...]

    @property
    def path(self) -> Path:
        """Where the photo is."""
        return self.photo.path

    @property
    def people(self) -> tuple[str, ...]:
        """The people of the query who are in the photo."""
        return tuple(m.person for m in self.matches)
