"""Photos of synthetic people with planted copies, and the functions that make more."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

Pixels = NDArray[np.uint8]
PEOPLE = ("P001", "P003", "P005", "P010")


@pytest.fixture(scope="session")
def selfie(_people: None) -> Callable[[str], Pixels]:
    """Return the function that gives a photo of a person, smaller than it comes."""
    from setnet.cli.demo_album import picture

    def photo(person: str) -> Pixels:
        return np.asarray(Image.fromarray(picture(person, "amateur_selfie")).resize((424, 632)))

    return photo


@pytest.fixture
def planted(selfie: Callable[[str], Pixels], tmp_path: Path) -> Path:
    """A folder: four photos of different people, copies of two of them, a file that is no photo."""
    folder = tmp_path / "photos"
    (folder / "copies").mkdir(parents=True)
    for person in PEOPLE:
        Image.fromarray(selfie(person)).save(folder / f"{person}.jpg", quality=92)
    first, second = Image.open(folder / "P001.jpg"), Image.open(folder / "P003.jpg")
    first.resize((212, 316)).save(folder / "copies" / "small.jpg", quality=60)
    first.crop((30, 40, 404, 600)).save(folder / "copies" / "cropped.png")
    second.transpose(Image.Transpose.FLIP_LEFT_RIGHT).convert("L").save(folder / "copies" / "mirrored.jpg")
    (folder / "broken.jpg").write_bytes(b"this is no photo")
    return folder
