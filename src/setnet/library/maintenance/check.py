"""Verify a library: each file by itself, and that the database and the index agree."""

from __future__ import annotations

from setnet.durable import transaction
from setnet.errors import SetNetError
from setnet.index import SetIndex
from setnet.library.store import row_sums
from setnet.library.store.database import Database
from setnet.library.store.schema import schema_problems

__all__ = ["problems_of"]

_MOST = 20
_ATTEMPTS = 5


def problems_of(database: Database, index: SetIndex) -> list[str]:
    """Return the problems found, each naming the file; nothing is changed."""
    problems = list(index.check().problems)
    try:
        problems += _damage(database)
        problems = problems or _lasting_disagreements(database, index)
    except SetNetError as error:
        problems.append(str(error))
    hint = "`setnet index` over all folders repairs what can be found again"
    return (
        [*problems[:_MOST], f"... {len(problems)} problems in all; {hint}"]
        if len(problems) > _MOST
        else problems
    )


def _damage(database: Database) -> list[str]:
    """Return what is wrong with the database by itself, as of one commit."""
    with database.reading() as db, transaction(db, "BEGIN"):
        broken = [row[0] for row in db.execute("PRAGMA integrity_check(20)") if row[0] != "ok"]
        if database.is_current:  # an older one that cannot be written has no sums
            broken += schema_problems(db) or row_sums.problems(db)
        lost = database.commits.loss(db) if database.is_current else None
    return [f"{database.path}: {text}" for text in broken] + ([lost] if lost else [])


def _lasting_disagreements(database: Database, index: SetIndex) -> list[str]:
    for _ in range(_ATTEMPTS):
        before = _version(database)
        found = _disagreements(database, index)
        if not found or before == _version(database):
            break  # else a run beside us may have changed one store after we read the other
    return found


def _version(database: Database) -> int:
    with database.reading() as db:
        return int(db.execute("PRAGMA data_version").fetchone()[0])


def _disagreements(database: Database, index: SetIndex) -> list[str]:
    """Return where the two stores do not agree."""
    with database.reading() as db, transaction(db, "BEGIN"):
        known = dict(db.execute("SELECT id, faces FROM photos WHERE state = 'ready'").fetchall())
        counted = dict(db.execute("SELECT photo, count(*) FROM faces GROUP BY photo").fetchall())
        marked = {row[0] for row in db.execute("SELECT id FROM photos WHERE state <> 'ready'")}
    stored = {int(item.id): item.elements for item in index.items()}
    problems = []
    for photo, faces in known.items():
        if stored.get(photo) != faces:
            problems.append(f"photo {photo}: {faces} faces in the database, {stored.get(photo)} in the index")
        elif counted.get(photo, 0) != faces:
            problems.append(f"photo {photo}: {faces} faces counted, {counted.get(photo, 0)} described")
    return problems + [
        f"item {i} of the index is no photo" for i in stored if i not in known and i not in marked
    ]
