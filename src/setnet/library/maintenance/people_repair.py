"""Saves the people of a damaged database: names, example faces, verdicts, and a journal that is whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from setnet.library.maintenance.salvage import Row, Salvage
from setnet.library.people.example import ORIGINS
from setnet.library.people.names import is_id, key_of
from setnet.library.store.tables.row_sums import COLUMNS
from setnet.wording import counted

_LARGEST_NORM_ERROR = 1e-3
_JOURNAL = ("changes", "changed_rows", "removed_examples", "removed_verdicts")
_LOST: Mapping[str, tuple[str, str, str | None]] = {
    "people": ("names of {}: who has example faces is 'recovered person N' now", "person", "people"),
    "examples": ("{} of people", "example face", None),
    "aliases": ("{} of people", "other name", None),
    "verdicts": ("{} confirmed or refused", "face that was", "faces that were"),
}


def save_people(db: sqlite3.Connection, old: Salvage, dim: int) -> list[str]:
    """Write what can be read of people to a new database; return what is lost, in sentences."""
    # A name that fits its key is whole, and so is a descriptor of length 1, whatever the checksums say.
    people = old.rows("people", lambda row: key_of(str(row[1])) == row[2])
    save(db, "people", map(_with_id, people))
    save(db, "examples", map(_with_origin, old.rows("examples", lambda row: _is_descriptor(row[2], dim))))
    db.executemany(
        "INSERT OR IGNORE INTO people (id, name, key, added, uid) VALUES (?, ?, ?, 0, ?)", _lost(db)
    )
    for table in ("aliases", "verdicts"):
        save(db, table, old.rows(table))
        db.execute(f"DELETE FROM {table} WHERE person NOT IN (SELECT id FROM people)")
    db.execute("UPDATE people SET cover = NULL WHERE cover NOT IN (SELECT id FROM examples)")
    is_journal_lost = _save_journal(db, old)
    for table in ("people", "examples", "aliases", "verdicts"):
        count_on(db, table)
    lost = [
        text.format(counted(old.lost[table], one, many))
        for table, (text, one, many) in _LOST.items()
        if old.lost[table]
    ]
    if is_journal_lost:
        lost.append("the journal of changes of people: they cannot be undone any more")
    if not old.has("people") or not old.has("examples"):
        lost.append("all saved people and their example faces: save them again (`setnet people add`)")
    return lost


def save(db: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows with all columns of a table; one that was never valid is left out.

    Only a row whose checksum was not verified can be that.
    """
    columns = COLUMNS[table].split()
    marks = ", ".join("?" * len(columns))
    db.executemany(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)


def _save_journal(db: sqlite3.Connection, old: Salvage) -> bool:
    """Save the journal, or nothing of it: a change that is known in part cannot be undone.

    Returns whether something was lost.
    """
    for table in _JOURNAL:
        save(db, table, old.rows(table))
    is_whole = not old.has_gaps and not any(old.lost[table] for table in _JOURNAL)
    is_lost = not is_whole and (
        any(old.lost[table] for table in _JOURNAL)
        or db.execute("SELECT count(*) FROM changes").fetchone()[0] > 0
    )
    if not is_whole:
        for table in _JOURNAL:
            db.execute(f"DELETE FROM {table}")
    return is_lost


def _with_id(row: Row) -> Row:
    number, name, key, added, uid, note, cover = row
    uid = uid if isinstance(uid, str) and is_id(uid) else _made_id(number, name, added)
    return number, name, key, added, uid, note or "", cover


def _with_origin(row: Row) -> Row:
    *first, origin, content = row
    return *first, origin if origin in ORIGINS else "portrait", content


def _lost(db: sqlite3.Connection) -> Iterator[tuple[int, str, str, str]]:
    """Yield who has example faces and no name."""
    rows = db.execute("SELECT DISTINCT person FROM examples WHERE person NOT IN (SELECT id FROM people)")
    for (person,) in rows.fetchall():
        name = f"recovered person {person}"
        yield person, name, name, _made_id(person, name, 0)


def _made_id(*facts: object) -> str:
    """Return an id that is the same whenever the same is repaired: what was read twice is compared."""
    return blake2b(repr(facts).encode("utf-8", "backslashreplace"), digest_size=6).hexdigest()


def count_on(db: sqlite3.Connection, table: str) -> None:
    """Let the numbers of new rows go on after all that are known of."""
    db.execute(
        f"UPDATE sums SET value = max(coalesce((SELECT max(id) FROM {table}), 0), "
        "coalesce((SELECT max(row) FROM changed_rows WHERE tbl = ?1), 0)) WHERE name = ?1",
        (table,),
    )


def _is_descriptor(value: Any, dim: int) -> bool:
    if not isinstance(value, bytes) or len(value) != 4 * dim:
        return False
    vector = np.frombuffer(value, "<f4").astype(np.float64)
    return bool(abs(np.linalg.norm(vector) - 1.0) < _LARGEST_NORM_ERROR)
