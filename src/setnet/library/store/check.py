"""Verify a library: each file by itself, and that the database and the index agree."""

from __future__ import annotations

from setnet.index import SetIndex
from setnet.library.store.database import Database

__all__ = ["problems_of"]

_MOST = 20


def problems_of(database: Database, index: SetIndex) -> list[str]:
    """Return the problems found, each naming the file; nothing is changed."""
    problems = list(index.check().problems)
    with database.reading() as db:
        broken = [row[0] for row in db.execute("PRAGMA integrity_check(20)")]
        problems += [f"{database.path}: {text}" for text in broken if text != "ok"]
        if problems:
            return problems
        known = dict(db.execute("SELECT id, faces FROM photos WHERE state = 'ready'").fetchall())
        counted = dict(db.execute("SELECT photo, count(*) FROM faces GROUP BY photo").fetchall())
        marked = {row[0] for row in db.execute("SELECT id FROM photos WHERE state <> 'ready'")}
    stored = {int(item.id): item.elements for item in index.items()}
    for photo, faces in known.items():
        if stored.get(photo) != faces:
            problems.append(f"photo {photo}: {faces} faces in the database, {stored.get(photo)} in the index")
        elif counted.get(photo, 0) != faces:
            problems.append(f"photo {photo}: {faces} faces counted, {counted.get(photo, 0)} described")
    problems += [f"item {i} of the index is no photo" for i in stored if i not in known and i not in marked]
    hint = "`setnet index` over all folders repairs what can be found again"
    return (
        [*problems[:_MOST], f"... {len(problems)} problems in all; {hint}"]
        if len(problems) > _MOST
        else problems
    )
