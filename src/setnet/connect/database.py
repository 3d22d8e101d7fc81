"""Connections to a user's PostgreSQL: named without their passwords, their errors in one sentence."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from setnet.errors import InvalidInputError, NotAnIndexError, StorageError

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]

PATIENCE = 10  # seconds to wait for a server that does not answer
_ABANDONED: list[Connection | None] = []


def display_uri(uri: str) -> str:
    """Return a connection string as it may be shown and logged: without password and options.

    >>> display_uri("postgresql://ann:secret@db.example:5433/photos?sslmode=require")
    'postgresql://ann@db.example:5433/photos'
    """
    known = _parts(uri)
    user = f"{quote(str(known['user']))}@" if known.get("user") else ""
    host = quote(str(known.get("host") or ""), safe="")
    port = f":{known['port']}" if known.get("port") else ""
    return f"postgresql://{user}{host}{port}/{quote(str(known.get('dbname') or ''))}"


def _parts(uri: str) -> dict[str, Any]:
    try:
        return dict(conninfo_to_dict(uri))
    except (psycopg.Error, UnicodeError):  # whose messages quote the string, with the password in it
        raise InvalidInputError(
            "the connection string cannot be read: expected postgresql://USER@HOST/DATABASE"
        ) from None


class Database:
    """One connection to a server that is only read, opened when it is needed and again after it was lost.

    It may be shared by threads, which take turns. ``prepare`` is called on each new connection.
    """

    def __init__(self, uri: str, prepare: Callable[[Connection], None] = lambda _: None) -> None:
        self.name = display_uri(uri)
        self._uri, self._prepare = uri, prepare
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._connection: Connection | None = None

    def close(self) -> None:
        """Close the connection; the next use opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """Yield a connection on which several statements see one state of the database."""
        with self._lock, self._own_errors():
            connection = self._open()
            try:
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                yield connection
            finally:
                if not connection.closed:
                    connection.rollback()

    def _open(self) -> Connection:
        if self._process != os.getpid():  # after a fork the connection is the parent's; closing it ends that
            _ABANDONED.append(self._connection)
            self._process, self._connection = os.getpid(), None
        if self._connection is None or self._connection.closed:
            given: dict[str, Any] = {"connect_timeout": PATIENCE, "application_name": "setnet"}
            given |= _parts(self._uri)
            opened = psycopg.connect(make_conninfo("", **given))
            try:
                opened.execute("SET default_transaction_read_only = on")
                self._prepare(opened)
                opened.commit()
            except BaseException:
                opened.close()
                raise
            self._connection = opened
        return self._connection

    @contextmanager
    def _own_errors(self) -> Iterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise self._sentence(error) from error

    def _sentence(self, error: psycopg.Error) -> Exception:
        """Return what a user is told: what was wrong, and what to do."""
        said = _line(error)
        if isinstance(error, (errors.UndefinedTable, errors.InvalidSchemaName, errors.UndefinedColumn)):
            return NotAnIndexError(f"{self.name}: {said}: the tables expected are not there")
        if isinstance(error, errors.InsufficientPrivilege):
            return StorageError(f"{self.name}: {said}: ask the database's owner to grant it")
        if isinstance(error, (errors.DataError, errors.UndefinedFunction)):  # a value of another type
            return InvalidInputError(f"{self.name}: {said}")
        if isinstance(error, psycopg.OperationalError) and error.sqlstate is None:
            return self._unreachable(said)
        return StorageError(f"{self.name}: {said}")

    def _unreachable(self, said: str) -> StorageError:
        if "password" in said:
            return StorageError(
                f"{self.name}: {said}: give the right one in the connection string, PGPASSWORD or ~/.pgpass"
            )
        if "does not exist" in said and "FATAL" in said:
            return StorageError(f"{self.name}: {said}: check the names of user and database")
        return StorageError(f"{self.name}: {said}: check the address, and that the server runs")


def _line(error: psycopg.Error) -> str:
    """Return the server's own message on one line."""
    said = error.diag.message_primary or next(iter(str(error).strip().splitlines()), type(error).__name__)
    return said.strip().rstrip(".:")


def unit_vectors(sent: Sequence[bytes], start: int, step: int) -> NDArray[np.float32]:
    """Return the vectors in values that the server sent, at unit length or zero.

    After ``start`` bytes about the whole, each number has ``step`` groups of four bytes, the last its value.
    """
    numbers = np.frombuffer(b"".join(value[start:] for value in sent), ">f4")
    rows = numbers.reshape(len(sent), -1)[:, step - 1 :: step].astype(np.float32)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), np.float32)
