"""Named sets of vectors on disk, for those who have no photos: each is one `SetIndex`."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from setnet.errors import InvalidInputError, NotAnIndexError
from setnet.index import SetIndex, Stats
from setnet.web.server.problems import Problem, not_found

NAME = r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$"


class SetStore:
    """A folder of indexes by name; made when the first one is."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._readers: dict[str, SetIndex] = {}
        self._writing: dict[str, threading.Lock] = {}

    def names(self) -> list[str]:
        """Return the names of all sets."""
        if not self._folder.is_dir():
            return []
        return sorted(
            p.name
            for p in self._folder.iterdir()
            if re.fullmatch(NAME, p.name) and (p / "catalog.sqlite").is_file()
        )

    def create(self, name: str, **options: Any) -> Stats:
        """Make an empty set."""
        path = self._path(name)
        if (path / "catalog.sqlite").is_file():
            raise Problem(409, f"there is a set {name!r} already: delete it first, or take another name")
        with SetIndex.create(path, **options) as index:
            return index.stats()

    def reader(self, name: str) -> SetIndex:
        """Return a set, open for reading."""
        with self._lock:
            if name not in self._readers:
                try:
                    self._readers[name] = SetIndex.open(self._path(name), read_only=True)
                except NotAnIndexError:
                    raise not_found(f"no set {name!r}: PUT /api/v1/sets/{name} makes one") from None
            return self._readers[name]

    @contextmanager
    def writer(self, name: str) -> Iterator[SetIndex]:
        """Yield a set open for writing, to one caller at a time."""
        self.reader(name)
        with self._lock:
            lock = self._writing.setdefault(name, threading.Lock())
        with lock, SetIndex.open(self._path(name)) as index:
            yield index

    def destroy(self, name: str) -> None:
        """Delete a set with all its files."""
        self.reader(name)
        with self._lock:
            self._readers.pop(name).close()
            SetIndex.destroy(self._path(name))

    def close(self) -> None:
        """Close all sets."""
        with self._lock:
            for reader in self._readers.values():
                reader.close()
            self._readers.clear()

    def _path(self, name: str) -> Path:
        if not re.fullmatch(NAME, name):
            raise InvalidInputError(
                f"set name {name[:80]!r}: letters, digits, - and _ are expected, at most 64"
            )
        return self._folder / name
