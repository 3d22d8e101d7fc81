"""Finds people in the database by name, alias or id."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from setnet.errors import InvalidInputError
from setnet.library.people.names import key_of
from setnet.library.people.person import Person

Who = str | Person  # a name, an alias or an id; or the person, whoever else may be called like them
_MOST_NAMES = 20
_SELECT = (
    "SELECT people.id, people.name, count(examples.id), people.added, max(examples.picture IS NOT NULL), "
    "uid, note, cover FROM people LEFT JOIN examples ON examples.person = people.id"
)


def everybody(db: sqlite3.Connection) -> list[Person]:
    """Return all people in the order of their names."""
    aliases: defaultdict[int, list[str]] = defaultdict(list)
    for person, name in db.execute("SELECT person, name FROM aliases ORDER BY key"):
        aliases[person].append(name)
    rows = db.execute(f"{_SELECT} GROUP BY people.id ORDER BY people.key")
    return [_person(row, aliases.get(row[0], ())) for row in rows]


def person_at(db: sqlite3.Connection, row: int, change: int | None = None) -> Person:
    """Return the person of a row of the table."""
    found = db.execute(f"{_SELECT} WHERE people.id = ? GROUP BY people.id", (row,)).fetchone()
    aliases = db.execute("SELECT name FROM aliases WHERE person = ? ORDER BY key", (row,)).fetchall()
    return _person(found, [name for (name,) in aliases], change)


def find(db: sqlite3.Connection, text: str) -> int | None:
    """Return the row of whoever has this name, else this alias, else this id; None for nobody."""
    key = key_of(text)
    for statement in ("SELECT id FROM people WHERE key = ?", "SELECT person FROM aliases WHERE key = ?"):
        found = db.execute(statement, (key,)).fetchone()
        if found is not None:
            return int(found[0])
    return _with_id(db, key)


def _with_id(db: sqlite3.Connection, uid: str) -> int | None:
    found = db.execute("SELECT id FROM people WHERE uid = ?", (uid,)).fetchone()
    return None if found is None else int(found[0])


def known(db: sqlite3.Connection, who: Who) -> int:
    """Return the row of a person; one who is not there is an error that lists those who are."""
    text = who.name if isinstance(who, Person) else who
    found = _with_id(db, who.id) if isinstance(who, Person) else find(db, text)
    if found is None:
        rows = db.execute("SELECT name FROM people ORDER BY key LIMIT ?", (_MOST_NAMES,)).fetchall()
        names = ", ".join(name for (name,) in rows)
        saved = f"known are {names}" if names else "nobody is saved yet"
        raise InvalidInputError(f"no person {text!r}: {saved} (`setnet people add NAME PHOTO...` adds one)")
    return found


def name_of(db: sqlite3.Connection, row: int) -> str:
    """Return the name of the person of a row."""
    return str(db.execute("SELECT name FROM people WHERE id = ?", (row,)).fetchone()[0])


def _person(row: Sequence[Any], aliases: Sequence[str], change: int | None = None) -> Person:
    _, name, examples, added, has_picture, uid, note, cover = row
    return Person(name, examples, added, bool(has_picture), uid, tuple(aliases), note, cover, change)
