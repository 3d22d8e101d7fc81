"""How a catalogue is opened for reading where its folder may not be written.

SQLite keeps the latest commits in a write-ahead log beside the database, and needs a shared-memory file to
read it. A reader who may not write there can read the log while a writer keeps that file, or when SQLite
manages without. Where it cannot, catalogue and log are copied to a private folder and read there: the log is
never left out.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
import weakref
from pathlib import Path

State = tuple[tuple[int, int, int] | None, ...]
ATTEMPTS = 20


def connect(path: Path, mode: str) -> sqlite3.Connection:
    """Return a connection to the database in a mode of SQLite's addresses."""
    return sqlite3.connect(
        f"{path.resolve().as_uri()}?{mode}",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        timeout=30,
    )


def log_bytes(path: Path) -> int:
    """Return the size of a database's write-ahead log; 0 where there is none."""
    try:
        return _log(path).stat().st_size
    except FileNotFoundError:
        return 0


def _log(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


class ReadAccess:
    """A connection for reading a catalogue, by the best way that permissions allow."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: State | None = None  # of the files as they were read; None when SQLite watches them
        self._folder: str | None = None
        # readers connect like writers, so that whoever closes last tidies the write-ahead log away
        if os.access(path.parent, os.W_OK):
            self.db = connect(path, "mode=rw")
            return
        self._seen = self._state()
        if not log_bytes(path):  # nothing is left out, and no file is made beside the catalogue
            self.db = connect(path, "immutable=1")
            return
        self.db = connect(path, "mode=ro")
        try:
            self.db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            self._seen = None
        except sqlite3.OperationalError:
            self.db.close()
            self.db = self._copied()

    @property
    def is_outdated(self) -> bool:
        """Whether the files have changed since they were read by a way that does not see changes."""
        return self._seen is not None and self._state() != self._seen

    def _state(self) -> State:
        found: list[tuple[int, int, int] | None] = []
        for path in (self._path, _log(self._path)):
            try:
                stat = path.stat()
                found.append((stat.st_ino, stat.st_size, stat.st_mtime_ns))
            except FileNotFoundError:
                found.append(None)
        return tuple(found)

    def _copied(self) -> sqlite3.Connection:
        """Copy catalogue and log as of one moment to a private folder, and connect there."""
        folder = tempfile.mkdtemp(prefix="setnet-")
        weakref.finalize(self, _remove, folder, os.getpid())
        copy = Path(folder, self._path.name)
        for _ in range(ATTEMPTS):
            self._seen = self._state()
            for source in (self._path, _log(self._path)):
                if source.exists():
                    shutil.copyfile(source, copy.with_name(source.name))
            if self._state() == self._seen:
                break
        else:
            raise sqlite3.OperationalError("it changes too often to be copied; try again")
        self._folder = folder
        return connect(copy, "mode=rw")

    def close(self) -> None:
        """Close the connection and remove a private copy."""
        self.db.close()
        if self._folder:
            _remove(self._folder, os.getpid())


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:  # not in a process forked meanwhile
        shutil.rmtree(folder, ignore_errors=True)
