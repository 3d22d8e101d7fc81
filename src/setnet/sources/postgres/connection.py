"""Connections to a user's PostgreSQL: named without their passwords, their errors in one sentence."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from setnet.errors import InvalidInputError, NotAnIndexError, OutcomeUnknownError, StorageError

Row = tuple[Any, ...]
Connection = psycopg.Connection[Row]

PATIENCE = 10  # seconds to wait for a server that does not answer
_ABANDONED: list[Connection | None] = []


def shown_uri(uri: str) -> str:
    """Return a connection string as it may be shown and logged: without password and options.

    >>> shown_uri("postgresql://ann:secret@db.example:5433/photos?sslmode=require")
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
    """One connection to a server, opened when it is needed and again after it was lost.

    It may be shared by threads, which take turns. ``prepare`` is called on each new connection.
    """

    def __init__(
        self, uri: str, prepare: Callable[[Connection], None] = lambda _: None, *, read_only: bool = False
    ) -> None:
        self.name = shown_uri(uri)
        self._uri, self._prepare, self._read_only = uri, prepare, read_only
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
        with self._transaction("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """Yield a connection whose changes are stored together when the block ends, or not at all.

        Raises `OutcomeUnknownError` when the connection was lost while they were being committed.
        """
        with self._transaction("SET TRANSACTION ISOLATION LEVEL READ COMMITTED") as connection:
            yield connection

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[Connection]:
        with self._lock, self._own_errors():
            connection = self._open()
            try:
                connection.execute(begin.encode())
                yield connection
            except BaseException:
                if not connection.closed:
                    connection.rollback()
                raise
            self._commit(connection)

    def _commit(self, connection: Connection) -> None:
        try:
            connection.commit()
        except psycopg.OperationalError as error:
            if not connection.broken:
                raise
            raise OutcomeUnknownError(
                f"{self.name}: the connection was lost while a change was being stored ({_line(error)}): it "
                "may be there or not, and repeating it does no harm"
            ) from error

    def _open(self) -> Connection:
        if self._process != os.getpid():  # after a fork the connection is the parent's; closing it ends that
            _ABANDONED.append(self._connection)
            self._process, self._connection = os.getpid(), None
        if self._connection is None or self._connection.closed:
            given: dict[str, Any] = {"connect_timeout": PATIENCE, "application_name": "setnet"}
            given |= _parts(self._uri)
            opened = psycopg.connect(make_conninfo("", **given))
            try:
                # what is acknowledged has reached the disk, whatever the server's default
                opened.execute("SET synchronous_commit = on")
                if self._read_only:
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
        if isinstance(error, errors.ReadOnlySqlTransaction):
            return StorageError(f"{self.name}: {said}: use a role and a server that may write")
        if isinstance(error, errors.IntegrityError):
            return StorageError(f"{self.name}: {said}: somebody else changed it meanwhile; repeat the call")
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
