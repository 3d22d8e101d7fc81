"""The database of a library: one connection to write, others to read, and nothing lost unnoticed.

Damage to SQLite's write-ahead log silently takes back the commits in it. Each transaction therefore counts
itself in the database, and its number is appended to `library.commits` once it is stored. A number there
that is higher than the database's own means that changes were lost.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from setnet.durable import append_durably, check_disk_full, replace_file, transaction
from setnet.engine.catalog import ReadAccess
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError, StorageError
from setnet.library.paths import LOCK, NEXT_DATABASE, QUARANTINE, STAGING
from setnet.library.row_sums import raise_hidden, register_row_hash
from setnet.library.schema import migrate
from setnet.system import FileLock

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


_PATIENCE_SECONDS = 10.0
_MAPPED = 1 << 30  # bytes read without a copy or a system call per page


def make_private(path: Path) -> None:
    """Make an empty file, where there is none, for its owner alone; SQLite gives its logs the same mode."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))


def _log_ahead(db: sqlite3.Connection) -> None:
    """Choose write-ahead logging; while another connection does the same SQLite does not wait by itself."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
        time.sleep(0.005)


class Database:
    """The library's `library.db`: safe to share between threads, beside other processes.

    Write-ahead logging lets readers go on while one writer writes; `secure_delete` overwrites what is
    deleted with zeros, because a face that was removed must not linger in free pages.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._local = threading.local()
        self._open: list[ReadAccess] = []
        self._lock = threading.Lock()
        self.commits = CommitRecord(path)
        self._loss: str | None = None
        try:
            with self.errors():
                if not path.exists() and self._can_write:
                    make_private(path)
                migrate(self.connection)
                self._loss = self.commits.loss(self.connection, self.commits.highest())
                if self._can_write and not self._loss:
                    self.commits.tidy(self.connection)
            self._identity = self._on_disk()
        except BaseException:
            self.close()
            raise

    @property
    def connection(self) -> sqlite3.Connection:
        """This thread's connection."""
        access: ReadAccess | None = getattr(self._local, "access", None)
        if access is None or access.is_outdated:
            with self.errors():
                access = self._local.access = self._connected()
        return access.db

    def _connected(self) -> ReadAccess:
        access = ReadAccess(self.path)
        with self._lock:
            self._open.append(access)
        access.db.execute(f"PRAGMA busy_timeout = {_PATIENCE_SECONDS * 1000:.0f}")
        _log_ahead(access.db)
        for setting in (
            "synchronous = FULL",
            "secure_delete = ON",
            "foreign_keys = ON",
            f"mmap_size = {_MAPPED}",
        ):
            access.db.execute(f"PRAGMA {setting}")
        register_row_hash(access.db)
        return access

    @property
    def _can_write(self) -> bool:
        return os.access(self.path.parent, os.W_OK)

    @property
    def is_gone(self) -> bool:
        """Whether the file was deleted, or another one took its place, since it was opened."""
        return self._on_disk() != self._identity

    def _on_disk(self) -> tuple[int, int] | None:
        try:
            info = os.stat(self.path)
        except OSError:
            return None
        return info.st_dev, info.st_ino

    @property
    def version(self) -> int:
        """A number that changes with the commits of all other connections."""
        with self.errors():
            return int(self.connection.execute("PRAGMA data_version").fetchone()[0])

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield this thread's connection; database errors become ours."""
        with self.errors():
            yield self.connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield the connection inside one transaction: all of it is stored, or nothing.

        Refused when commits were lost: the next ones would hide the loss.
        """
        if self._loss:
            raise StorageError(self._loss)
        db = self.connection
        with self.errors():
            with transaction(db):
                if self.is_gone:  # replaced or deleted while we waited for our turn: nobody would see it
                    raise LockedError(f"{self.path} was replaced by another program a moment ago: try again")
                yield db
                number = self.commits.count(db)
            self.commits.append(number)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Translate errors of SQLite, of the system and of texts that cannot be stored, naming the file."""
        try:
            yield
        except OSError as error:
            raise StorageError(f"{error.filename or self.path}: {error.strerror or error}") from error
        except (UnicodeError, OverflowError) as error:
            raise InvalidInputError(f"{self.path} cannot hold or read a value: {error}") from error
        except sqlite3.Error as error:
            raise_hidden(error)
            text = str(error)
            if "locked" in text or "busy" in text:
                raise LockedError(f"{self.path} is being written by another process: try again") from error
            if "not a database" in text:
                raise NotAnIndexError(
                    f"{self.path} is not a setnet library, or damaged (`setnet repair`)"
                ) from error
            if "readonly" in text:
                raise StorageError(f"{self.path} is read-only for this user: nothing was changed") from error
            if "unable to open" in text:
                raise StorageError(f"{self.path} cannot be opened: may this user read it?") from error
            check_disk_full(self.path, error)
            raise StorageError(f"{self.path}: {text}; `setnet repair` repairs it") from error

    def erase_traces(self) -> None:
        """Rebuild the file without free pages, empty its log and what is set aside: deleted rows are gone."""
        with self.errors():
            self._empty(QUARANTINE)
            if (self.path.parent / STAGING).exists():
                with closing(FileLock(self.path.parent / LOCK)):  # nobody stages what was deleted
                    if (self.path.parent / NEXT_DATABASE).exists():
                        raise LockedError(
                            f"{self.path.parent} was being replaced by another state: open it again, then "
                            "repeat the deletion"
                        )
                    self._empty(STAGING)
            self.connection.execute("VACUUM")
            busy = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise StorageError(
                f"deleted, but another program is reading {self.path} and keeps its log from being emptied: "
                "close it and delete something again"
            )

    def _empty(self, folder: str) -> None:
        if (self.path.parent / folder).exists():
            shutil.rmtree(self.path.parent / folder)

    def close(self) -> None:
        """Close the connections of all threads."""
        with self._lock:
            for access in self._open:
                access.close()
            self._open.clear()
        self._local = threading.local()
