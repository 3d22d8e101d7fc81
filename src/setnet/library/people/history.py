"""The history of changes of people: what was done, how it is undone, and how entries are erased."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from setnet.errors import InvalidInputError
from setnet.library.people.recorder import OutdatedError, Recorder, RowChange
from setnet.library.store.tables import group_tables

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

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as values that JSON can hold."""
        return asdict(self)


def changes(db: sqlite3.Connection, limit: int | None = None) -> list[Change]:
    """Return the changes, latest first."""
    undone = _undone(db)
    rows = db.execute(
        "SELECT id, at, kind, summary, undoes FROM changes ORDER BY id DESC LIMIT ?",
        (-1 if limit is None else limit,),
    )
    return [
        Change(number, at, kind, summary, undoes, undone.get(number))
        for number, at, kind, summary, undoes in rows
    ]


def enter_final(db: sqlite3.Connection, summary: str, people: Iterable[int] = ()) -> int:
    """Enter that something was deleted for good, so that `undo` stops there; return the entry's number."""
    recorder = Recorder(db)
    recorder.rows.append(RowChange("", 0, "delete"))  # of no table: an entry without rows is dropped
    entered = recorder.write(_FINAL, summary, people)
    assert entered is not None
    return entered


def undo(recorder: Recorder, number: int | None = None) -> Change:
    """Undo a change, by default the latest that is not undone, and enter that; return the new entry."""
    db = recorder.db
    change = _chosen(db, number)
    rows = db.execute(
        "SELECT tbl, row, did, before, after FROM changed_rows WHERE change = ? ORDER BY id DESC",
        (change.id,),
    ).fetchall()
    try:
        for row in map(RowChange.of, rows):
            if row.table not in group_tables.TABLES or _is_group_as_left(db, row):
                _take_back(recorder, row)
    except OutdatedError as error:
        raise InvalidInputError(_blocked(db, change, error)) from error
    _uncover_erased(recorder)
    kind, prefix = ("redo", _REDID) if change.kind == "undo" else ("undo", _UNDID)
    text = change.summary.removeprefix(_UNDID).removeprefix(_REDID)
    people = db.execute("SELECT people FROM changes WHERE id = ?", (change.id,)).fetchone()[0]
    entered = recorder.write(kind, prefix + text, json.loads(people), change.id)
    if entered is None:
        raise InvalidInputError(f"change {change.id} ({change.summary}) is without effect by now")
    group_tables.refresh(db)
    return next(found for found in changes(db) if found.id == entered)


def erase(db: sqlite3.Connection, changes: Iterable[int] | None = None) -> int:
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
    drop_unused(db)
    return len(gone)


def drop_unused(db: sqlite3.Connection) -> None:
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


def _chosen(db: sqlite3.Connection, number: int | None) -> Change:
    known = changes(db)
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


def _undone(db: sqlite3.Connection) -> dict[int, int]:
    """Return which changes are undone, by the change that did so and still holds."""
    found: dict[int, int] = {}
    for number, undoes in db.execute("SELECT id, undoes FROM changes ORDER BY id DESC"):
        if undoes is not None and number not in found:  # later ones come first: this one stands
            found.setdefault(undoes, number)
    return found


def _blocked(db: sqlite3.Connection, change: Change, error: OutdatedError) -> str:
    """Return why a change cannot be undone: a later one that stands concerns the same."""
    related = {(error.table, error.row)}
    if error.table == "people":
        for table in ("aliases", "examples", "verdicts"):
            rows = db.execute(f"SELECT id FROM {table} WHERE person = ?", (error.row,))
            related |= {(table, row) for (row,) in rows}
    undone = _undone(db)
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
