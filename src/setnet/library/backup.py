"""Copies a library while it is used, brings a copy back, and puts a new state in the place of the old one.

A backup is a library: it can be opened, checked and searched where it is. Unchanged segments of the index
are copied once; thumbnails are left out, as they are made again when they are shown.

A new state, from a backup, a repair or another model, is staged in the folder `staging`: its index, then
its database. From the moment the database has its name there the state is complete, and whoever opens the
library next puts it in place if a kill kept us from it. Until then the old state is as it was, and whoever
opens the library or deletes something from it removes what a killed attempt left.
"""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from setnet.durable import copy_file_elsewhere, replace_file, transaction
from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, LockedError, StorageError
from setnet.library.check import find_problems, is_written
from setnet.library.creation import expire_quarantine, restrict_files
from setnet.library.database import Database, make_private
from setnet.library.paths import (
    BACKUP_MARK,
    COPIES,
    DATABASE,
    INDEX,
    JOURNAL,
    LOCK,
    LOGS,
    NEXT_DATABASE,
    NEXT_INDEX,
    QUARANTINE,
    STAGING,
    THUMBNAILS,
    UNFINISHED_DATABASE,
    VLADS,
    display_path,
)
from setnet.library.photo_writer import agree
from setnet.system import FileLock, sync_folder

_PATIENCE_SECONDS = 10.0  # how long a writer may take from the index to the database
_PAUSE = 0.02


@contextmanager
def stage_new_state(library: Path) -> Iterator[None]:
    """Keep others from staging in this folder, and leave nothing in it that is not complete."""
    try:
        lock = FileLock(library / LOCK)
    except LockedError:
        raise LockedError(
            f"the library in {display_path(library)} is being repaired, restored, described again or backed "
            "up to: try again later"
        ) from None
    try:
        put_in_place(library)
        _empty_staging(library)
        (library / STAGING).mkdir(mode=0o700)
        try:
            yield
        finally:
            _empty_staging(library)
    finally:
        lock.close()


def _empty_staging(library: Path) -> None:
    """Remove what was staged, unless it is complete and waits to be put in place."""
    if not (library / NEXT_DATABASE).exists() and (library / STAGING).exists():
        shutil.rmtree(library / STAGING)


@contextmanager
def database_to_stage(library: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection to an empty database that only its owner may read."""
    path = library / UNFINISHED_DATABASE
    for suffix in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    make_private(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        yield db


def link_segments(index: Path, to: Path) -> None:
    """Begin a copy of an index with hard links to its segments, which never change, if the disk has links."""
    try:
        shutil.copytree(
            index,
            to,
            copy_function=os.link,
            ignore=lambda _, names: [n for n in names if not n.endswith((".seg", "segments"))],
        )
        replace_file(to / BACKUP_MARK, b'{"format": 1}')
    except OSError:  # a file system without hard links: they are copied again
        shutil.rmtree(to, ignore_errors=True)


def complete_staging(library: Path) -> None:
    """Declare the staged state complete, and put it in place."""
    sync_folder(library / STAGING)
    os.replace(library / UNFINISHED_DATABASE, library / NEXT_DATABASE)
    sync_folder(library / STAGING)
    put_in_place(library)


def put_in_place(library: Path) -> None:
    """Replace the old state by a complete staged one, if there is any; the old one goes to the quarantine.

    May be repeated after a kill at any moment. A log of the old database must never meet the new one.
    """
    if not (library / NEXT_DATABASE).exists():
        return
    aside = library / QUARANTINE
    aside.mkdir(mode=0o700, exist_ok=True)
    os.utime(aside)  # its week begins
    if (library / NEXT_INDEX).exists():
        if (library / INDEX).exists():
            shutil.rmtree(aside / INDEX, ignore_errors=True)
            os.replace(library / INDEX, aside / INDEX)
        os.replace(library / NEXT_INDEX, library / INDEX)
    for name in (JOURNAL, *LOGS):
        with suppress(FileNotFoundError):
            os.replace(library / name, aside / name)
    sync_folder(library)
    if (library / DATABASE).exists():
        (aside / DATABASE).unlink(missing_ok=True)
        _set_aside(library / DATABASE, aside / DATABASE)
    os.replace(library / NEXT_DATABASE, library / DATABASE)
    sync_folder(library)


def _set_aside(file: Path, aside: Path) -> None:
    try:
        os.link(file, aside)
    except OSError:  # a file system without hard links
        copy_file_elsewhere(file, aside)


def finish_interrupted(library: Path) -> None:
    """Put a staged state in place that a kill left complete, and remove any other; for whoever opens."""
    if os.access(library, os.W_OK):
        is_complete = (library / NEXT_DATABASE).exists()
        with nullcontext() if is_complete else suppress(LockedError), stage_new_state(library):
            pass  # somebody who is still staging a state removes it


@dataclass(frozen=True, slots=True)
class LibraryBackup:
    """What a backup or a restored library holds, and how much was copied for it."""

    photos: int
    people: int
    copied_segments: int
    kept_segments: int
    copied_bytes: int


def back_up(database: Database, index: SetIndex, to: Path) -> LibraryBackup:
    """Copy a library, as of one moment, to a folder that is new, empty or an earlier backup."""
    _check_outside(database.path.parent, to)
    if to.exists() and (not to.is_dir() or (any(to.iterdir()) and not (to / BACKUP_MARK).is_file())):
        raise InvalidInputError(
            f"{display_path(to)} is neither empty nor a backup made by setnet: choose another folder"
        )
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(to / BACKUP_MARK, b'{"format": 1}')
    return _copy(database, index, to)


def restore(database: Database, index: SetIndex, to: Path, *, replace: bool) -> LibraryBackup:
    """Copy a backup to a folder that is new or empty, or with `replace` over the library that is there."""
    _check_outside(database.path.parent, to)
    if problems := find_problems(database, lambda: index):
        raise StorageError(f"the backup {display_path(database.path.parent)} is damaged: {problems[0]}")
    is_library = (to / DATABASE).exists() or (to / INDEX).is_dir()
    if to.exists() and any(to.iterdir()) and not (replace and is_library):
        raise InvalidInputError(
            f"{display_path(to)} holds a library already: --replace puts the backup in its place"
            if is_library
            else f"{display_path(to)} is not empty: restore to a new folder"
        )
    to.mkdir(mode=0o700, parents=True, exist_ok=True)
    with suppress(FileNotFoundError):
        FileLock(to / INDEX / "lock").close()  # nobody may be writing
    done = _copy(database, index, to)
    for folder in (THUMBNAILS, COPIES):  # of the library that was replaced
        if (to / folder).exists():
            shutil.rmtree(to / folder)
    (to / VLADS).unlink(missing_ok=True)
    return done


def _check_outside(library: Path, to: Path) -> None:
    if to.resolve().is_relative_to(library.resolve()):
        raise InvalidInputError(
            f"{display_path(to)} lies in the library that is copied: choose another folder"
        )


def _copy(database: Database, index: SetIndex, to: Path) -> LibraryBackup:
    with stage_new_state(to):
        if (to / INDEX / BACKUP_MARK).exists():  # segments that an earlier backup copied
            link_segments(to / INDEX, to / NEXT_INDEX)
        counts, done = _copy_both(database, index, to)
        complete_staging(to)
        Database(to / DATABASE).close()  # which writes its journal
        expire_quarantine(to, older_than=-math.inf)  # whatever the clock says
        restrict_files(to)
    copied = done["copied_bytes"] + (to / DATABASE).stat().st_size
    return LibraryBackup(*counts, done["copied_segments"], done["kept_segments"], copied)


def _copy_both(database: Database, index: SetIndex, to: Path) -> tuple[tuple[int, int], dict[str, Any]]:
    """Stage database and index as of one moment.

    They are copied again when a commit came in between, or the index was ahead of the database. From the
    third time on, when little is left to copy, others wait with their commits.
    """

    def is_settled() -> bool:
        return agree(database, index) or not is_written(database.path.with_name(INDEX))

    until = time.monotonic() + _PATIENCE_SECONDS
    with database.reading() as db, closing(sqlite3.connect(database.path, isolation_level=None)) as lock:
        for attempt in count():
            with nullcontext() if attempt < 2 else transaction(lock):
                before, is_late = database.version, time.monotonic() > until
                if attempt < 2 or is_late or is_settled():
                    with database_to_stage(to) as copy:
                        db.backup(copy)
                        counts = copy.execute(
                            "SELECT (SELECT count(*) FROM photos WHERE state = 'ready'), count(*) FROM people"
                        ).fetchone()
                    done = asdict(index.backup(to / NEXT_INDEX))
                    if is_late or (database.version == before and is_settled()):
                        break
            time.sleep(_PAUSE)  # whoever is ahead commits now
    return counts, done
