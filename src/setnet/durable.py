"""What makes a change durable and its failures readable: transactions, whole files, errors of our own.

Every file below an index or a library is changed through here or through SQLite, so that a crash leaves the
old state or the new one, and an error of the system reaches the caller as a `StorageError`.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

from setnet.errors import InvalidInputError, OutcomeUnknownError, StorageError
from setnet.system import sync_folder

Method = TypeVar("Method", bound=Callable[..., Any])
_LATEST: dict[int, object] = {}  # transaction by connection
_NO_ROOM = 1 << 16  # bytes: SQLite maps 32 kB beside a database


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit what the block does, or roll it back on any exception, an interrupt included.

    Raises `OutcomeUnknownError` when the log could not be forced to disk: SQLite rolls back, but a crash
    soon after may still bring the change back.

    >>> db = sqlite3.connect(":memory:", isolation_level=None)
    >>> with transaction(db):
    ...     _ = db.execute("CREATE TABLE t (x)")
    >>> db.in_transaction
    False
    """
    if db.in_transaction:  # an interrupt struck between the BEGIN of an earlier call and its block
        db.execute("ROLLBACK")
    own = _LATEST[id(db)] = object()
    try:
        db.execute(begin)
        yield
        _commit(db)
    except BaseException:
        # a COMMIT may have succeeded before the interrupt; and a transaction that an interrupt left behind
        # comes here when it is collected as garbage, maybe inside the next one
        if db.in_transaction and _LATEST[id(db)] is own:
            db.execute("ROLLBACK")
        raise


def _commit(db: sqlite3.Connection) -> None:
    try:
        db.execute("COMMIT")
    except sqlite3.OperationalError as error:
        if not getattr(error, "sqlite_errorname", "").startswith("SQLITE_IOERR"):
            raise
        raise OutcomeUnknownError(
            f"the disk failed while a change was being stored ({error}): whether it is stored shows when the "
            "index is opened again; repeating it does no harm"
        ) from error


@contextmanager
def storage_errors(path: Path, doing: str = "") -> Iterator[None]:
    """Turn errors of the system and of SQLite into `StorageError`, naming the file."""
    try:
        yield
    except OSError as error:
        place = error.filename if isinstance(error.filename, str) else path
        raise StorageError(f"{doing}{place}: {error.strerror or error}") from error
    except (sqlite3.Error, UnicodeDecodeError) as error:  # SQLite quotes damage in its messages
        raise StorageError(f"{doing}{path}: {error}") from error


def check_disk_full(path: Path, error: Exception) -> None:
    """Raise `StorageError` where the disk of a database is full, which SQLite may call an I/O error."""
    with suppress(OSError):  # the folder may be gone
        is_full = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL
        if is_full or (
            isinstance(error, sqlite3.OperationalError) and shutil.disk_usage(path.parent).free < _NO_ROOM
        ):
            raise StorageError(
                f"the disk of {path} is full ({error}): make room, then repeat the command. What was stored "
                "is whole"
            ) from error


@contextmanager
def after_commit(path: Path) -> Iterator[None]:
    """Turn an error of the disk into `OutcomeUnknownError`: the change it follows is committed already."""
    try:
        with storage_errors(path):
            yield
    except StorageError as error:
        raise OutcomeUnknownError(
            f"{error}: a change was committed but not entered in {path.name}; that is made up for when the "
            "index is changed or opened again, and repeating the change does no harm"
        ) from error


def own_errors(method: Method) -> Method:
    """Let nothing but errors of setnet out of a method of an object with a ``path``.

    Errors of the system and of SQLite become `StorageError`, those of odd texts `InvalidInputError`. A
    Ctrl-C that met `threading.Condition` taking its lock again, a `RuntimeError` then, is itself again.
    """

    @wraps(method)
    def wrapped(owner: Any, *args: Any, **options: Any) -> Any:
        try:
            with storage_errors(owner.path):
                return method(owner, *args, **options)
        except UnicodeError as error:
            raise InvalidInputError(f"a name or path is no valid text: {error}") from error
        except RuntimeError as error:
            if isinstance(error.__context__, KeyboardInterrupt):
                raise error.__context__ from None
            raise

    return cast(Method, wrapped)


def replace_file(path: Path, data: bytes | memoryview, mode: int = 0o600) -> None:
    """Replace a file so that a crash at any moment leaves the old one or the new one, whole.

    `mode` says who may read and write it, within the limits of the user's mask.
    """
    temporary = path.with_name(f"{path.name}.new")
    opened = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    with open(opened, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    sync_folder(path.parent)


def copy_file_elsewhere(source: Path, to: Path) -> None:
    """Copy a file of a database that this process may have open, by a process of its own.

    Opening and closing the file here would drop the locks that SQLite holds on it for this process.
    """
    copied = subprocess.run(["cp", "--", source, to], capture_output=True, text=True)
    if copied.returncode:
        raise StorageError(f"{source} cannot be copied: {copied.stderr.strip()}")


def append_durably(path: Path, data: bytes) -> None:
    """Append to a file that exists, and return once the data is on the disk."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND)
    try:
        while data:
            data = data[os.write(file, data) :]
        os.fsync(file)
    finally:
        os.close(file)
