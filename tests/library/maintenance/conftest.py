"""A small library of photos that do not exist, of faces that nobody has."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from setnet.library import Example, Library, PhotoResult, PhotoWriter, StoredFace
from setnet.library.creation import remember_folders

FOLDER = "/synthetic/photos"


def _photos() -> list[PhotoResult]:
    chance = np.random.default_rng(4)
    quality = json.dumps({"size": 60.0, "score": 0.99})
    found = []
    for number, faces in enumerate((1, 2, 0, 3)):
        vectors = chance.normal(size=(faces, 128)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        found.append(
            PhotoResult(
                f"{FOLDER}/{number}.jpg".encode(),
                size=1000 + number,
                mtime_ns=1_700_000_000_000_000_000 + number,
                hash=bytes([number]) * 16,
                taken=1.5e9 + number,
                width=640,
                height=480,
                faces=tuple(
                    StoredFace(n, 10.5 + 100 * n, 20, 70.5 + 100 * n, 90, 0.99, bytes(40), quality)
                    for n in range(faces)
                ),
                descriptors=vectors if faces else None,
            )
        )
    return found


@pytest.fixture(scope="session")
def made_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that `stored` copies."""
    path = tmp_path_factory.mktemp("stored") / "library"
    photos = _photos()
    with Library.create(path) as library:
        with library._writing() as index:
            remember_folders(library._database, [FOLDER.encode()])
            PhotoWriter(library._database, index).store(photos)
        assert photos[0].descriptors is not None
        library.people.add("Nobody", [Example(photos[0].descriptors[0], f"{FOLDER}/0.jpg", picture=b"JPEG")])
    return path


@pytest.fixture
def stored(made_once: Path, tmp_path: Path) -> Path:
    """A library of four photos with 1, 2, 0 and 3 faces, and of a person called Nobody."""
    return shutil.copytree(made_once, tmp_path / "library")
