"""Changes rows of people, and remembers each one as it was, so that the change can be undone."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from setnet.errors import InvalidInputError
from setnet.library.store.tables.row_sums import COLUMNS

# Tables whose rows belong to a person, in `person`.
OWNED = ("aliases", "examples", "verdicts")
# Where rows with descriptors wait when they are removed; others are kept as JSON in the journal itself.
_REMOVED = {"examples": "removed_examples", "verdicts": "removed_verdicts"}


class RowChange(NamedTuple):
    """What happened to one row; `before` and `after` have the columns that an update changed.

    Of a row that was deleted and does not wait in a table of its own, `before` has all columns.
    """

    table: str
    row: int
    did: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None

    @classmethod
    def of(cls, stored: Sequence[Any]) -> RowChange:
        """Return the change of a row of `changed_rows`: tbl, row, did, before, after."""
        table, row, did, before, after = stored
        return cls(table, row, did, json.loads(before or "null"), json.loads(after or "null"))


class Recorder:
    """Inserts, updates and deletes rows inside one transaction; `write` enters them in the journal."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self.rows: list[RowChange] = []

    def insert(self, table: str, **values: Any) -> int:
        """Insert a row under a number that no row of its table ever had; return that."""
        row = self._next(table)
        self._insert(table, {"id": row, **values})
        return row

    def update(self, table: str, row: int, **values: Any) -> None:
        """Give columns of a row other values; those that are equal already are left out."""
        before = self.values(table, row, list(values))
        changed = [name for name in values if values[name] != before[name]]
        if not changed:
            return
        self._refuse_taken(table, row, values)
        if table == "examples" and "person" in changed:
            self._uncover(row)
        self.db.execute(
            f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in changed)} WHERE id = ?",
            (*(values[name] for name in changed), row),
        )
        old, new = ({name: some[name] for name in changed} for some in (before, values))
        self.rows.append(RowChange(table, row, "update", old, new))

    def delete(self, table: str, row: int) -> None:
        """Delete a row; a person must have lost what is theirs before."""
        before = None
        if table == "examples":
            self._uncover(row)
        if table in _REMOVED:
            columns = ", ".join(COLUMNS[table].split())
            self.values(table, row, ["id"])
            self.db.execute(
                f"INSERT INTO {_REMOVED[table]} ({columns}) SELECT {columns} FROM {table} WHERE id = ?",
                (row,),
            )
        else:
            before = self.values(table, row, COLUMNS[table].split())
        if table == "people":
            if self._is_owner(row):
                raise OutdatedError(table, row)
            groups = self.db.execute("SELECT id FROM face_groups WHERE person = ?", (row,)).fetchall()
            for (group,) in groups:  # that got the name by themselves
                self.update("face_groups", group, person=None)
        self.db.execute(f"DELETE FROM {table} WHERE id = ?", (row,))
        self.rows.append(RowChange(table, row, "delete", before))

    def restore(self, table: str, row: int, values: dict[str, Any] | None) -> None:
        """Insert a row again that was deleted."""
        if table not in _REMOVED:
            self._insert(table, values or {})
            return
        columns, waiting = ", ".join(COLUMNS[table].split()), _REMOVED[table]
        moved = self.db.execute(
            f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {waiting} "
            f"WHERE id = ? AND person IN (SELECT id FROM people)",
            (row,),
        ).rowcount
        if not moved:
            raise OutdatedError(table, row)
        self.db.execute(f"DELETE FROM {waiting} WHERE id = ?", (row,))
        self.rows.append(RowChange(table, row, "insert"))

    def values(self, table: str, row: int, columns: Sequence[str]) -> dict[str, Any]:
        """Return columns of a row."""
        found = self.db.execute(f"SELECT {', '.join(columns)} FROM {table} WHERE id = ?", (row,)).fetchone()
        if found is None:
            raise OutdatedError(table, row)
        return dict(zip(columns, found, strict=True))

    def write(self, kind: str, summary: str, people: Iterable[int], undoes: int | None = None) -> int | None:
        """Enter what was done in the journal; return its number, None when nothing was.

        `people` are the rows of those concerned: with one of them the entry is erased.
        """
        if not self.rows:
            return None
        change = self.db.execute(
            "INSERT INTO changes (at, kind, summary, people, undoes) VALUES (?, ?, ?, ?, ?) RETURNING id",
            (time.time(), kind, summary, json.dumps(sorted(set(people))), undoes),
        ).fetchone()[0]
        self.db.executemany(
            "INSERT INTO changed_rows (change, tbl, row, did, before, after) VALUES (?, ?, ?, ?, ?, ?)",
            [(change, r.table, r.row, r.did, _text(r.before), _text(r.after)) for r in self.rows],
        )
        return int(change)

    def _insert(self, table: str, values: dict[str, Any]) -> None:
        self._refuse_taken(table, values["id"], values)
        marks = ", ".join("?" * len(values))
        try:
            self.db.execute(
                f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})", list(values.values())
            )
        except sqlite3.IntegrityError as error:  # who it belonged to is gone
            raise OutdatedError(table, values["id"]) from error
        self.rows.append(RowChange(table, values["id"], "insert"))

    def _next(self, table: str) -> int:
        (row,) = self.db.execute(
            f"UPDATE sums SET value = 1 + max(value, coalesce((SELECT max(id) FROM {table}), 0)) "
            "WHERE name = ? RETURNING value",
            (table,),
        ).fetchone()
        return int(row)

    def _uncover(self, example: int) -> None:
        """Let an example that is about to leave its person not be their cover any more."""
        found = self.db.execute(
            "SELECT people.id FROM examples JOIN people ON people.id = person AND cover = examples.id "
            "WHERE examples.id = ?",
            (example,),
        ).fetchone()
        if found is not None:
            self.update("people", found[0], cover=None)

    def _is_owner(self, person: int) -> bool:
        parts = " UNION ALL ".join(f"SELECT 1 FROM {table} WHERE person = ?1" for table in OWNED)
        return self.db.execute(f"{parts} LIMIT 1", (person,)).fetchone() is not None

    def _refuse_taken(self, table: str, row: int, values: dict[str, Any]) -> None:
        """Raise when a name or alias is another's: a key is unique over both tables."""
        if "key" not in values:
            return
        found = self.db.execute(
            "SELECT name FROM people WHERE key = ?1 AND NOT (?2 = 'people' AND id = ?3) UNION ALL "
            "SELECT people.name FROM aliases JOIN people ON people.id = person "
            "WHERE aliases.key = ?1 AND NOT (?2 = 'aliases' AND aliases.id = ?3)",
            (values["key"], table, row),
        ).fetchone()
        if found is not None:
            raise InvalidInputError(
                f"{values['name']!r} is taken, by {found[0]!r}: to make the two one person, merge them"
            )


class OutdatedError(InvalidInputError):
    """A row is not there any more, or something depends on it since."""

    def __init__(self, table: str, row: int) -> None:
        super().__init__(f"what was to be changed was changed a moment ago ({table} {row}): look again")
        self.table, self.row = table, row


def _text(values: dict[str, Any] | None) -> str | None:
    return None if values is None else json.dumps(values)
