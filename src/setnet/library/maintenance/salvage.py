"""Reads what can still be read from a damaged database of a library, row by row.

Pages that SQLite cannot read are passed over by the keys of their rows; the checksum of a row tells whether
it is as it was stored.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from setnet.library.store.location import COMMITS, DATABASE, LOGS
from setnet.library.store.row_sums import COLUMNS, KEYS, row_hash

__all__ = ["Salvage", "copy_database", "salvage"]

_MAGIC = b"SQLite format 3\0"
_CHUNK = 4096  # keys read at once
_PROBES_APART = 64  # keys: about a page of rows
_HIGHEST_POSSIBLE = 1 << 26  # a higher one is damaged
_FACES_PER_PHOTO = 65536  # as in the keys of the checksums
Row = tuple[Any, ...]

_SORTED_BY = {"meta": "key", "folders": "path"}


def copy_database(library: Path, to: Path) -> Path:
    """Copy a library's database with its logs, as SQLite changes what it opens; return the copy."""
    for name in (*LOGS, DATABASE, COMMITS):
        (to / name).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            shutil.copyfile(library / name, to / name)
    return to / DATABASE


@contextmanager
def salvage(path: Path) -> Iterator[Salvage]:
    """Open a damaged database, which may be changed by that; yield its readable rows."""
    if not path.exists():
        path.touch()
    elif path.stat().st_size:
        with open(path, "r+b") as file:
            file.write(_MAGIC)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.text_factory = lambda text: text.decode("utf-8", "replace")
        with suppress(sqlite3.DatabaseError):
            db.execute("PRAGMA writable_schema = ON")  # read what there is of a file cut short
        yield Salvage(db)


class Salvage:
    """The readable rows of a damaged database; `lost` counts the others that are known of, by table."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._tables = {row[0] for row in self._attempt("SELECT name FROM sqlite_master") or ()}
        self.lost = dict.fromkeys(COLUMNS, 0)

    def has(self, table: str) -> bool:
        """Return whether a table is there, damaged or not."""
        return table in self._tables

    def commits(self) -> int | None:
        """Return how many commits the database counted; None where that cannot be read."""
        rows = self._attempt("SELECT value FROM sums WHERE name = 'commits'")
        return int(rows[0][0]) if rows else None

    def rows(self, table: str, is_whole: Callable[[Row], bool] | None = None) -> Iterator[Row]:
        """Yield the readable rows of a table, but those that do not fit their checksum and are not whole."""
        for rows, sums in self._parts(table):
            seen = set()
            for key, *values in rows:
                seen.add(key)
                row = tuple(values)
                if key not in sums or sums[key] == row_hash(*row) or (is_whole and is_whole(row)):
                    yield row
                else:
                    self.lost[table] += 1
            self.lost[table] += len(sums.keys() - seen)

    def _parts(self, table: str) -> Iterator[tuple[list[Row], dict[Any, int]]]:
        """Yield rows, each after its key, and checksums by key, a part of the table at a time."""
        if not self.has(table):
            return
        columns = ", ".join(COLUMNS[table].split())
        read = f"SELECT {KEYS[table].format(table)}, {columns} FROM {table}"
        sums = f"SELECT key, value FROM row_sums WHERE name = '{table}'"
        if table in _SORTED_BY:
            order = f"ORDER BY {_SORTED_BY[table]}"
            yield self._from_both_ends(f"{read} {order}"), dict(self._from_both_ends(f"{sums} ORDER BY key"))
            return
        key, scale = ("photo", _FACES_PER_PHOTO) if table == "faces" else ("id", 1)
        for low in range(0, self._highest(table, key, scale) + 1, _CHUNK):
            high = low + _CHUNK - 1
            rows = self._between(f"{read} WHERE {key} BETWEEN ?1 AND ?2", low, high)
            limits = f"key >= ?1 * {scale} AND key < (?2 + 1) * {scale}"
            known = self._between(f"{sums} AND {limits}", low, high) if self.has("row_sums") else ()
            yield rows, dict(known)

    def _highest(self, table: str, key: str, scale: int) -> int:
        found = [
            *(self._attempt(f"SELECT max({key}) FROM {table}") or ()),
            *(self._attempt(f"SELECT max(key) / {scale} FROM row_sums WHERE name = '{table}'") or ()),
        ]
        keys = [row[0] for row in found if isinstance(row[0], int)]
        if keys or len(found) == 2:
            return min(max(keys, default=0), _HIGHEST_POSSIBLE)
        top = _CHUNK  # nothing tells: as far as anything can be read
        probe = f"SELECT 1 FROM {table} WHERE {key} BETWEEN ?1 AND ?2"
        while top < _HIGHEST_POSSIBLE and self._is_readable(probe, top, 2 * top):
            top *= 2
        return top

    def _attempt(self, statement: str, *keys: int) -> list[Row] | None:
        """Return the rows of a query, None where the file is damaged; an error of the disk is raised."""
        try:
            return self._db.execute(statement, keys).fetchall()
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorname.startswith("SQLITE_IOERR"):
                raise
            return None

    def _between(self, statement: str, low: int, high: int) -> list[Row]:
        """Return the rows with keys in a range: where they cannot be read, those of both halves of it."""
        rows = self._attempt(statement, low, high)
        if rows is not None:
            return rows
        if low == high or (high - low >= _PROBES_APART and not self._is_readable(statement, low, high)):
            return []
        middle = (low + high) // 2
        return self._between(statement, low, middle) + self._between(statement, middle + 1, high)

    def _is_readable(self, statement: str, low: int, high: int) -> bool:
        keys = range(low, high + 1, _PROBES_APART)
        return any(self._attempt(statement, key, key) is not None for key in keys)

    def _from_both_ends(self, statement: str) -> list[Row]:
        found: dict[Any, Row] = {}
        for order in ("ASC", "DESC"):
            with suppress(sqlite3.DatabaseError):
                for row in self._db.execute(f"{statement} {order}"):
                    found[row[0]] = row
        return list(found.values())
