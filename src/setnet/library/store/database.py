"""One SQLite file, one connection per thread."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from setnet.durable import refuse_full_disk, transaction
from setnet.engine import ReadAccess
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError, StorageError
from setnet.library.store.commit_record import CommitRecord
from setnet.library.store.location import LOCK, NEXT_DATABASE, QUARANTINE, STAGING
from setnet.library.store.tables import row_sums
from setnet.library.store.tables.schema import migrate
from setnet.system import FileLock

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
        row_sums.register(access.db)
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
            row_sums.raise_hidden()
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
            refuse_full_disk(self.path, error)
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
