"""The server's library: shared by requests, replaced as a whole when everything is deleted."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from setnet.library import Library, display_path, library_exists
from setnet.web.server.problems import Problem


class OpenLibrary:
    """A library that is created at the start if there is none, so that the page can start from nothing.

    A library that disappears later (deleted, moved, on a disk that was unmounted) is not created again:
    requests get 503 until it is back.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = Library.open_or_create(path)
        self._library.set_index  # noqa: B018 - opened here, before many threads need it at once
        self._settings = self._library.settings  # the process that finds faces goes on with these
        self._changed = threading.Condition()
        self._readers = 0
        self._replacing = False

    @contextmanager
    def reading(self) -> Iterator[Library]:
        """Yield the library; it stays open until the block ends."""
        self._follow()
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
        self._follow()
        with self._alone():
            try:
                return self._library.forget_everything()
            finally:
                self._open_successor(create=True)

    def _follow(self) -> None:
        """Open the library that took the place of the one that was open; raise when there is none."""
        if not self._library.is_gone:
            return
        if not library_exists(self.path):
            raise self._gone()
        with self._alone():
            self._open_successor(create=False)

    def _other_settings(self) -> Problem:
        return Problem(
            503,
            f"the library {display_path(self.path)} was replaced by one with other face settings, or "
            "described anew by another model, while this server runs: start the server again",
            {"Retry-After": "10"},
        )

    def _gone(self) -> Problem:
        return Problem(
            503,
            f"the library {display_path(self.path)} is gone, deleted or moved while this server runs: "
            "put it back, or start the server again to begin an empty one",
            {"Retry-After": "10"},
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Run a block while nobody reads the library and nobody can begin to."""
        with self._changed:
            self._changed.wait_for(lambda: not self._replacing)
            self._replacing = True
            self._changed.wait_for(lambda: self._readers == 0)
        try:
            yield
        finally:
            with self._changed:
                self._replacing = False
                self._changed.notify_all()

    def _open_successor(self, *, create: bool) -> None:
        """Open the library that is there now, or `create` an empty one."""
        if library_exists(self.path):
            library = Library.open(self.path)
            if library.settings != self._settings:
                library.close()
                raise self._other_settings()
        elif create:
            library = Library.create(self.path, self._settings, beside_others=True)
        else:
            raise self._gone()
        library.set_index  # noqa: B018 - opened here, before many threads need it at once
        self._library.close()
        self._library = library

    def close(self) -> None:
        """Close the library."""
        self._library.close()
