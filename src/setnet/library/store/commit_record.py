"""The number of the last acknowledged commit, beside the database: shows when stored changes were lost.

Damage to SQLite's write-ahead log silently takes back the commits in it. Each transaction therefore counts
itself in the database, and its number is appended to `library.commits` once it is stored. A number there that
is higher than the database's own means that changes were lost.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from contextlib import suppress
from pathlib import Path

from setnet.durable import append_durably, replace_file

_LONGEST = 1 << 14  # bytes: a longer file is replaced by its last number


class CommitRecord:
    """The file of acknowledged commits of one database; several processes may append to it."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self.path = database.with_suffix(".commits")

    def count(self, db: sqlite3.Connection) -> int:
        """Count a transaction, inside it; return its number."""
        row = db.execute(
            "UPDATE sums SET value = value + 1 WHERE name = 'commits' RETURNING value"
        ).fetchone()
        return 0 if row is None else int(row[0])

    def append(self, number: int) -> None:
        """Record that a commit is stored.

        The change is safe without: a full disk costs the record, and says nothing.
        """
        with suppress(OSError):
            append_durably(self.path, _line(number))

    def loss(self, db: sqlite3.Connection, recorded: int | None) -> str | None:
        """Return what to tell the user when the database lacks commits that were acknowledged.

        `recorded` is what `highest` returned before the database was read: others may commit meanwhile.
        """
        missing = (recorded or 0) - stored_commits(db)
        if missing <= 0:
            return None
        return (
            f"{self._database} has lost {missing} stored changes: its write-ahead log was damaged, or an "
            "older copy took its place. Repair it (`setnet repair`) or restore a backup (`setnet restore`)"
        )

    def tidy(self, db: sqlite3.Connection) -> None:
        """Begin the file where there is none, and shorten a long one."""
        with suppress(OSError):
            if not self.path.exists() or self.path.stat().st_size > _LONGEST:
                number = max(self.highest() or 0, stored_commits(db))
                replace_file(self.path, _line(number))
                os.chmod(self.path, self._database.stat().st_mode & 0o777)

    def highest(self) -> int | None:
        """Return the highest number; a damaged or unfinished line says nothing, another follows it."""
        try:
            lines = set(self.path.read_bytes().splitlines(keepends=True))
        except FileNotFoundError:
            return None
        numbers = [
            int(text) for line in lines if (text := line.partition(b" ")[0]).isdigit() and len(text) < 20
        ]
        return max((number for number in numbers if _line(number) in lines), default=None)


def _line(number: int) -> bytes:
    text = b"%d" % number
    return b"%s %08x\n" % (text, zlib.crc32(text))


def stored_commits(db: sqlite3.Connection) -> int:
    """Return how many commits the database itself counts."""
    row = db.execute("SELECT value FROM sums WHERE name = 'commits'").fetchone()
    return 0 if row is None else int(row[0])
