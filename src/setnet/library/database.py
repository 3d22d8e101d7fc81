"""The database of a library: one connection to write, others to read, and nothing lost unnoticed.

At the end of each transaction, what it touched is known from triggers of its connection: photos get a new
checksum (`schema.photo_checksums`), and rows that people typed go to the journal (`journal`) as well.

Before an index run changes something, at most once a day, the database is copied to the folder `copies`.
"""

from __future__ import annotations

import logging
import os
import shutil
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from setnet.durable import check_disk_full, transaction
from setnet.engine.catalog import ReadAccess, settle_log
from setnet.errors import InvalidInputError, LockedError, NotAnIndexError, StorageError
from setnet.library.journal import JOURNAL_TABLES, Entry, Journal, lost_changes, stored_number, table_rows
from setnet.library.paths import COPIES, JOURNAL, LOCK, NEXT_DATABASE, QUARANTINE, STAGING, display_path
from setnet.library.schema import PHOTO_TABLES, migrate, refresh_checksums
from setnet.system import FileLock, sync_folder

_LOG = logging.getLogger("setnet.library")
_PATIENCE_SECONDS = 10.0
_COPIES, _COPY_SECONDS = 3, 24 * 3600.0  # how many are kept, and how far apart they are at least


def _touch_triggers() -> Iterator[str]:
    """Yield statements that let a connection note which photos and rows of the journal it changes."""
    keys = {table: (table, f"{{}}{columns.split()[0]}") for table, columns in JOURNAL_TABLES.items()}
    keys |= {table: ("photos", key) for table, (key, _) in PHOTO_TABLES.items()}
    yield "CREATE TEMP TABLE touched (tbl TEXT, key)"
    for table, (noted, key) in keys.items():
        columns = f" OF {', '.join(PHOTO_TABLES[table][1].split())}" if table in PHOTO_TABLES else ""
        for event, rows in (("INSERT", ["NEW"]), (f"UPDATE{columns}", ["OLD", "NEW"]), ("DELETE", ["OLD"])):
            note = " ".join(
                f"INSERT INTO touched VALUES ('{noted}', {key.format(f'{row}.')});" for row in rows
            )
            name = f"{table}_{event.split()[0].lower()}_touched"
            yield f"CREATE TEMP TRIGGER {name} AFTER {event} ON {table} BEGIN {note} END"


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
        self.journal = Journal(path.with_name(JOURNAL))
        self._loss: str | None = None
        try:
            with self.errors():
                if not path.exists() and self._can_write:
                    make_private(path)
                migrate(self.connection)
                if self._can_write:
                    settle_log(path)
                self._compare_with_journal()
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
                access = self._local.access = self._connect()
        return access.db

    def _connect(self) -> ReadAccess:
        access = ReadAccess(self.path)
        with self._lock:
            self._open.append(access)
        access.db.execute(f"PRAGMA busy_timeout = {_PATIENCE_SECONDS * 1000:.0f}")
        _log_ahead(access.db)
        for setting in (
            "synchronous = FULL",
            "secure_delete = ON",
            "foreign_keys = ON",
            "recursive_triggers = ON",  # a row that is replaced is deleted, for triggers too
            "temp_store = MEMORY",
        ):
            access.db.execute(f"PRAGMA {setting}")
        return access

    def _compare_with_journal(self) -> None:
        """Write a journal that is behind; one that is ahead has changes that the database lost."""
        entered = self.journal.last_number()  # first: others may commit, and then enter, meanwhile
        missing = (entered or 0) - stored_number(self.connection)
        if missing > 0:
            self._loss = lost_changes(self.path, missing)
        elif self._can_write and (entered is None or missing or self.journal.is_long(self.connection)):
            self.rewrite_journal()

    def rewrite_journal(self) -> None:
        """Write the journal whole."""
        with self.journal.locked(), transaction(self.connection, "BEGIN"):
            self.journal.rewrite(self.connection)

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
        with self.errors(), ExitStack() as journal:
            if not db.execute("SELECT 1 FROM sqlite_temp_master WHERE name = 'touched'").fetchone():
                with transaction(db, "BEGIN"):
                    for statement in _touch_triggers():
                        db.execute(statement)
            with transaction(db):
                if self.is_gone:  # replaced or deleted while we waited for our turn: nobody would see it
                    raise LockedError(f"{self.path} was replaced by another program a moment ago: try again")
                yield db
                entries = _finish(db)
                if entries:
                    journal.enter_context(self.journal.locked())
            if entries:
                try:
                    self.journal.enter(db, stored_number(db), entries)
                # Stored all the same; the next change writes the journal whole.
                except (OSError, sqlite3.Error) as error:
                    _LOG.warning("%s is not up to date: %s", display_path(self.journal.path), error)

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
            has_copies = (self.path.parent / COPIES).exists()
            self._empty(COPIES)
            if (self.path.parent / STAGING).exists():
                with closing(FileLock(self.path.parent / LOCK)):  # nobody stages what was deleted
                    if (self.path.parent / NEXT_DATABASE).exists():
                        raise LockedError(
                            f"{self.path.parent} was being replaced by another state: open it again, then "
                            "repeat the deletion"
                        )
                    self._empty(STAGING)
            self.rewrite_journal()
            self.connection.execute("VACUUM")
            if has_copies:
                self.copy_daily()
            with self.writing() as db:
                db.execute("UPDATE sums SET value = 0 WHERE name = 'purging'")
            busy = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
        if busy:
            raise StorageError(
                f"deleted, but another program is reading {self.path} and keeps its log from being emptied: "
                "close it and delete something again"
            )

    def copy_daily(self) -> None:
        """Copy the database to the folder `copies`, unless that was done within a day; keep three copies.

        A copy that cannot be made is a warning: nothing depends on it as long as the database is sound.
        """
        folder = self.path.parent / COPIES
        try:
            copies = sorted(folder.glob("*.db"))
            if not copies or abs(time.time() - copies[-1].stat().st_mtime) >= _COPY_SECONDS:
                folder.mkdir(mode=0o700, exist_ok=True)
                self._copy_to(folder / f"{int(copies[-1].stem) + 1 if copies else 1:06}.db")
                for outdated in copies[: 1 - _COPIES]:
                    outdated.unlink()
        except (OSError, ValueError, sqlite3.Error) as error:
            _LOG.warning("no copy of %s could be made: %s", display_path(self.path), error)

    def _copy_to(self, path: Path) -> None:
        unfinished = path.with_name("unfinished")
        unfinished.unlink(missing_ok=True)
        make_private(unfinished)
        with closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
            self.connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # a copy has no log beside it
        os.chmod(unfinished, self.path.stat().st_mode & 0o777)
        os.replace(unfinished, path)
        sync_folder(path.parent)

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


def _finish(db: sqlite3.Connection) -> list[Entry]:
    """Complete a transaction: checksums of the photos it touched, and numbers; return what to journal."""
    refresh_checksums(db, "IN (SELECT key FROM touched WHERE tbl = 'photos')")
    entries: list[Entry] = []
    for table, columns in JOURNAL_TABLES.items():
        keys = db.execute("SELECT DISTINCT key FROM touched WHERE tbl = ? ORDER BY key", (table,)).fetchall()
        if keys:
            where = f"WHERE {columns.split()[0]} IN (SELECT key FROM touched WHERE tbl = '{table}')"
            rows = {row[0]: row for row in table_rows(db, table, where)}
            entries += [(table, key, rows.get(key)) for (key,) in keys]
    db.execute("DELETE FROM touched")
    db.execute(
        "UPDATE sums SET value = value + 1 WHERE name = 'commits' OR (name = 'journal' AND ?)",
        (bool(entries),),
    )
    return entries


def stored_commits(db: sqlite3.Connection) -> int:
    """Return how many commits the database counts: another number means that something has changed."""
    row = db.execute("SELECT value FROM sums WHERE name = 'commits'").fetchone()
    return 0 if row is None else int(row[0])
