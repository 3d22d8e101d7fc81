"""A library of photos that were generated and of faces that nobody has, made without finding any."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from setnet.library import Example, Library, StoredFace
from setnet.library.creation import remember_folders
from setnet.library.photo_reader import PhotoResult
from setnet.library.photo_writer import PhotoWriter

__all__ = ["fill_library"]


def fill_library(library: Library, folder: Path, images: Sequence[bytes]) -> None:
    """Store up to six images with none to two faces each, and the person Anna."""
    rng = np.random.default_rng(1)
    results = []
    for number, image in enumerate(images[:6]):
        path = folder / f"{number}.jpg"
        path.write_bytes(image)
        descriptors = rng.normal(size=(number % 3, library.dim)).astype(np.float32)
        landmarks = [rng.normal(size=(5, 2)).astype("<f4").tobytes() for _ in descriptors]
        faces = [StoredFace(n, 4.5, 5, 30, 38, 0.9, points, "{}") for n, points in enumerate(landmarks)]
        results.append(
            PhotoResult(
                os.fsencode(path), size=len(image), mtime_ns=number, hash=bytes([number]) * 16,
                taken=1.5e9 + number, width=48, height=40, faces=tuple(faces),
                descriptors=descriptors if len(descriptors) else None,
            )
        )  # fmt: skip
    with library._writing() as index:
        remember_folders(library._database, [os.fsencode(folder)])
        PhotoWriter(library._database, index).store(results)
    if "Anna" not in library.people:
        library.people.add("Anna", [Example(rng.normal(size=library.dim).astype(np.float32))])
