"""The journal `library.journal`: what people typed, kept a second time beside the database.

It has every row of the tables in `JOURNAL_TABLES`: settings, folders, people, their other names, example
faces, labels, tags and saved searches. One line is one row as it is now, or that it is gone; a line with a
number ends each change and says how many rows it has. Every line begins with its checksum. The file begins
with all rows there were when it was last written whole, so that reading it from the start gives the tables as
they are.

A change is entered after the database has committed it, and the database has the number of its latest one
(`sums`, 'journal'). So a journal that is behind its database lacks a change whose process was killed: it is
written whole again. A journal that is ahead means that the database lost changes, and a repair takes them
from here.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setnet.durable import append_durably, replace_file

__all__ = ["JOURNAL_TABLES", "Journal", "JournalContents"]

_EXAMPLE = "id person descriptor source x0 y0 x1 y1 picture added origin content"
_LABEL = "id person content x0 y0 x1 y1 descriptor is_match added"
# The columns of each table; the first one is its key. In the order of what refers to what.
JOURNAL_TABLES: Mapping[str, str] = {
    "meta": "key value",
    "folders": "path added",
    "people": "id name key added uid note cover",
    "aliases": "id person name key",
    "examples": _EXAMPLE,
    "labels": _LABEL,
    "tags": "id person content x0 y0 x1 y1 added",
    "searches": "id name key query link added",
    "forgotten_faces": "id content x0 y0 x1 y1",
}
_TAIL = 64  # bytes: more than the last line of a change
_SPARE = 1 << 20  # bytes that a journal may grow by, and to twice its size, until it is written whole

Row = tuple[Any, ...]
Entry = tuple[str, Any, Row | None]  # table, key, the row or None when it is gone


@dataclass
class JournalContents:
    """What a journal says: the number of its last change, the rows by table and key, and unreadable lines."""

    number: int = 0
    rows: dict[str, dict[Any, Row]] = field(default_factory=lambda: {table: {} for table in JOURNAL_TABLES})
    damaged: int = 0


class Journal:
    """The journal of one library; several processes may enter changes, one at a time (`locked`)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from entering changes; taken before a commit, so that entries come in its order."""
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def last_number(self) -> int | None:
        """Return the number of the last change; None when the journal is missing or cut short."""
        try:
            with open(self.path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _TAIL))
                last = file.read().splitlines(keepends=True)[-1:]
        except FileNotFoundError:
            return None
        match _decode(last[0]) if last else None:
            case ["commit", int(number), int()]:
                return number
        return None

    def enter(self, db: sqlite3.Connection, number: int, entries: Iterable[Entry]) -> None:
        """Append a change that is committed, or write the journal whole where it lacks the one before."""
        if self.last_number() != number - 1:
            self.rewrite(db)
            return
        lines = [_encode(list(entry)) for entry in entries]
        append_durably(self.path, b"".join([*lines, _encode(["commit", number, len(lines)])]))

    def rewrite(self, db: sqlite3.Connection) -> None:
        """Write the journal whole; no entry of the past stays."""
        lines = [_encode([table, row[0], row]) for table in JOURNAL_TABLES for row in table_rows(db, table)]
        last = _encode(["commit", stored_number(db), len(lines)])
        mode = (self.path.parent / "library.db").stat().st_mode & 0o777
        replace_file(self.path, b"".join([*lines, last]), mode)

    def is_long(self, db: sqlite3.Connection) -> bool:
        """Whether most of the journal is about rows that were changed since."""
        (held,) = db.execute(
            "SELECT (SELECT coalesce(sum(length(descriptor) + length(picture)), 0) FROM examples) + "
            "(SELECT coalesce(sum(length(descriptor)), 0) FROM labels)"
        ).fetchone()
        return self.path.stat().st_size > 4 * int(held) + _SPARE

    def read(self) -> JournalContents | None:
        """Return what the journal says; lines that cannot be read are counted and passed over."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        found, pending = JournalContents(), list[Entry]()
        for line in data.splitlines(keepends=True):
            match _decode(line):
                case ["commit", int(number), int(count)]:
                    found.damaged += count != len(pending)
                    found.number = max(found.number, number)
                    for table, key, row in pending:
                        found.rows[table].pop(key, None)
                        if row is not None:
                            found.rows[table][key] = row
                    pending = []
                case [str(table), key, row] if table in JOURNAL_TABLES:
                    pending.append((table, key, None if row is None else tuple(row)))
                case _:
                    found.damaged += 1
        found.damaged += bool(pending)
        return found


def stored_number(db: sqlite3.Connection) -> int:
    """Return the number of the database's latest change of what the journal has."""
    row = db.execute("SELECT value FROM sums WHERE name = 'journal'").fetchone()
    return 0 if row is None else int(row[0])


def table_rows(db: sqlite3.Connection, table: str, where: str = "") -> Iterator[Row]:
    """Yield rows of a table as the journal has them, in the order of their keys."""
    columns = JOURNAL_TABLES[table].split()
    return db.execute(f"SELECT {', '.join(columns)} FROM {table} {where} ORDER BY {columns[0]}")


def differing_rows(db: sqlite3.Connection, contents: JournalContents) -> list[str]:
    """Return which rows of the database are not those of the journal; for calls inside one transaction."""
    found = []
    for table, expected in contents.rows.items():
        stored = {row[0]: row for row in table_rows(db, table)}
        found += [
            f"row {key!r} of the table {table!r} is not as it was stored"
            for key in sorted(stored.keys() | expected.keys(), key=repr)
            if stored.get(key) != expected.get(key)
        ]
    return found


def lost_changes(database: Path, missing: int) -> str:
    """Return what to tell the user when a database lacks changes that its journal has."""
    return (
        f"{database} has lost {missing} stored changes: its write-ahead log was damaged, or an older copy "
        "took its place. Repair it: `setnet repair` brings them back from the journal"
    )


def _encode(values: list[Any]) -> bytes:
    text = json.dumps(values, separators=(",", ":"), default=_encode_bytes).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _encode_bytes(value: bytes) -> dict[str, str]:
    return {"base64": base64.b64encode(value).decode()}


def _decode(line: bytes) -> Any:
    checksum, _, text = line.partition(b" ")
    if not line.endswith(b"\n") or checksum != b"%08x" % zlib.crc32(text[:-1]):
        return None
    return json.loads(text, object_hook=lambda value: base64.b64decode(value["base64"]))
