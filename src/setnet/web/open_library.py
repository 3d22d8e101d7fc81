"""The library behind the server: shared by readers, replaced as a whole when everything is forgotten."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setnet.library import Library

__all__ = ["OpenLibrary"]


class OpenLibrary:
    """A library that is made when there is none yet, so that the page can start from nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = Library.open_or_create(path)
        self._library.set_index  # noqa: B018 - opened here: many threads ask for it at once later
        self._changed = threading.Condition()
        self._readers = 0
        self._replacing = False

    @contextmanager
    def reading(self) -> Iterator[Library]:
        """Yield the library; it stays open until the block ends."""
        with self._changed:
            self._changed.wait_for(lambda: not self._replacing)
            self._readers += 1
            library = self._library
        try:
            yield library
        finally:
            with self._changed:
                self._readers -= 1
                self._changed.notify_all()

    def forget_everything(self) -> int:
        """Delete the library from disk, once nobody reads it, and begin an empty one."""
        with self._changed:
            self._changed.wait_for(lambda: not self._replacing)
            self._replacing = True
            self._changed.wait_for(lambda: self._readers == 0)
        settings = self._library.settings  # the process that finds faces goes on with these
        try:
            photos = self._library.forget_everything()
        finally:
            self._library.close()
            self._library = Library.open_or_create(self.path, **settings.to_dict())
            self._library.set_index  # noqa: B018
            with self._changed:
                self._replacing = False
                self._changed.notify_all()
        return photos

    def close(self) -> None:
        """Close the library."""
        self._library.close()
