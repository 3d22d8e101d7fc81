"""The truth about an index: one SQLite database of items, segments and deletions.

Readers who may not write the folder read it too, by the best way that permissions allow. A database file is
opened by SQLite alone, never by hand: closing a descriptor of our own would drop all locks that this process
holds on the file (sqlite.org/howtocorrupt.html, 2.2).
"""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.durable import check_disk_full, transaction
from setnet.engine.commit_log import Committed
from setnet.engine.settings import is_unicode
from setnet.errors import (
    NotAnIndexError,
    StorageError,
    VersionError,
)

_UNSETTLED = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_FULL)
State = tuple[tuple[int, int, int] | None, ...]


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


def settle_log(path: Path) -> None:
    """Commit over what a commit that failed or was killed may have left at the end of the log.

    SQLite writes a commit to the log, then to the index of the log that all who have the database open share.
    If it is cut short in between, nobody sees it until all have closed the database; whoever opens it then
    finds it stored. The next commit overwrites it: this one, which changes nothing else.
    """
    if not log_bytes(path):
        return
    with closing(sqlite3.connect(path, isolation_level=None, timeout=0)) as db:
        try:
            db.execute("BEGIN IMMEDIATE")
            (version,) = db.execute("PRAGMA user_version").fetchone()
            db.execute(f"PRAGMA user_version = {version}")
            db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            # somebody is writing, and commits over it; this user may not; the disk is full where the log ends
            if error.sqlite_errorcode & 0xFF not in _UNSETTLED:
                raise


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
        except sqlite3.OperationalError as error:
            self.db.close()
            raise StorageError(
                f"{path} has changes in its write-ahead log, which cannot be read where you may not write "
                f"({error}): let its owner open it, or copy the folder to where you may write"
            ) from error

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

    def close(self) -> None:
        """Close the connection."""
        self.db.close()


ListedSegment = tuple[int, int, int, int, int]  # number, items, elements, bytes, crc

# Numbered migrations: entry i takes a database from version i to i + 1.
MIGRATIONS = [
    """
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
    CREATE TABLE items (seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE);
    CREATE TABLE segments (number INTEGER PRIMARY KEY, items INTEGER NOT NULL, elements INTEGER NOT NULL,
                           bytes INTEGER NOT NULL, crc INTEGER NOT NULL, deleted INTEGER NOT NULL DEFAULT 0,
                           deleted_elements INTEGER NOT NULL DEFAULT 0);
    CREATE TABLE tombstones (segment INTEGER NOT NULL, part INTEGER NOT NULL, bits BLOB NOT NULL,
                             PRIMARY KEY (segment, part)) WITHOUT ROWID;
    """,
]
VERSION = len(MIGRATIONS)
_ABANDONED: list[Catalog] = []
MOST_ITEMS = 1 << 31  # of a segment: rows are numbered in 32 bits
PART = 32768  # rows per tombstone bitmap: 4 kB, so that one deletion writes one page


class Catalog:
    """A connection to an index's database; every method names what it reads or writes.

    Writers call inside `writing`, which commits on success and rolls back on any error.
    """

    def __init__(self, path: Path, read_only: bool) -> None:
        self.path = path
        try:
            self._access = ReadAccess(path) if read_only else None
            self.db = self._access.db if self._access else connect(path, "mode=rw")
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # of SQLite's own message
            check_disk_full(path, error)
            raise StorageError(f"{path} is damaged or unreadable: {error}") from error
        try:
            self._prepare(read_only)
        except BaseException:
            self.close()  # at once: an open connection keeps log and shared memory on the disk
            raise

    def _prepare(self, read_only: bool) -> None:
        try:
            if read_only:
                self.db.execute("PRAGMA query_only = ON")
            self.db.execute("PRAGMA secure_delete = ON")
            self.db.execute("PRAGMA cache_size = -65536")
            version = self._version()
        except (sqlite3.DatabaseError, UnicodeDecodeError) as error:
            check_disk_full(self.path, error)
            raise StorageError(f"{self.path} is damaged or unreadable: {error}") from error
        if version > VERSION:
            raise VersionError(
                f"{self.path} was written by a newer setnet (catalogue version {version}, this one reads "
                f"{VERSION}): upgrade setnet to open it"
            )

    def _version(self) -> int:
        if not self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'meta'").fetchone():
            raise NotAnIndexError(f"{self.path} is not a setnet catalogue: it has no table 'meta'")
        return int(self.db.execute("PRAGMA user_version").fetchone()[0])

    @staticmethod
    def create(path: Path, meta: dict[str, Any]) -> None:
        """Make a new database with its settings."""
        db = sqlite3.connect(path, isolation_level=None)
        try:
            db.execute("BEGIN")
            for statement in ";".join(MIGRATIONS).split(";"):
                db.execute(statement)
            settings = {"generation": 0, "next_seq": 1, "next_segment": 1, **meta}
            db.executemany(
                "INSERT INTO meta VALUES (?, ?)", [(k, json.dumps(v)) for k, v in settings.items()]
            )
            db.execute(f"PRAGMA user_version = {VERSION}")
            db.execute("COMMIT")
            db.execute("PRAGMA journal_mode = WAL")  # last: all of it is in the one file that is renamed
        except sqlite3.Error as error:
            raise StorageError(f"cannot create {path}: {error}") from error
        finally:
            db.close()

    def close(self) -> None:
        """Close the connection."""
        (self._access or self.db).close()

    @property
    def is_outdated(self) -> bool:
        """Whether the files have changed in a way that this connection cannot see: open another."""
        return self._access is not None and self._access.is_outdated

    def abandon(self) -> None:
        """Leave the connection alone for good: closing one that a fork inherited could delete the log."""
        _ABANDONED.append(self)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Run a write transaction that also counts one generation up."""
        try:
            with transaction(self.db):
                yield
                self.set("generation", self.get("generation") + 1)
        except sqlite3.Error as error:
            raise StorageError(
                f"cannot write {self.path}: {error}; nothing already stored was changed"
            ) from error

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run several reads on one and the same state of the database."""
        try:
            with transaction(self.db, "BEGIN"):
                yield
        except sqlite3.DatabaseError as error:
            raise StorageError(
                f"cannot read {self.path}: {error}; check() of the index names the damage, repair() mends it"
            ) from error

    def damage(self) -> list[str]:
        """Return what is wrong with the database, as far as it can tell by itself."""
        try:
            found = [str(row) for (row,) in self.db.execute("PRAGMA integrity_check") if row != "ok"]
            listed, held = self.count("items"), self.living_items()
        except sqlite3.DatabaseError as error:
            return [f"{self.path} is damaged: {error}"]
        if listed != held:
            found.append(f"it lists {listed} items, its segments hold {held}")
        if zlib.crc32(json.dumps(self.get("settings"), sort_keys=True).encode()) != self.get("settings_crc"):
            found.append("the checksum of its settings does not fit")
        for counter, sql in (
            ("next_seq", "SELECT max(seq) FROM items"),
            ("next_segment", "SELECT max(number) FROM segments"),
        ):
            if self.get(counter) <= (self.db.execute(sql).fetchone()[0] or 0):
                found.append(f"{counter} is a number that is taken")
        return [f"{self.path} is damaged: {problem}" for problem in found]

    def committed(self) -> Committed:
        """Return what the commit log has to say of this state."""
        dead = {number: self.dead_rows(number, items) for number, items, *_ in self.segments()}
        deleted = {n: set(np.flatnonzero(bits).tolist()) for n, bits in dead.items() if bits is not None}
        return Committed(self.get("generation"), self.get("settings"), set(dead), deleted)

    def rows(self, kinds: Sequence[type], sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """Return rows whose values are of these kinds: SQLite keeps whatever damage put into a column."""
        found = self.db.execute(sql, values).fetchall()
        for row in found:
            if not all(map(isinstance, row, kinds)):
                raise StorageError(f"{self.path} is damaged: {row!r:.80} is no row of it; run check()")
        return found

    # -- settings ------------------------------------------------------------------------------------

    def get(self, key: str) -> Any:
        """Return a setting."""
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        least = 1 if key in ("next_seq", "next_segment") else 0
        with suppress(ValueError, TypeError, RecursionError):
            value = json.loads(row[0])
            if (
                isinstance(value, dict)
                if key == "settings"
                else type(value) is int and least <= value < 2**62
            ):
                return value
        raise StorageError(f"{self.path} is damaged: setting {key!r} is missing or cannot be read")

    def set(self, key: str, value: Any) -> None:
        """Write a setting."""
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, json.dumps(value)))

    # -- items ---------------------------------------------------------------------------------------

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        return int(self.db.execute(f"SELECT count(*) FROM {table}").fetchone()[0])

    def living_items(self) -> int:
        """Return the number of items."""
        # from the segments: counting half a million rows takes as long as a search
        count = self.db.execute("SELECT sum(items - deleted) FROM segments").fetchone()[0] or 0
        if not isinstance(count, int) or count < 0:
            raise StorageError(f"{self.path} is damaged: its segments hold {count} items; run check()")
        return count

    def seqs_of(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the sequence numbers of those ids that are stored."""
        found: dict[str, int] = {}
        for at in range(0, len(ids), 500):
            part = [i for i in ids[at : at + 500] if isinstance(i, str) and is_unicode(i)]
            marks = ",".join("?" * len(part))
            found.update(self.rows((str, int), f"SELECT id, seq FROM items WHERE id IN ({marks})", part))
        return found

    def enter(self, ids: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Enter ids, and return everyone's sequence number and those that were there before."""
        first = self.get("next_seq")
        before = self.db.total_changes
        rows = zip(range(first, first + len(ids)), ids, strict=True)
        self.db.executemany("INSERT OR IGNORE INTO items VALUES (?, ?)", rows)
        self.set("next_seq", first + len(ids))
        seq = np.arange(first, first + len(ids), dtype=np.int64)
        if self.db.total_changes - before - 1 == len(ids):  # the setting is a change too
            return seq, np.empty(0, np.int64)
        known = self.seqs_of(ids)
        if len(known) != len(ids):
            raise StorageError(
                f"{self.path} is damaged: sequence number {first} was given before; run check()"
            )
        seq = np.array([known[i] for i in ids], dtype=np.int64)
        return seq, seq[seq < first]

    def remove(self, seqs: Iterable[int]) -> None:
        """Remove items."""
        self.db.executemany("DELETE FROM items WHERE seq = ?", [(int(seq),) for seq in seqs])

    # -- segments ------------------------------------------------------------------------------------

    def segments(self) -> list[ListedSegment]:
        """Return all segments in order of their numbers."""
        sql = "SELECT number, items, elements, bytes, crc FROM segments ORDER BY number"
        return self.rows([int] * 5, sql)

    def enter_segment(self, number: int, items: int, elements: int, size: int, crc: int) -> None:
        """Enter a segment whose file is complete and on disk."""
        self.db.execute(
            "INSERT INTO segments (number, items, elements, bytes, crc) VALUES (?, ?, ?, ?, ?)",
            (number, items, elements, size, crc),
        )

    def drop_segments(self, numbers: Sequence[int]) -> None:
        """Remove segments and their tombstones."""
        keys = [(n,) for n in numbers]
        self.db.executemany("DELETE FROM segments WHERE number = ?", keys)
        self.db.executemany("DELETE FROM tombstones WHERE segment = ?", keys)

    def dead_rows(self, segment: int, items: int) -> NDArray[np.bool_] | None:
        """Return which rows of a segment are deleted; None when none is."""
        parts = self.rows((int, bytes), "SELECT part, bits FROM tombstones WHERE segment = ?", (segment,))
        if not parts:
            return None
        if not 0 <= items < MOST_ITEMS:
            raise StorageError(f"{self.path} is damaged: segment {segment} of {items} items")
        dead = np.zeros(-(-items // PART) * PART, dtype=bool)
        for part, bits in parts:
            if not 0 <= part * PART < len(dead) or len(bits) != PART // 8:
                raise StorageError(f"{self.path} is damaged: deletions of segment {segment} cannot be read")
            dead[part * PART : (part + 1) * PART] = np.unpackbits(
                np.frombuffer(bits, np.uint8), bitorder="little"
            )
        return dead[:items]

    def deleted_counts(self, segment: int) -> tuple[int, int]:
        """Return how many items and elements of a segment are deleted."""
        sql = "SELECT deleted, deleted_elements FROM segments WHERE number = ?"
        items, elements = self.rows((int, int), sql, (segment,))[0]
        return items, elements

    def bury(self, segment: int, rows: NDArray[np.int64], elements: int) -> None:
        """Mark rows of a segment as deleted."""
        for part in np.unique(rows // PART).tolist():
            row = self.db.execute(
                "SELECT bits FROM tombstones WHERE segment = ? AND part = ?", (segment, part)
            ).fetchone()
            bits = np.frombuffer(row[0], np.uint8).copy() if row else np.zeros(PART // 8, np.uint8)
            local = rows[rows // PART == part] % PART
            np.bitwise_or.at(bits, local // 8, (1 << (local % 8)).astype(np.uint8))
            self.db.execute(
                "INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", (segment, part, bits.tobytes())
            )
        self.db.execute(
            "UPDATE segments SET deleted = deleted + ?, deleted_elements = deleted_elements + ? "
            "WHERE number = ?",
            (len(rows), elements, segment),
        )
