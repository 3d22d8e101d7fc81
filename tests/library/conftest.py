"""Libraries of the album: one for all tests, and one for each test that changes something."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from setnet.library import Library


@pytest.fixture(scope="session")
def portrait(portrait_file: Callable[[str], Path]) -> Callable[[str], str]:
    """Return the function that gives the path of a person's portrait."""
    return lambda person: str(portrait_file(person))


@pytest.fixture(scope="session")
def album(made: Any) -> Path:
    """The folder of photos that `shared` knows; not to be changed."""
    photos: Path = made.photos
    return photos


@pytest.fixture(scope="session")
def shared(made: Any) -> Iterator[Library]:
    """A library of the album; not to be changed."""
    with Library.open(made.library) as library:
        yield library


@pytest.fixture
def photos(tmp_path: Path, album: Path) -> Path:
    """A copy of the photos that a test may change; `library` knows them at this place."""
    shutil.copytree(album, tmp_path / "photos")
    return tmp_path / "photos"


@pytest.fixture
def library(tmp_path: Path, photos: Path) -> Iterator[Library]:
    """A library of `photos` that a test may change."""
    with Library.create(tmp_path / "library") as made:
        made.index([photos], workers=0)
        yield made
