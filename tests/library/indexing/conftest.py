"""Photos for index runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from setnet.faces import FaceSettings
from setnet.library import Library


@pytest.fixture
def many(tmp_path: Path, compose: Callable[..., None]) -> Path:
    """Two dozen photos, no two alike."""
    for number in range(24):
        people = ("P001", "P003")[: 1 + number % 2]
        taken = f"2016:01:{number + 1:02} 12:00:00"
        compose(tmp_path / "many" / f"{number:02}.jpg", people, tile=number % 14, taken=taken)
    return tmp_path / "many"


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Library]:
    """A library of two folders with ten photos each in which nobody is."""
    for number in range(20):
        file = tmp_path / f"disk{number % 2}" / f"{number:02}.png"
        file.parent.mkdir(exist_ok=True)
        Image.new("RGB", (32, 32), (number, 0, 0)).save(file)
    with Library.create(tmp_path / "library", FaceSettings(detector="yunet")) as made:
        made.index([tmp_path / "disk0", tmp_path / "disk1"], workers=0)
        yield made
