"""What a library knows about a photo without opening it again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.faces import Box
from setnet.library.store.paths import as_path

__all__ = ["FailedPhoto", "LibraryPhoto", "PersonMatch", "PhotoHit", "StoredFace"]


class StoredFace(NamedTuple):
    """A face of a photo in the library, as its row; `ordinal` is its element number in the index."""

    ordinal: int
    x0: float
    y0: float
    x1: float
    y1: float
    score: float
    stored_landmarks: bytes
    stored_quality: str

    @property
    def box(self) -> Box:
        """Where it is."""
        return Box(self.x0, self.y0, self.x1, self.y1)

    @property
    def landmarks(self) -> NDArray[np.float32]:
        """Eyes, nose and corners of the mouth: (5, 2) in pixels."""
        return np.frombuffer(self.stored_landmarks, "<f4").reshape(5, 2)

    @property
    def quality(self) -> Mapping[str, float]:
        """How well it can be recognised: size, score, sharpness, yaw, pitch, roll."""
        known: dict[str, float] = json.loads(self.stored_quality)
        return known


class LibraryPhoto(NamedTuple):
    """A photo of the library with its faces, in pixels of the upright photo."""

    id: str
    stored_path: bytes
    size: int
    stored_hash: bytes
    taken: datetime | None
    width: int
    height: int
    faces: tuple[StoredFace, ...]

    @property
    def path(self) -> Path:
        """Where the file is."""
        return as_path(self.stored_path)

    @property
    def content(self) -> str:
        """The hash of the file's bytes."""
        return self.stored_hash.hex()


class FailedPhoto(NamedTuple):
    """A file that could not be read as a photo, and why."""

    id: str
    path: Path
    reason: str


class PersonMatch(NamedTuple):
    """A person of the query who is in the photo, and the face they were matched with."""

    person: str
    similarity: float
    face: int
    box: Box


class PhotoHit(NamedTuple):
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
