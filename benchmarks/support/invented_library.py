"""A library of photos that were never taken, made by the writer that indexing uses."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.engine import SetIndex
from setnet.library import Library, StoredFace
from setnet.library.photo_reader import PhotoResult
from setnet.library.photo_writer import PhotoWriter

Vectors = NDArray[np.float32]

BATCH = 20_000
_QUALITY = json.dumps({"size": 90.0, "score": 0.99, "sharpness": 0.2, "yaw": 0.0, "pitch": 0.0, "roll": 0.0})


def face_counts(chance: np.random.Generator, photos: int) -> NDArray[np.int64]:
    """Return numbers of faces per photo as in an album of groups: 2.8 on average."""
    return chance.choice([2, 3, 4, 5, 7], size=photos, p=[0.58, 0.22, 0.10, 0.05, 0.05])


def fill(path: Path, batches: Iterable[Sequence[Vectors]], *, head: str | None = None) -> None:
    """Make a library whose photos have faces with these descriptors; `head` replaces its set vectors'."""
    Library.create(path).close()
    if head is not None:
        with Library.open(path) as library:
            dim = library.dim
        shutil.rmtree(path / "index")
        SetIndex.create(path / "index", dim, head=head).close()
    with Library.open(path) as library, library._writing() as index:
        writer = PhotoWriter(library._database, index)
        number = 0
        for batch in batches:
            writer.store([_photo(number + i, descriptors) for i, descriptors in enumerate(batch)])
            number += len(batch)
        index.compact()


def _photo(number: int, descriptors: Vectors) -> PhotoResult:
    rows = tuple(
        StoredFace(i, 100.0 * i, 50.0, 100.0 * i + 80, 150.0, 0.99, bytes(40), _QUALITY)
        for i in range(len(descriptors))
    )
    return PhotoResult(
        path=f"/photos/{number % 100}/{number}.jpg".encode(),
        size=1,
        hash=number.to_bytes(16, "big"),
        taken=1.4e9 + number,
        width=1600,
        height=1200,
        faces=rows,
        descriptors=descriptors,
    )
