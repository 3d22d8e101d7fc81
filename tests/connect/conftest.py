"""A library of photos that were never taken, with files that tags can be written into."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from setnet.library import Library
from tests.support import invented_photos

# psycopg comes with the extra `postgres`, which `make install` installs
collect_ignore = [] if find_spec("psycopg") else ["test_database.py", "test_immich.py", "test_postgres.py"]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as library:
        yield library


@pytest.fixture
def add_photo(library: Library, tmp_path: Path) -> Callable[..., Path]:
    """Return the function that writes a photo with faces of people and stores it."""

    def add(name: str, *people: int, **options: Any) -> Path:
        path = tmp_path / "photos" / name
        invented_photos.store_file(library, path, people, **options)
        return path

    return add
