"""People without photos, and a library of photos that were never taken."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import invented_photos
from setnet.library import Library, People
from setnet.library.database import Database


@pytest.fixture
def people(tmp_path: Path) -> Iterator[People]:
    """The people of a database, with descriptors of four numbers."""
    database = Database(tmp_path / "library.db")
    yield People(database, dim=4)
    database.close()


@pytest.fixture
def invented(tmp_path: Path) -> Iterator[Library]:
    """A library with photos 1 of people 1 and 2, 2 of 1 and 3, 3 of 3; a person's face is at 100 x number."""
    with Library.create(tmp_path / "library") as library:
        invented_photos.store(library, {"a": [1, 2], "b": [1, 3], "c": [3]})
        yield library
