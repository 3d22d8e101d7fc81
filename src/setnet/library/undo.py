"""The journal of changes of people: each row as it was, and how changes are undone or erased."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from setnet.errors import InvalidInputError
from setnet.library.journal import JOURNAL_TABLES
from setnet.library.schema import GROUP_TABLES, refresh_groups

# Tables whose rows belong to a person, in `person`.
OWNED = ("aliases", "examples", "verdicts")
# Where rows with descriptors wait when they are removed; others are kept as JSON in the journal itself.
_REMOVED = {"examples": "removed_examples", "verdicts": "removed_verdicts"}


_GROUP_COLUMNS = {
    "face_groups": "id person hidden faces photos first last cover stale",
    "group_members": "id grp",
}


def _columns(table: str) -> list[str]:
    return {**JOURNAL_TABLES, **_GROUP_COLUMNS}[table].split()


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
            columns = ", ".join(_columns(table))
            self.values(table, row, ["id"])
            self.db.execute(
                f"INSERT INTO {_REMOVED[table]} ({columns}) SELECT {columns} FROM {table} WHERE id = ?",
                (row,),
            )
        else:
            before = self.values(table, row, _columns(table))
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
        columns, waiting = ", ".join(_columns(table)), _REMOVED[table]
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


_UNDID, _REDID = "undid: ", "redid: "
_FINAL = "erase"  # the kind of an entry for what was deleted for good


@dataclass(frozen=True, slots=True)
class Change:
    """An entry of the journal.

    Attributes
    ----------
    id, at
        Its number, and when it was made, in seconds since 1970.
    kind, summary
        What was done, in a word and in a sentence.
    undoes
        The change that this one undid; to undo it is to redo that one.
    undone_by
        The change that undid this one, if that still holds.
    """

    id: int
    at: float
    kind: str
    summary: str
    undoes: int | None
    undone_by: int | None


def list_changes(db: sqlite3.Connection, limit: int | None = None) -> list[Change]:
    """Return the changes, latest first."""
    undone = _undone_changes(db)
    rows = db.execute(
        "SELECT id, at, kind, summary, undoes FROM changes ORDER BY id DESC LIMIT ?",
        (-1 if limit is None else limit,),
    )
    return [
        Change(number, at, kind, summary, undoes, undone.get(number))
        for number, at, kind, summary, undoes in rows
    ]


def record_final(db: sqlite3.Connection, summary: str, people: Iterable[int] = ()) -> int:
    """Enter that something was deleted for good, so that `undo` stops there; return the entry's number."""
    recorder = Recorder(db)
    recorder.rows.append(RowChange("", 0, "delete"))  # of no table: an entry without rows is dropped
    entered = recorder.write(_FINAL, summary, people)
    assert entered is not None
    return entered


def undo_change(recorder: Recorder, number: int | None = None) -> Change:
    """Undo a change, by default the latest that is not undone, and enter that; return the new entry."""
    db = recorder.db
    change = _choose_change(db, number)
    rows = db.execute(
        "SELECT tbl, row, did, before, after FROM changed_rows WHERE change = ? ORDER BY id DESC",
        (change.id,),
    ).fetchall()
    try:
        for row in map(RowChange.of, rows):
            if row.table not in GROUP_TABLES or _is_group_as_left(db, row):
                _take_back(recorder, row)
    except OutdatedError as error:
        raise InvalidInputError(_blocked_reason(db, change, error)) from error
    _uncover_erased(recorder)
    kind, prefix = ("redo", _REDID) if change.kind == "undo" else ("undo", _UNDID)
    text = change.summary.removeprefix(_UNDID).removeprefix(_REDID)
    people = db.execute("SELECT people FROM changes WHERE id = ?", (change.id,)).fetchone()[0]
    entered = recorder.write(kind, prefix + text, json.loads(people), change.id)
    if entered is None:
        raise InvalidInputError(f"change {change.id} ({change.summary}) is without effect by now")
    refresh_groups(db)
    return next(found for found in list_changes(db) if found.id == entered)


def erase_changes(db: sqlite3.Connection, changes: Iterable[int] | None = None) -> int:
    """Delete entries, by default all, with what waited for their undo; return how many.

    What undid or redid a deleted entry goes with it.
    """
    undoes: dict[int, int | None] = dict(db.execute("SELECT id, undoes FROM changes ORDER BY id").fetchall())
    first: dict[int, int] = {}  # the change that a chain of undo and redo began with
    for number, undone in undoes.items():
        first[number] = number if undone is None else first.get(undone, undone)
    chains = {first.get(number) for number in (undoes if changes is None else changes)}
    gone = [number for number in undoes if first[number] in chains]
    db.executemany("DELETE FROM changes WHERE id = ?", [(number,) for number in gone])
    drop_unused_rows(db)
    return len(gone)


def drop_unused_rows(db: sqlite3.Connection) -> None:
    """Delete removed rows that no entry could bring back, and entries that would bring back nothing."""
    for table in ("examples", "verdicts"):
        db.execute(
            f"DELETE FROM removed_{table} WHERE id NOT IN (SELECT row FROM changed_rows WHERE tbl = ?)",
            (table,),
        )
    db.execute("DELETE FROM changes WHERE id NOT IN (SELECT change FROM changed_rows)")


def _take_back(recorder: Recorder, row: RowChange) -> None:
    if row.did == "insert":
        recorder.delete(row.table, row.row)
    elif row.did == "delete":
        recorder.restore(row.table, row.row, row.before)
    else:
        assert row.before is not None
        if recorder.values(row.table, row.row, list(row.before)) != row.after:
            raise OutdatedError(row.table, row.row)
        recorder.update(row.table, row.row, **row.before)


def _is_group_as_left(db: sqlite3.Connection, row: RowChange) -> bool:
    """Return whether a group is as a change left it: what a run has grouped anew since stays as it is."""
    there = db.execute(f"SELECT 1 FROM {row.table} WHERE id = ?", (row.row,)).fetchone() is not None
    if row.did == "delete":
        return not there
    if row.did == "insert":
        members = db.execute("SELECT 1 FROM group_members WHERE grp = ? LIMIT 1", (row.row,)).fetchone()
        return there and members is None
    after, before = row.after or {}, row.before or {}
    conditions = [f"{name} IS ?" for name in after]
    for name, table in (("grp", "face_groups"), ("person", "people")):  # what it goes back to is there still
        if before.get(name) is not None:
            conditions.append(f"EXISTS (SELECT 1 FROM {table} WHERE id = {int(before[name])})")
    found = db.execute(
        f"SELECT 1 FROM {row.table} WHERE id = ? AND {' AND '.join(conditions)}", (row.row, *after.values())
    )
    return found.fetchone() is not None


def _uncover_erased(recorder: Recorder) -> None:
    """Take covers back that came back with an undo after their example was forgotten."""
    rows = recorder.db.execute(
        "SELECT id FROM people WHERE cover NOT IN (SELECT id FROM examples WHERE person = people.id)"
    )
    for (person,) in rows.fetchall():
        recorder.update("people", person, cover=None)


def _choose_change(db: sqlite3.Connection, number: int | None) -> Change:
    known = list_changes(db)
    if number is None:
        latest = next((c for c in known if c.undoes is None and c.undone_by is None), None)
        if latest is None:
            raise InvalidInputError("there is nothing to undo: no change of people is in the journal")
        if latest.kind == _FINAL:
            raise InvalidInputError(
                f"the last change ({latest.summary}) cannot be undone, and nothing else was: `setnet people "
                "history` lists the changes before it, `setnet people undo --change ID` undoes one of them"
            )
        return latest
    chosen = next((c for c in known if c.id == number), None)
    if chosen is None:
        raise InvalidInputError(f"no change {number} in the journal: `setnet people history` lists them")
    if chosen.kind == _FINAL:
        raise InvalidInputError(f"change {number} ({chosen.summary}) cannot be undone: it deleted for good")
    if chosen.undone_by is not None:
        raise InvalidInputError(
            f"change {number} is undone already, by change {chosen.undone_by}: undoing that redoes it"
        )
    return chosen


def _undone_changes(db: sqlite3.Connection) -> dict[int, int]:
    """Return which changes are undone, by the change that did so and still holds."""
    found: dict[int, int] = {}
    for number, undoes in db.execute("SELECT id, undoes FROM changes ORDER BY id DESC"):
        if undoes is not None and number not in found:  # later ones come first: this one stands
            found.setdefault(undoes, number)
    return found


def _blocked_reason(db: sqlite3.Connection, change: Change, error: OutdatedError) -> str:
    """Return why a change cannot be undone: a later one that stands concerns the same."""
    related = {(error.table, error.row)}
    if error.table == "people":
        for table in ("aliases", "examples", "verdicts"):
            rows = db.execute(f"SELECT id FROM {table} WHERE person = ?", (error.row,))
            related |= {(table, row) for (row,) in rows}
    undone = _undone_changes(db)
    later = db.execute(
        "SELECT DISTINCT change, summary, tbl, row FROM changed_rows JOIN changes ON changes.id = change "
        "WHERE change > ? ORDER BY change DESC",
        (change.id,),
    )
    for number, summary, table, row in later:
        if number not in undone and (table, row) in related:
            return (
                f"change {change.id} ({change.summary}) cannot be undone: change {number} ({summary}) came "
                "after it and concerns the same. Undo that first"
            )
    return (
        f"change {change.id} ({change.summary}) cannot be undone: what it concerns was forgotten or changed "
        "since"
    )
