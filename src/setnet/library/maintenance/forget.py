"""Delete for good: rows, free pages, old segments, thumbnails."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path

from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, StorageError
from setnet.library.people.erasure import erase_photos
from setnet.library.pictures.thumbnails import delete_stale
from setnet.library.store.database import Database
from setnet.library.store.location import FILES, FOLDERS, REDESCRIBED, VLADS
from setnet.library.store.paths import absolute, shown
from setnet.library.store.photo_catalog import PhotoCatalog
from setnet.library.store.photo_writer import PhotoWriter, mark_removed


def forget(
    database: Database, index: SetIndex, thumbnails: Path, paths: Sequence[str | os.PathLike[str]]
) -> int:
    """Remove photos, or all photos below folders, from every file of the library; return how many.

    Examples of people that come from these photos go too, whether or not the photos were indexed, and what
    was confirmed or refused in them.
    """
    roots = [absolute(path) for path in paths]
    with database.writing() as db:  # in one step: after a kill the next run finds the marks and does the rest
        ids = _below(db, roots)
        mark_removed(db, ids)
        # folders inside go too: the next run must not bring them back
        forgotten = db.executemany(f"DELETE FROM folders WHERE {_BELOW}", map(_limits, roots)).rowcount
        examples = erase_photos(db, roots, _contents_leaving(db))
    if not ids and not forgotten and not examples:
        raise InvalidInputError(f"the library knows no photo in {', '.join(map(shown, roots))}")
    if (unfinished := thumbnails.with_name(REDESCRIBED)).exists():  # it has their faces too
        shutil.rmtree(unfinished)
    thumbnails.with_name(VLADS).unlink(missing_ok=True)
    delete_stale(thumbnails, PhotoCatalog(database))  # a server that is making one looks at the marks again
    PhotoWriter(database, index).erase(ids)
    database.erase_traces()
    return len(ids)


def _below(db: sqlite3.Connection, roots: Sequence[bytes]) -> list[int]:
    found: set[int] = set()
    for root in roots:
        found.update(row[0] for row in db.execute(f"SELECT id FROM photos WHERE {_BELOW}", _limits(root)))
    return sorted(found)


def _contents_leaving(db: sqlite3.Connection) -> list[bytes]:
    """Return the contents of photos that are being removed and of which no copy stays."""
    rows = db.execute(
        "SELECT DISTINCT hash FROM photos WHERE state <> 'ready' AND state = 'removing' AND hash IS NOT NULL "
        "AND hash NOT IN (SELECT hash FROM photos WHERE state <> 'removing' AND hash IS NOT NULL)"
    )
    return [content for (content,) in rows]


_BELOW = "path = ? OR (path > ? AND path < ?)"


def _limits(root: bytes) -> tuple[bytes, bytes, bytes]:
    inside = root.rstrip(b"/") + b"/"
    return root, inside, inside[:-1] + b"0"  # "0" follows "/"


def delete_files(path: Path) -> None:
    """Delete a library's own files; its folder goes too unless something else lies in it."""
    try:
        for name in FOLDERS:
            if (path / name).exists():
                shutil.rmtree(path / name)
        for name in FILES:
            (path / name).unlink(missing_ok=True)
        if not os.listdir(path):
            path.rmdir()
    except OSError as error:
        raise StorageError(
            f"cannot delete all of {shown(path)}: {error}; delete the folder yourself"
        ) from error
