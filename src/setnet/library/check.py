"""Verify a library: each file by itself, and that the database and the index agree."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress

from setnet.durable import transaction
from setnet.engine import Item, SetIndex
from setnet.errors import SetNetError
from setnet.library.database import Database
from setnet.library.row_sums import row_problems
from setnet.library.schema import count_problems, group_problems, schema_problems

_MOST = 20


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
    if len(problems) > _MOST:
        problems[_MOST:] = [f"... {len(problems)} problems in all: `setnet repair` repairs what it can"]
    return problems


def find_damage(database: Database) -> list[str]:
    """Return what is wrong with the database by itself, as of one commit."""
    recorded = database.commits.highest()
    with database.reading() as db, transaction(db, "BEGIN"):
        broken = [row[0] for row in db.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
        broken += schema_problems(db) or row_problems(db) or count_problems(db)
        broken += [] if broken else group_problems(db)
        lost = database.commits.loss(db, recorded)
    return [f"{database.path}: {text}" for text in broken] + ([lost] if lost else [])


def _settled_disagreements(database: Database, index: SetIndex) -> list[str]:
    """Compare database and index; where they disagree, again while nobody can change the database.

    A writer marks a photo in the database before it changes the index, and unmarks it afterwards.
    """
    if not any(find_disagreements(database, index)):
        return []
    with closing(sqlite3.connect(database.path, timeout=60, isolation_level=None)) as lock:
        with suppress(sqlite3.OperationalError):  # read-only
            lock.execute("BEGIN IMMEDIATE")
        photos, items = find_disagreements(database, index)
    found = [f"photo {photo}: {text}" for photo, text in photos.items()]
    return found + [f"item {item.id} of the index is no photo" for item in items]


def find_disagreements(database: Database, index: SetIndex) -> tuple[dict[int, str], list[Item]]:
    """Return what is wrong with photos of the database, by id, and the items that are no photo."""
    with database.reading() as db, transaction(db, "BEGIN"):
        known = dict(db.execute("SELECT id, faces FROM photos WHERE state = 'ready'").fetchall())
        counted = dict(db.execute("SELECT photo, count(*) FROM faces GROUP BY photo").fetchall())
        marked = {row[0] for row in db.execute("SELECT id FROM photos WHERE state IN ('adding', 'removing')")}
    stored: dict[int, int] = {}
    unknown = []
    for item in index.items():
        photo = int(item.id) if item.id.isdecimal() else -1
        stored[photo] = item.elements
        if photo not in known and photo not in marked:
            unknown.append(item)
    wrong = {}
    for photo, faces in known.items():
        if stored.get(photo) != faces:
            wrong[photo] = f"{faces} faces in the database, {stored.get(photo)} in the index"
        elif counted.get(photo, 0) != faces:
            wrong[photo] = f"{faces} faces counted, {counted.get(photo, 0)} described"
    return wrong, unknown
