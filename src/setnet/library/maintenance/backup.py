"""Copies a library while it is used, and brings a copy back.

A backup is a library: it can be opened, checked and searched where it is. Unchanged segments of the index are
copied once; thumbnails are left out, as they are made again when they are shown.
"""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing, nullcontext, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setnet.durable import replace_file, transaction
from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, StorageError
from setnet.library.maintenance import replacement
from setnet.library.maintenance.check import problems_of
from setnet.library.maintenance.permissions import restrict
from setnet.library.store import location
from setnet.library.store.database import Database
from setnet.library.store.paths import shown
from setnet.system import FileLock


@dataclass(frozen=True, slots=True)
class LibraryBackup:
    """What a backup or a restored library holds, and how much was copied for it."""

    photos: int
    people: int
    copied_segments: int
    kept_segments: int
    copied_bytes: int

    def to_dict(self) -> dict[str, int]:
        """Return the numbers as values that JSON can hold."""
        return asdict(self)


def back_up(database: Database, index: SetIndex, to: Path) -> LibraryBackup:
    """Copy a library, as of one moment, to a folder that is new, empty or an earlier backup."""
    _refuse_inside(database.path.parent, to)
    if to.exists() and (not to.is_dir() or (any(to.iterdir()) and not (to / location.BACKUP_MARK).is_file())):
        raise InvalidInputError(
            f"{shown(to)} is neither empty nor a backup made by setnet: choose another folder"
        )
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(to / location.BACKUP_MARK, b'{"format": 1}')
    return _copy(database, index, to)


def restore(database: Database, index: SetIndex, to: Path, *, replace: bool) -> LibraryBackup:
    """Copy a backup to a folder that is new or empty, or with `replace` over the library that is there."""
    _refuse_inside(database.path.parent, to)
    if problems := problems_of(database, lambda: index):
        raise StorageError(f"the backup {shown(database.path.parent)} is damaged: {problems[0]}")
    is_library = (to / location.DATABASE).exists() or (to / location.INDEX).is_dir()
    if to.exists() and any(to.iterdir()) and not (replace and is_library):
        raise InvalidInputError(
            f"{shown(to)} holds a library already: --replace puts the backup in its place"
            if is_library
            else f"{shown(to)} is not empty: restore to a new folder"
        )
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        FileLock(to / location.INDEX / "lock").close()  # nobody may be writing
    done = _copy(database, index, to)
    if (to / location.THUMBNAILS).exists():  # of the library that was replaced
        shutil.rmtree(to / location.THUMBNAILS)
    (to / location.VLADS).unlink(missing_ok=True)
    return done


def _refuse_inside(library: Path, to: Path) -> None:
    if to.resolve().is_relative_to(library.resolve()):
        raise InvalidInputError(f"{shown(to)} lies in the library that is copied: choose another folder")


def _copy(database: Database, index: SetIndex, to: Path) -> LibraryBackup:
    with replacement.staging(to):
        if (to / location.INDEX / location.BACKUP_MARK).exists():  # segments that an earlier backup copied
            replacement.link_segments(to / location.INDEX, to / location.NEXT_INDEX)
        counts, done = _copy_both(database, index, to)
        replacement.complete(to)
        replacement.expire_quarantine(to, older_than=0.0)
        restrict(to, group_readable=False)
    copied = done["copied_bytes"] + (to / location.DATABASE).stat().st_size
    return LibraryBackup(*counts, done["copied_segments"], done["kept_segments"], copied)


def _copy_both(database: Database, index: SetIndex, to: Path) -> tuple[tuple[int, int], dict[str, Any]]:
    """Stage database and index as of one moment.

    They are copied again when a commit came in between; the third time, when little is left to copy, others
    wait with theirs.
    """
    with database.reading() as db, closing(sqlite3.connect(database.path, isolation_level=None)) as lock:
        for is_last in (False, False, True):
            with transaction(lock) if is_last else nullcontext():
                before = database.version
                with replacement.database_to_stage(to) as copy:
                    db.backup(copy)
                    counts = copy.execute(
                        "SELECT (SELECT count(*) FROM photos WHERE state = 'ready'), count(*) FROM people"
                    ).fetchone()
                done = index.backup(to / location.NEXT_INDEX).to_dict()
                if database.version == before:
                    break
    return counts, done
