"""Verify a library: each file by itself, and that the database and the index agree."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from pathlib import Path

from setnet.engine import SetIndex
from setnet.errors import LockedError, SetNetError
from setnet.library.database import Database
from setnet.library.journal import JournalContents, differing_rows, lost_changes, stored_number
from setnet.library.paths import INDEX
from setnet.library.photo_writer import find_disagreements
from setnet.library.schema import damaged_photos, group_problems, schema_problems
from setnet.system import FileLock

_MAX_PROBLEMS = 20
_ATTEMPTS, _PAUSE = 40, 0.25  # seconds: how long a writer may take from the index to the database


def find_problems(database: Database, open_index: Callable[[], SetIndex]) -> list[str]:
    """Return the problems found, each naming the file; nothing is changed."""
    problems: list[str] = []
    try:
        problems += find_damage(database)
        index = open_index()
        problems += index.check().problems
        problems = problems or _settled_disagreements(database, index)
    except SetNetError as error:
        problems.append(str(error))
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS:] = [
            f"... {len(problems)} problems in all: `setnet repair` repairs what it can"
        ]
    return problems


def find_damage(database: Database) -> list[str]:
    """Return what is wrong with the database and its journal, as of one commit."""
    with database.reading() as db:
        with database.journal.locked():  # nothing is committed and not yet entered
            journal = database.journal.read()
            db.execute("BEGIN")
            stored_number(db)  # from here on the database is that of this moment
        try:
            broken = [row[0] for row in db.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
            broken = broken or schema_problems(db)
            broken = broken or [f"photo {photo} is not as it was stored" for photo in damaged_photos(db)]
            broken = broken or group_problems(db)
            return [f"{database.path}: {text}" for text in broken] + _journal_problems(database, db, journal)
        finally:
            db.execute("ROLLBACK")


def _journal_problems(
    database: Database, db: sqlite3.Connection, journal: JournalContents | None
) -> list[str]:
    """Compare the database with its journal; one that is behind is written whole by the next change."""
    path, number = database.journal.path, stored_number(db)
    if journal is None or journal.number < number:
        return []
    if journal.damaged:
        return [f"{path}: {journal.damaged} lines cannot be read; `setnet repair` writes it again"]
    if journal.number > number:
        return [lost_changes(database.path, journal.number - number)]
    return [f"{database.path}: {text}" for text in differing_rows(db, journal)]


def _settled_disagreements(database: Database, index: SetIndex) -> list[str]:
    """Compare database and index; while somebody writes, again until what is under way is stored.

    Items with a number that no photo had yet are what a killed run left: no search shows them, and the next
    run removes them.
    """
    photos, items = find_disagreements(database, index)
    for _ in range(_ATTEMPTS):
        if not photos and not items:
            break
        is_last = not is_written(database.path.with_name(INDEX))
        now, unknown = find_disagreements(database, index)
        photos = {photo: text for photo, text in photos.items() if now.get(photo) == text}
        items = [item for item in items if item in unknown]
        if is_last:
            break
        time.sleep(_PAUSE)
    with database.reading() as db:
        row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'photos'").fetchone()
    last = 0 if row is None else int(row[0])
    found = [f"photo {photo}: {text}" for photo, text in photos.items()]
    return found + [
        f"item {item.id} of the index is no photo"
        for item in items
        if not item.id.isdecimal() or int(item.id) <= last
    ]


def is_written(index: Path) -> bool:
    """Return whether somebody is writing the index, or nobody can tell."""
    try:
        FileLock(index / "lock").close()
    except (LockedError, OSError):
        return True
    return False
