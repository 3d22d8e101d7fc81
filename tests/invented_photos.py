"""Photos that were never taken, of people who are directions in space: libraries of hundreds in no time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from setnet.library import Library, PhotoResult, PhotoWriter, StoredFace

DIM = 128
_QUALITY = json.dumps({"size": 90.0, "score": 0.9})


def face_of(person: int, view: int = 0) -> NDArray[np.float32]:
    """Return the descriptor of a person in some view; views of one person are about 0.8 alike."""
    chance = np.random.default_rng((person, view))
    vector = np.random.default_rng(person).normal(size=DIM) + 0.5 * chance.normal(size=DIM)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def store(library: Library, photos: Mapping[str, Sequence[int]], taken: float | None = None) -> None:
    """Store photos of these people by name; one of a known name is replaced."""
    results = [_result(name, people, taken) for name, people in photos.items()]
    with library._writing() as index:
        PhotoWriter(library._database, index).store(results)


def store_vectors(library: Library, photos: Mapping[str, NDArray[np.float32]]) -> None:
    """Store photos by name with these descriptors of their faces."""
    results = [
        replace(_result(name, range(len(vectors)), None), descriptors=vectors)
        for name, vectors in photos.items()
    ]
    with library._writing() as index:
        PhotoWriter(library._database, index).store(results)


def remove(library: Library, ids: Sequence[str]) -> None:
    """Remove photos by id."""
    with library._writing() as index:
        PhotoWriter(library._database, index).remove([int(i) for i in ids])


def _result(name: str, people: Sequence[int], taken: float | None) -> PhotoResult:
    view = zlib.crc32(name.encode())
    vectors = np.stack([face_of(person, view) for person in people]) if people else None
    faces = tuple(
        StoredFace(i, 100.0 * person, 50.0, 100.0 * person + 80, 150.0, 0.9, bytes(40), _QUALITY)
        for i, person in enumerate(people)
    )
    return PhotoResult(
        path=f"/invented/{name}".encode(),
        size=1,
        hash=view.to_bytes(16, "big"),
        taken=taken,
        width=1600,
        height=1200,
        faces=faces,
        descriptors=vectors,
    )
