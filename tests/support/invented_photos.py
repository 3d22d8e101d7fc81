"""Photos that were never taken, of people who are directions in space: libraries of hundreds in no time."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from setnet.heads import Logistic
from setnet.library import Library, People, StoredFace
from setnet.library.database import Database
from setnet.library.photo_reader import PhotoResult
from setnet.library.photo_writer import PhotoWriter

DIM = 128
_QUALITY = json.dumps({"size": 90.0, "score": 0.9})


def face_of(person: int, view: int = 0) -> NDArray[np.float32]:
    """Return the descriptor of a person in some view; views of one person are about 0.8 alike."""
    chance = np.random.default_rng((person, view))
    vector = np.random.default_rng(person).normal(size=DIM) + 0.5 * chance.normal(size=DIM)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def store(
    library: Library, photos: Mapping[str, Sequence[int]], taken: float | Mapping[str, float] | None = None
) -> None:
    """Store photos of these people by name, taken at one time or each at its own; replace known names."""
    times = taken if isinstance(taken, Mapping) else dict.fromkeys(photos, taken)
    results = [_result(name, people, times[name]) for name, people in photos.items()]
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


def store_file(
    library: Library, path: Path, people: Sequence[int], xmp: bytes | None = None, orientation: int = 1
) -> None:
    """Write a photo without content, with XMP, and store it as one of 1600 x 1200 with these people.

    The face of person n is at 100 n, 50 to 100 n + 80, 150, in the upright photo.
    """
    from PIL import Image, PngImagePlugin

    path.parent.mkdir(parents=True, exist_ok=True)
    exif = Image.Exif()
    exif[0x0112] = orientation
    options: dict[str, Any] = {} if xmp is None else {"xmp": xmp}
    if xmp is not None and path.suffix == ".png":
        chunks = PngImagePlugin.PngInfo()
        chunks.add_itxt("XML:com.adobe.xmp", xmp.decode())
        options = {"pnginfo": chunks}
    Image.new("RGB", (120, 160) if orientation >= 5 else (160, 120)).save(path, exif=exif, **options)
    content = zlib.crc32(path.read_bytes() + path.name.encode()).to_bytes(16, "big")
    result = replace(_result(path.name, people, None), path=bytes(path), hash=content)
    with library._writing() as index:
        PhotoWriter(library._database, index).store([result])


def finish_interrupted(library: Library) -> None:
    """Complete what a killed run left unfinished, as every index run does at its beginning."""
    with library._writing() as index:
        PhotoWriter(library._database, index).recover()


def content_of(name: str) -> bytes:
    """Return what stands for the hash of a photo's file."""
    return zlib.crc32(name.encode()).to_bytes(16, "big")


def area_of(person: int) -> tuple[float, float, float, float]:
    """Return centre, width and height of a person's face in fractions of the upright photo."""
    return (100 * person + 40) / 1600, 100 / 1200, 80 / 1600, 100 / 1200


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
        hash=content_of(name),
        taken=taken,
        width=1600,
        height=1200,
        faces=faces,
        descriptors=vectors,
    )


def people_alone(database: Database, descriptors: Callable[[str], Any] | None = None) -> People:
    """Return the people of a database without photos; four numbers describe a face, and all look alike."""
    shown = SimpleNamespace(descriptors=descriptors)
    index = SimpleNamespace(logistic=Logistic(1.0, 100.0))
    return People(cast(Any, SimpleNamespace(_database=database, dim=4, photos=shown, set_index=index)))
