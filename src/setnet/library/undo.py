"""The history of changes of people, written by triggers: what is undone, redone or erased.

While a change is recorded, temporary triggers note each row of people and groups before and after, as
SQLite's documentation describes ("Automatic Undo/Redo Using Triggers"). To undo a change is to put these rows
back, the last first; the triggers note that as well, so that an undo can be undone.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from setnet.errors import InvalidInputError
from setnet.library.database import Database
from setnet.library.journal import JOURNAL_TABLES
from setnet.library.schema import refresh_groups
from setnet.wording import utc_time

# Tables whose rows belong to a person, in `person`.
OWNED = ("aliases", "examples", "labels", "tags")
# Rows with descriptors wait in a table of their own when they are deleted; others in the history itself.
_REMOVED = {"examples": "removed_examples", "labels": "removed_labels"}
_GROUP_TABLES = ("face_groups", "group_members")
# All columns of each table, and those that changes of people give other values.
_COLUMNS = {**JOURNAL_TABLES, "face_groups": "id person hidden", "group_members": "id grp"}
_CHANGING = {
    "people": "name key note cover",
    "aliases": "person name key",
    "examples": "person",
    "labels": "person",
    "tags": "person",
    "searches": "name query link",
    "face_groups": "person hidden",
    "group_members": "grp",
}


def _triggers() -> Iterator[str]:
    """Yield statements that let a connection note changes of rows while `recording` has a row."""
    yield "CREATE TEMP TABLE recording (is_undo)"
    for table, changing in _CHANGING.items():
        waiting, columns = _REMOVED.get(table), ", ".join(_COLUMNS[table].split())
        images = {"INSERT": ("NULL", "''"), "DELETE": (_image("OLD", _COLUMNS[table]), "NULL")}
        images["UPDATE"] = _image("OLD", changing), _image("NEW", changing)
        keep = ""
        if waiting is not None:
            images["DELETE"] = "''", "NULL"
            olds = ", ".join(f"OLD.{name}" for name in _COLUMNS[table].split())
            keep = f"INSERT OR REPLACE INTO {waiting} ({columns}) SELECT {olds} FROM recording; "
        for event, (before, after) in images.items():
            row, of = ("OLD" if event == "DELETE" else "NEW"), f" OF {', '.join(changing.split())}"
            changed = f" WHERE {before} <> {after}" if event == "UPDATE" else ""
            body = (
                "INSERT INTO changed_rows (tbl, row, before, after) "
                f"SELECT '{table}', {row}.id, {before}, {after} FROM recording{changed}; "
            )
            yield (
                f"CREATE TEMP TRIGGER {table}_{event.lower()}_recorded AFTER {event}"
                f"{of if event == 'UPDATE' else ''} ON {table} "
                f"BEGIN {keep if event == 'DELETE' else ''}{body}END"
            )
    for event in (
        "DELETE",
        "UPDATE OF person",
    ):  # who leaves is no cover any more
        yield (
            f"CREATE TEMP TRIGGER examples_{event[:6].lower()}_uncovers AFTER {event} ON examples BEGIN "
            "UPDATE people SET cover = NULL WHERE id = OLD.person AND cover = OLD.id "
            "AND EXISTS (SELECT 1 FROM recording WHERE NOT is_undo); END"
        )


def _image(row: str, columns: str) -> str:
    """Return the expression for columns of a row as a list that SQL reads back as it was."""
    return " || ',' || ".join(f"quote({row}.{name})" for name in columns.split())


@contextmanager
def recording(database: Database) -> Iterator[sqlite3.Connection]:
    """Yield a connection inside one transaction whose changes of people `enter_change` enters."""
    with database.writing() as db:
        if not db.execute("SELECT 1 FROM sqlite_temp_master WHERE name = 'recording'").fetchone():
            for statement in _triggers():
                db.execute(statement)
        db.execute("INSERT INTO recording VALUES (0)")
        yield db
        db.execute("DELETE FROM recording")


def enter_change(
    db: sqlite3.Connection, kind: str, summary: str, people: Iterable[int], undoes: int | None = None
) -> int | None:
    """Enter what was recorded as one change; return its number, None when nothing was changed.

    `people` are the rows of those concerned: with one of them the change is erased.
    """
    if db.execute("SELECT 1 FROM changed_rows WHERE change IS NULL").fetchone() is None:
        return None
    return _insert_change(db, kind, summary, people, undoes)


def record_final(db: sqlite3.Connection, summary: str, people: Iterable[int] = ()) -> int:
    """Enter that something was deleted for good, so that `undo` stops there; return the change's number."""
    return _insert_change(db, _FINAL, summary, people)


def _insert_change(
    db: sqlite3.Connection, kind: str, summary: str, people: Iterable[int], undoes: int | None = None
) -> int:
    (change,) = db.execute(
        "INSERT INTO changes (at, kind, summary, people, undoes) VALUES (?, ?, ?, ?, ?) RETURNING id",
        (time.time(), kind, summary, json.dumps(sorted(set(people))), undoes),
    ).fetchone()
    db.execute("UPDATE changed_rows SET change = ? WHERE change IS NULL", (change,))
    return int(change)


def check_name_free(db: sqlite3.Connection, name: str, key: str, table: str = "", row: int = 0) -> None:
    """Raise when a name or alias is another's; the row that it is given to may have it already."""
    found = db.execute(
        "SELECT name FROM people WHERE key = ?1 AND NOT (?2 = 'people' AND id = ?3) UNION ALL "
        "SELECT people.name FROM aliases JOIN people ON people.id = person "
        "WHERE aliases.key = ?1 AND NOT (?2 = 'aliases' AND aliases.id = ?3)",
        (key, table, row),
    ).fetchone()
    if found is not None:
        raise InvalidInputError(f"{name!r} is taken, by {found[0]!r}: to make the two one person, merge them")


_UNDID, _REDID = "undid: ", "redid: "
_FINAL = "erase"  # the kind of a change that deleted something for good


@dataclass(frozen=True, slots=True)
class Change:
    """A change of people in the history.

    Attributes
    ----------
    id, at
        Its number, and when it was made.
    kind, summary
        What was done, in a word and in a sentence.
    undoes
        The change that this one undid; to undo it is to redo that one.
    undone_by
        The change that undid this one, if that still holds.
    """

    id: int
    at: datetime
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
    return [Change(i, utc_time(at), kind, text, undoes, undone.get(i)) for i, at, kind, text, undoes in rows]


def undo_change(db: sqlite3.Connection, number: int | None = None) -> Change:
    """Undo a change, by default the latest that is not undone; return the change that did so."""
    change = _choose_change(db, number)
    rows = db.execute(
        "SELECT tbl, row, before, after FROM changed_rows WHERE change = ? ORDER BY id DESC", (change.id,)
    ).fetchall()
    db.execute("UPDATE recording SET is_undo = 1")  # what followed from a change is in the history too
    for table, row, before, after in rows:
        if not _put_back(db, table, row, before, after) and table not in _GROUP_TABLES:
            raise InvalidInputError(_blocked_reason(db, change, table, row))
    # A cover that came back may be of an example that was erased since.
    db.execute(
        "UPDATE people SET cover = NULL WHERE cover NOT IN (SELECT id FROM examples WHERE person = people.id)"
    )
    refresh_groups(db, is_recorded=True)
    kind, prefix = ("redo", _REDID) if change.kind == "undo" else ("undo", _UNDID)
    text = change.summary.removeprefix(_UNDID).removeprefix(_REDID)
    (people,) = db.execute("SELECT people FROM changes WHERE id = ?", (change.id,)).fetchone()
    entered = enter_change(db, kind, prefix + text, json.loads(people), change.id)
    if entered is None:
        raise InvalidInputError(f"change {change.id} ({change.summary}) is without effect by now")
    return next(found for found in list_changes(db) if found.id == entered)


def _put_back(db: sqlite3.Connection, table: str, row: int, before: str | None, after: str | None) -> bool:
    """Let a row be as it was before a change; return False where it is not as the change left it.

    What an index run has grouped since stays as it is.
    """
    if before is None:
        return db.execute(f"DELETE FROM {table} WHERE id = ?{_UNUSED.get(table, '')}", (row,)).rowcount > 0
    try:
        if after is None:
            return _insert_again(db, table, row, before)
        old, new = (_values(db, _CHANGING[table], image) for image in (before, after))
        changed = [name for name in old if old[name] != new[name]]
        if "key" in changed:
            check_name_free(db, str(old.get("name", old["key"])), str(old["key"]), table, row)
        conditions = [f"{name} IS ?" for name in changed]
        if old.get("grp") is not None:
            conditions.append(f"EXISTS (SELECT 1 FROM face_groups WHERE id = {int(old['grp'])})")
        return (
            db.execute(
                f"UPDATE {table} SET {', '.join(f'{name} = ?' for name in changed)} "
                f"WHERE id = ? AND {' AND '.join(conditions)}",
                (*(old[name] for name in changed), row, *(new[name] for name in changed)),
            ).rowcount
            > 0
        )
    except sqlite3.IntegrityError:  # whose it was is gone
        return False


# A row that was inserted is deleted again only while nothing else is in it.
_UNUSED = {
    "people": "".join(f" AND NOT EXISTS (SELECT 1 FROM {t} WHERE person = people.id)" for t in OWNED),
    "face_groups": " AND NOT EXISTS (SELECT 1 FROM group_members WHERE grp = face_groups.id)",
}


def _insert_again(db: sqlite3.Connection, table: str, row: int, before: str) -> bool:
    columns = ", ".join(_COLUMNS[table].split())
    waiting = _REMOVED.get(table)
    if waiting is not None:
        is_back = db.execute(
            f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {waiting} WHERE id = ?", (row,)
        ).rowcount
        db.execute(f"DELETE FROM {waiting} WHERE id = ?", (row,))
        return is_back > 0
    values = _values(db, _COLUMNS[table], before)
    if "key" in values and table != "searches":
        check_name_free(db, values["name"], values["key"])
    marks = ", ".join("?" * len(values))
    db.execute(f"INSERT INTO {table} ({columns}) VALUES ({marks})", [*values.values()])
    return True


def bring_back(db: sqlite3.Connection, change: int, owners: Mapping[int, int]) -> None:
    """Give examples and labels that a change deleted to the `owners` of today, by those of then."""
    for table, waiting in _REMOVED.items():
        columns = ", ".join(_COLUMNS[table].split()[2:])
        rows = db.execute(
            "SELECT row, coalesce((SELECT CAST(before AS INTEGER) FROM changed_rows AS earlier "
            "WHERE change = ?1 AND tbl = ?2 AND earlier.row = changed_rows.row AND after IS NOT NULL "
            "ORDER BY id LIMIT 1), person) "
            f"FROM changed_rows JOIN {waiting} AS waiting ON waiting.id = row "
            "WHERE change = ?1 AND tbl = ?2 AND after IS NULL ORDER BY row",
            (change, table),
        ).fetchall()
        for row, owner in rows:
            db.execute(
                f"INSERT INTO {table} (person, {columns}) SELECT ?, {columns} FROM {waiting} WHERE id = ?",
                (owners[owner], row),
            )


def _values(db: sqlite3.Connection, columns: str, image: str) -> dict[str, Any]:
    return dict(zip(columns.split(), db.execute(f"SELECT {image}").fetchone(), strict=True))


def removed_people(db: sqlite3.Connection, kind: str) -> dict[int, Mapping[str, Any]]:
    """Return the people, by row and with all columns, who are gone since a change of this kind."""
    rows = db.execute(
        "SELECT row, before FROM changed_rows JOIN changes ON changes.id = change WHERE kind = ? "
        "AND tbl = 'people' AND after IS NULL AND row NOT IN (SELECT id FROM people)",
        (kind,),
    ).fetchall()
    return {row: _values(db, _COLUMNS["people"], before) for row, before in rows}


def erase_changes(db: sqlite3.Connection, changes: Iterable[int] | None = None) -> int:
    """Delete changes from the history, by default all, with what waited for their undo; return how many.

    What undid or redid a deleted change goes with it.
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
    """Delete removed rows that no change could bring back, and changes that would bring back nothing."""
    for table, waiting in _REMOVED.items():
        db.execute(
            f"DELETE FROM {waiting} WHERE id NOT IN (SELECT row FROM changed_rows WHERE tbl = ?)", (table,)
        )
    db.execute(
        "DELETE FROM changes WHERE kind <> ? AND id NOT IN "
        "(SELECT change FROM changed_rows WHERE change IS NOT NULL)",
        (_FINAL,),
    )


def _choose_change(db: sqlite3.Connection, number: int | None) -> Change:
    known = list_changes(db)
    if number is None:
        latest = next((c for c in known if c.undoes is None and c.undone_by is None), None)
        if latest is None:
            raise InvalidInputError("there is nothing to undo: no change of people is in the history")
        if latest.kind == _FINAL:
            raise InvalidInputError(
                f"the last change ({latest.summary}) cannot be undone, and nothing else was: `setnet people "
                "history` lists the changes before it, `setnet people undo --change ID` undoes one of them"
            )
        return latest
    chosen = next((c for c in known if c.id == number), None)
    if chosen is None:
        raise InvalidInputError(f"no change {number} in the history: `setnet people history` lists them")
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


def _blocked_reason(db: sqlite3.Connection, change: Change, table: str, row: int) -> str:
    """Return why a change cannot be undone: a later one that stands concerns the same row."""
    related = {(table, row)}
    for owned in OWNED if table == "people" else ():
        rows = db.execute(f"SELECT id FROM {owned} WHERE person = ?", (row,))
        related |= {(owned, number) for (number,) in rows}
    undone = _undone_changes(db)
    later: Sequence[tuple[int, str, str, int]] = db.execute(
        "SELECT DISTINCT change, summary, tbl, row FROM changed_rows JOIN changes ON changes.id = change "
        "WHERE change > ? ORDER BY change DESC",
        (change.id,),
    ).fetchall()
    for number, summary, *place in later:
        if number not in undone and tuple(place) in related:
            return (
                f"change {change.id} ({change.summary}) cannot be undone: change {number} ({summary}) came "
                "after it and concerns the same. Undo that first"
            )
    return (
        f"change {change.id} ({change.summary}) cannot be undone: what it concerns was forgotten or changed "
        "since"
    )
