"""Delete for good: rows, free pages, old segments, thumbnails."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from setnet.errors import InvalidInputError, StorageError
from setnet.index import SetIndex
from setnet.library.database import Database
from setnet.library.founding import DATABASE, INDEX, THUMBNAILS
from setnet.library.paths import absolute, shown
from setnet.library.thumbnails import delete_thumbnails
from setnet.library.writer import PhotoWriter

__all__ = ["delete_files", "forget"]


def forget(
    database: Database, index: SetIndex, thumbnails: Path, paths: Sequence[str | os.PathLike[str]]
) -> int:
    """Remove photos, or all photos below folders, from every file of the library; return how many."""
    roots = [absolute(path) for path in paths]
    ids = _below(database, roots)
    with database.writing() as db:
        forgotten = db.executemany("DELETE FROM folders WHERE path = ?", [(root,) for root in roots]).rowcount
    if not ids and not forgotten:
        raise InvalidInputError(f"the library knows no photo in {', '.join(map(shown, roots))}")
    delete_thumbnails(thumbnails, ids)
    PhotoWriter(database, index).remove(ids)
    index.compact()  # deletions in segments are marks until then
    database.erase_traces()
    return len(ids)


def _below(database: Database, roots: Sequence[bytes]) -> list[int]:
    found: set[int] = set()
    with database.reading() as db:
        for root in roots:
            inside = root.rstrip(b"/") + b"/"
            found.update(
                row[0]
                for row in db.execute(
                    "SELECT id FROM photos WHERE path = ? OR (path > ? AND path < ?)",
                    (root, inside, inside[:-1] + b"0"),  # "0" follows "/"
                )
            )
    return sorted(found)


def delete_files(path: Path) -> None:
    """Delete a library's own files; its folder goes too unless something else lies in it."""
    try:
        for name in (INDEX, THUMBNAILS):
            if (path / name).exists():
                shutil.rmtree(path / name)
        for suffix in ("-wal", "-shm", ""):
            (path / f"{DATABASE}{suffix}").unlink(missing_ok=True)
        if not os.listdir(path):
            path.rmdir()
    except OSError as error:
        raise StorageError(
            f"cannot delete all of {shown(path)}: {error}; delete the folder yourself"
        ) from error
