"""Checksums of the rows of a library's database: SQLite verifies its structure, not what rows say.

The table `row_sums` has a 64-bit hash of each row of the others. Triggers keep it, in the transaction that
changes the row. A check compares rows and hashes; a repair tells by them which rows are good.
"""

from __future__ import annotations

import marshal
import sqlite3
import threading
from hashlib import blake2b
from typing import Any

_EXAMPLE = "id person descriptor source x0 y0 x1 y1 picture added origin content"
_VERDICT = "id person content x0 y0 x1 y1 descriptor says added"
# A migration that adds a column puts it last and replaces the triggers of its table.
COLUMNS = {
    "meta": "key value",
    "folders": "path added scanned",
    "photos": "id path size mtime_ns hash taken width height faces state reason stored",
    "faces": "photo ordinal x0 y0 x1 y1 landmarks score quality",
    "people": "id name key added uid note cover",
    "examples": _EXAMPLE,
    "aliases": "id person name key",
    "verdicts": _VERDICT,
    "changes": "id at kind summary people undoes",
    "changed_rows": "id change tbl row did before after",
    "removed_examples": _EXAMPLE,
    "removed_verdicts": _VERDICT,
    "face_groups": "id person hidden faces photos first last cover stale",
    "group_members": "id grp",
    "shots": "id start stop best video",
    "shot_faces": "id at seen track",
    "photo_facts": "id taken_from note external",
}
# What names a row, by itself of no type: SQLite then looks it up in the key of `row_sums`.
KEYS = dict.fromkeys(COLUMNS, "+{0}.id") | {
    "meta": "+{0}.key",
    "folders": "+{0}.path",
    "faces": "+({0}.photo * 65536 + {0}.ordinal)",
}


_hidden = threading.local()


def row_hash(*values: Any) -> int:
    """Return the hash of a row's values, the same on all systems and versions of Python."""
    try:
        # Format 2 of marshal has not changed since Python 2.5; repr would take three times as long.
        digest = blake2b(marshal.dumps(values, 2), digest_size=8).digest()
        return int.from_bytes(digest, "little", signed=True)
    except BaseException as error:
        _hidden.error = error
        raise


def raise_hidden(reported: sqlite3.Error) -> None:
    """Raise what came up while SQLite had a row hashed, such as Ctrl-C: SQLite tells only that it failed.

    What came before the first statement of the function, which alone cannot fail, was Ctrl-C.
    """
    error: BaseException | None = getattr(_hidden, "error", None)
    _hidden.error = None
    if error is None and "user-defined function raised" in str(reported):
        error = KeyboardInterrupt()
    if error is not None:
        raise error from reported


def _listed(columns: str, row: str) -> str:
    return ", ".join(f"{row}.{column}" for column in columns.split())


def _triggers(table: str, columns: str) -> str:
    """Return the statements that keep the hashes of a table with these columns."""
    new, old = KEYS[table].format("NEW"), KEYS[table].format("OLD")
    store = (
        f"INSERT INTO row_sums VALUES ('{table}', {new}, row_hash({_listed(columns, 'NEW')})) "
        "ON CONFLICT (name, key) DO UPDATE SET value = excluded.value"
    )
    actions = {
        "insert": store,
        "update": store,
        "delete": f"DELETE FROM row_sums WHERE name = '{table}' AND key = {old} "
        f"AND value = row_hash({_listed(columns, 'OLD')})",
    }
    return "".join(
        f"CREATE TRIGGER {table}_{event} AFTER {event.upper()} ON {table} BEGIN {action}; END;\n"
        for event, action in actions.items()
    )


ROW_SUMS_SCHEMA = (
    "CREATE TABLE row_sums (name TEXT NOT NULL, key NOT NULL, value INTEGER NOT NULL, "
    "PRIMARY KEY (name, key)) WITHOUT ROWID;\n"
    + "".join(_triggers(table, columns) for table, columns in COLUMNS.items())
)


def register_row_hash(db: sqlite3.Connection) -> None:
    """Give a connection what the triggers call; without it, it can read and not write."""
    db.create_function("row_hash", -1, row_hash, deterministic=True)
    db.execute("PRAGMA recursive_triggers = ON")  # else rows that are replaced go without a trigger


def row_problems(db: sqlite3.Connection) -> list[str]:
    """Return which rows are not as they were stored; for calls inside one transaction."""
    found = []
    for table, key in KEYS.items():
        key = key.format(table)
        rows = db.execute(
            f"SELECT row_sums.value, {key}, {_listed(COLUMNS[table], table)} FROM {table} "
            f"LEFT JOIN row_sums ON row_sums.name = '{table}' AND row_sums.key = {key}"
        )
        wrong = [name for value, name, *row in rows if value != row_hash(*row)]
        gone = db.execute(
            f"SELECT key FROM row_sums WHERE name = '{table}' AND key NOT IN (SELECT {key} FROM {table})"
        ).fetchall()
        found += [f"row {name!r} of the table {table!r} is not as it was stored" for name in wrong]
        found += [f"row {name!r} of the table {table!r} is missing" for (name,) in gone]
    return found
