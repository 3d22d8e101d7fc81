"""Checksums over the rows of a library's database: SQLite verifies its structure, not what rows say.

Each table has one sum of 62-bit hashes of its rows, in any order. Triggers keep it: a row that comes adds its
hash, one that goes takes it away, in the same transaction. A check adds up the rows and compares.
"""

from __future__ import annotations

import sqlite3
import threading
from hashlib import blake2b
from typing import Any

__all__ = ["MIGRATION", "add_up", "problems", "raise_hidden", "register"]

# As of version 2 of the database: a migration that adds a column replaces the triggers of its table.
_COLUMNS = {
    "meta": "key value",
    "folders": "path added scanned",
    "photos": "id path size mtime_ns hash taken width height faces state reason stored",
    "faces": "photo ordinal x0 y0 x1 y1 landmarks score quality",
    "people": "id name key added",
    "examples": "id person descriptor source x0 y0 x1 y1 picture added",
}
_MASK = (1 << 62) - 1  # two hashes added are still an integer to SQLite


_hidden = threading.local()


def _hash(*values: Any) -> int:
    try:
        return int.from_bytes(blake2b(repr(values).encode(), digest_size=8).digest(), "little") & _MASK
    except BaseException as error:
        _hidden.error = error
        raise


def raise_hidden() -> None:
    """Raise what came up while SQLite had a row hashed, such as Ctrl-C: SQLite tells only that it failed."""
    error: BaseException | None = getattr(_hidden, "error", None)
    _hidden.error = None
    if error is not None:
        raise error


def _call(table: str, row: str) -> str:
    return f"row_hash({', '.join(f'{row}.{column}' for column in _COLUMNS[table].split())})"


def _trigger(table: str, event: str, change: str) -> str:
    return (
        f"CREATE TRIGGER {table}_{event.lower()} AFTER {event} ON {table} BEGIN UPDATE sums "
        f"SET value = (value {change}) & {_MASK} WHERE name = '{table}'; END;\n"
    )


MIGRATION = "CREATE TABLE sums (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;\n" + "".join(
    _trigger(table, "INSERT", f"+ {_call(table, 'NEW')}")
    + _trigger(table, "UPDATE", f"- {_call(table, 'OLD')} + {_call(table, 'NEW')}")
    + _trigger(table, "DELETE", f"- {_call(table, 'OLD')}")
    for table in _COLUMNS
)


def register(db: sqlite3.Connection) -> None:
    """Give a connection what the triggers call; without it, it can read and not write."""
    db.create_function("row_hash", -1, _hash)
    db.execute("PRAGMA recursive_triggers = ON")  # else rows that are replaced go without a trigger


def add_up(db: sqlite3.Connection) -> None:
    """Store the sums of the rows that are there, in a database that had none so far."""
    sums = [(table, _sum(db, table)) for table in _COLUMNS]
    db.executemany("INSERT INTO sums VALUES (?, ?)", [*sums, ("commits", 0)])


def problems(db: sqlite3.Connection) -> list[str]:
    """Return which tables hold other rows than were stored; for calls inside one transaction."""
    stored = dict(db.execute("SELECT name, value FROM sums").fetchall())
    return [
        f"a row of the table {table!r} is not as it was stored"
        for table in _COLUMNS
        if stored.get(table) != _sum(db, table)
    ]


def _sum(db: sqlite3.Connection, table: str) -> int:
    columns = ", ".join(_COLUMNS[table].split())
    return sum(_hash(*row) for row in db.execute(f"SELECT {columns} FROM {table}")) & _MASK
