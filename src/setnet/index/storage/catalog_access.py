"""How a catalogue is opened for reading where its folder may not be written.

SQLite keeps the latest commits in a write-ahead log beside the database, and needs a shared-memory file to
read it. A reader who may not write there can read the log while a writer keeps that file, or when SQLite
manages without. Where it cannot, database and log are put together in memory: the log is never left out, and
nothing is left behind.

A database file is opened by SQLite alone, never by hand: closing a descriptor of our own would drop all locks
that this process holds on the file (sqlite.org/howtocorrupt.html, 2.2).
"""

from __future__ import annotations

import os
import sqlite3
import struct
from contextlib import closing
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
        """Return a database in memory that holds database and log as of one moment."""
        for _ in range(ATTEMPTS):
            self._seen = self._state()
            with closing(connect(self._path, "immutable=1")) as stored:
                data = bytearray(stored.serialize())
            apply_log(data, _log(self._path).read_bytes())
            if self._state() == self._seen:
                break
        else:
            raise sqlite3.OperationalError("it changes too often to be copied; try again")
        data[18:20] = b"\1\1"  # no write-ahead log: databases in memory have none
        copy = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        copy.deserialize(bytes(data))
        return copy

    def close(self) -> None:
        """Close the connection."""
        self.db.close()


def apply_log(data: bytearray, log: bytes) -> None:
    """Write the commits in a write-ahead log into the bytes of its database.

    The layout is that of sqlite.org/fileformat2.html, section 4; reading ends at the first frame that does
    not fit its checksum, as SQLite's own recovery does.
    """
    if len(log) < 32:
        return
    magic, _, size, _, *salts, first, second = struct.unpack(">8I", log[:32])
    words = ">" if magic & 1 else "<"
    sums = _add_checksum(words, log[:24], (0, 0))
    if magic & ~1 != 0x377F0682 or sums != (first, second):
        return
    waiting: dict[int, bytes] = {}
    for at in range(32, len(log) - 24 - size + 1, 24 + size):
        page, pages_after, *frame_salts, first, second = struct.unpack(">6I", log[at : at + 24])
        content = log[at + 24 : at + 24 + size]
        sums = _add_checksum(words, content, _add_checksum(words, log[at : at + 8], sums))
        if frame_salts != salts or sums != (first, second):
            return
        waiting[page] = content
        if pages_after:  # a commit
            data.extend(bytes(max(0, pages_after * size - len(data))))
            for number, written in waiting.items():
                data[(number - 1) * size : number * size] = written
            del data[pages_after * size :]
            waiting.clear()


def _add_checksum(words: str, data: bytes, sums: tuple[int, int]) -> tuple[int, int]:
    first, second = sums
    for x, y in struct.iter_unpack(f"{words}2I", data):
        first = (first + x + second) & 0xFFFFFFFF
        second = (second + y + first) & 0xFFFFFFFF
    return first, second
