"""A library of very many photos of some years, links to three pictures, all with the same person."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from setnet.engine import SetIndex
from setnet.library import Library, StoredFace
from setnet.library.creation import remember_folders
from setnet.library.photo_reader import PhotoResult
from setnet.library.photo_writer import PhotoWriter

PHOTOS = 20_000
_LATEST = datetime(2023, 12, 31, 12, tzinfo=UTC)
_SHAPES = ((400, 300), (300, 400), (480, 270))


def make_library(place: Path, photos: int = PHOTOS) -> Path:
    """Return the library of photos that are taken four hours apart, the latest first by name."""
    folder = place / "photos"
    folder.mkdir(parents=True)
    for number, size in enumerate(_SHAPES):
        Image.new("RGB", size, (90 + 40 * number, 120, 150)).save(folder / f"shape-{number}.jpg")
    Library.create(place / "library").close()
    with Library.open(place / "library") as library:
        dim = library.dim
        remember_folders(library._database, [bytes(folder)])
    shutil.rmtree(place / "library" / "index")
    SetIndex.create(place / "library" / "index", dim, head="mean").close()  # a trained head takes long
    somebody = np.zeros((1, dim), np.float32)
    somebody[0, 0] = 1.0
    with Library.open(place / "library") as library, library._writing() as index:
        PhotoWriter(library._database, index).store(
            [_photo(folder, number, somebody) for number in range(photos)]
        )
    return place / "library"


def _photo(folder: Path, number: int, descriptors: NDArray[np.float32]) -> PhotoResult:
    path = folder / f"{number:05}.jpg"
    shape = number % len(_SHAPES)
    os.link(folder / f"shape-{shape}.jpg", path)
    width, height = _SHAPES[shape]
    return PhotoResult(
        path=bytes(path),
        size=1,
        hash=number.to_bytes(16, "big"),
        taken=(_LATEST - timedelta(hours=4 * number)).timestamp(),
        width=width,
        height=height,
        faces=(StoredFace(0, 100.0, 50.0, 180.0, 150.0, 0.9, bytes(40), '{"size": 90.0, "score": 0.9}'),),
        descriptors=descriptors,
    )
