"""Reads what can still be read from a damaged database of a library, row by row.

Pages that SQLite cannot read are passed over by the keys of their rows; the checksum of a row tells whether
it is as it was stored.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from setnet.durable import copy_file_elsewhere
from setnet.library.paths import COMMITS, DATABASE, LOGS
from setnet.library.row_sums import COLUMNS, KEYS, register_row_hash, row_hash
from setnet.library.schema import migrate

_MAGIC = b"SQLite format 3\0"
_DISK_ERRORS = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL}
_CHUNK = 4096  # keys read at once
_LARGEST_FILE = 1 << 36  # bytes: a header that says more is damaged
_PROBES_APART = 64  # keys: about a page of rows
_HIGHEST_POSSIBLE = 1 << 26  # a higher one is damaged
_FACES_PER_PHOTO = 65536  # as in the keys of the checksums
Row = tuple[Any, ...]

_SORTED_BY = {"meta": "key", "folders": "path"}
# What tables are told by is enough to read them; the list of all must fit into the first page.
_NEEDLESS = r" AUTOINCREMENT| UNIQUE| NOT NULL| REFERENCES \w+ ON DELETE [A-Z ]+| CHECK \([^()]*\([^()]*\)\)"


def copy_database(library: Path, to: Path) -> Path:
    """Copy a library's database with its logs, as SQLite changes what it opens; return the copy."""
    for name in (*LOGS, DATABASE, COMMITS):
        (to / name).unlink(missing_ok=True)
        if (library / name).exists():
            copy_file_elsewhere(library / name, to / name)
    return to / DATABASE


@contextmanager
def salvage(path: Path) -> Iterator[Salvage]:
    """Open a damaged database, which may be changed by that; yield its readable rows."""
    is_cut = False
    if not path.exists():
        path.touch()
    elif path.stat().st_size:
        with open(path, "r+b") as file:
            header = file.read(32)
            file.seek(0)
            file.write(_MAGIC)
            # A file cut short: with pages of zeros at its end SQLite reads those that are left.
            size = int.from_bytes(header[16:18], "big") * int.from_bytes(header[28:32], "big")
            is_cut = size > path.stat().st_size
            file.truncate(max(path.stat().st_size, min(size, _LARGEST_FILE)))
    _replace_lost_schema(path)
    with closing(_connect(path)) as db:
        yield Salvage(db, is_cut)


def _pass_over_damage(error: sqlite3.DatabaseError) -> None:
    """Raise an error of the disk, which may pass; what SQLite says of a damaged file is passed over."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK_ERRORS:  # the kind, without details
        raise error


def _connect(path: Path) -> sqlite3.Connection:
    db = sqlite3.connect(path, isolation_level=None)
    db.text_factory = lambda text: text.decode("utf-8", "replace")
    try:
        db.execute("PRAGMA writable_schema = ON")  # read tables although others are damaged
    except sqlite3.DatabaseError as error:
        _pass_over_damage(error)
    return db


def _replace_lost_schema(path: Path) -> None:
    """Give a file whose list of tables cannot be read that of any library: tables begin at fixed pages."""
    for is_vacuumed in (True, False):
        with closing(_connect(path)) as db:
            try:
                if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    db.execute("SELECT count(*) FROM people").fetchone()
                return
            except sqlite3.DatabaseError as error:
                _pass_over_damage(error)
        path.with_name(f"{path.name}-wal").unlink(missing_ok=True)
        with open(path, "r+b") as file:
            file.write(_first_page(is_vacuumed))


def _first_page(is_vacuumed: bool) -> bytes:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as sound:
        register_row_hash(sound)
        migrate(sound)
        if is_vacuumed:
            sound.execute("VACUUM")
        tables = sound.execute(
            "SELECT sql, rootpage, name FROM sqlite_master WHERE type = 'table' AND name <> 'sqlite_sequence'"
        ).fetchall()
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as made:
        for sql, _, _ in tables:  # without what needs tables and indexes of its own
            made.execute(" ".join(re.sub(_NEEDLESS, "", sql).split()))
        made.execute("PRAGMA writable_schema = ON")
        made.executemany("UPDATE sqlite_master SET rootpage = ? WHERE name = ?", [row[1:] for row in tables])
        page = bytearray(made.serialize()[:4096])
    page[92:96] = b"\xff" * 4  # the number of pages is that of the file
    return bytes(page)


class Salvage:
    """The readable rows of a damaged database.

    `lost` counts the others that are known of, by table. Where `has_gaps`, there may have been more.
    """

    def __init__(self, db: sqlite3.Connection, has_gaps: bool) -> None:
        self._db, self.has_gaps = db, has_gaps
        names = self._from_both_ends("SELECT name FROM sqlite_master ORDER BY rowid")
        self._tables = {name for (name,) in names}
        self.lost = dict.fromkeys(COLUMNS, 0)

    def has(self, table: str) -> bool:
        """Return whether anything of a table can be read."""
        return table in self._tables and self._attempt(f"SELECT 1 FROM {table} LIMIT 1") is not None

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
                if self._fits(row, sums.get(key)) or (is_whole and is_whole(row)):
                    yield row
                else:
                    self.lost[table] += 1
            self.lost[table] += len(sums.keys() - seen)

    @staticmethod
    def _fits(row: Row, value: int | None) -> bool:
        """Return whether nothing speaks against a row: its checksum fits, or is lost."""
        return value is None or value == row_hash(*row)

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
            _pass_over_damage(error)
            self.has_gaps = True
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
            try:
                for row in self._db.execute(f"{statement} {order}"):
                    found[row[0]] = row
            except sqlite3.DatabaseError as error:
                _pass_over_damage(error)
                self.has_gaps = True
        return list(found.values())
