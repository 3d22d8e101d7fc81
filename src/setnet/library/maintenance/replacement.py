"""Puts a new state of a library, its database and its index, in the place of the old one.

The new state is staged in the folder `staging`: its index, then its database. From the moment the database
has its name there the state is complete, and whoever opens the library next puts it in place if a kill kept
us from it. Until then the old state is as it was, and whoever opens the library or deletes something from it
removes what a killed attempt left.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path

from setnet.durable import copy_file_elsewhere, replace_file
from setnet.errors import LockedError
from setnet.library.store import location
from setnet.library.store.database import make_private
from setnet.library.store.paths import shown
from setnet.system import FileLock, sync_folder

_KEPT_SECONDS = 7 * 24 * 3600.0


@contextmanager
def staging(library: Path) -> Iterator[None]:
    """Keep others from staging in this folder, and leave nothing in it that is not complete."""
    try:
        lock = FileLock(library / location.LOCK)
    except LockedError:
        raise LockedError(
            f"the library in {shown(library)} is being repaired, restored, described anew or backed up to: "
            "try again later"
        ) from None
    try:
        put_in_place(library)
        _empty(library)
        (library / location.STAGING).mkdir(mode=0o700)
        try:
            yield
        finally:
            _empty(library)
    finally:
        lock.close()


def _empty(library: Path) -> None:
    """Remove what was staged, unless it is complete and waits to be put in place."""
    if not (library / location.NEXT_DATABASE).exists() and (library / location.STAGING).exists():
        shutil.rmtree(library / location.STAGING)


@contextmanager
def database_to_stage(library: Path) -> Iterator[sqlite3.Connection]:
    """Yield a connection to an empty database that only its owner may read."""
    path = library / location.UNFINISHED_DATABASE
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
        replace_file(to / location.BACKUP_MARK, b'{"format": 1}')
    except OSError:  # a file system without hard links: they are copied again
        shutil.rmtree(to, ignore_errors=True)


def complete(library: Path) -> None:
    """Declare the staged state complete, and put it in place."""
    sync_folder(library / location.STAGING)
    os.replace(library / location.UNFINISHED_DATABASE, library / location.NEXT_DATABASE)
    sync_folder(library / location.STAGING)
    put_in_place(library)


def put_in_place(library: Path) -> None:
    """Replace the old state by a complete staged one, if there is any; the old one goes to the quarantine.

    May be repeated after a kill at any moment. A log of the old database must never meet the new one.
    """
    if not (library / location.NEXT_DATABASE).exists():
        return
    aside = library / location.QUARANTINE
    aside.mkdir(mode=0o700, exist_ok=True)
    os.utime(aside)  # its week begins
    if (library / location.NEXT_INDEX).exists():
        if (library / location.INDEX).exists():
            shutil.rmtree(aside / location.INDEX, ignore_errors=True)
            os.replace(library / location.INDEX, aside / location.INDEX)
        os.replace(library / location.NEXT_INDEX, library / location.INDEX)
    for name in (location.COMMITS, *location.LOGS):
        with suppress(FileNotFoundError):
            os.replace(library / name, aside / name)
    sync_folder(library)
    if (library / location.DATABASE).exists():
        (aside / location.DATABASE).unlink(missing_ok=True)
        _keep(library / location.DATABASE, aside / location.DATABASE)
    os.replace(library / location.NEXT_DATABASE, library / location.DATABASE)
    sync_folder(library)


def _keep(file: Path, aside: Path) -> None:
    try:
        os.link(file, aside)
    except OSError:  # a file system without hard links
        copy_file_elsewhere(file, aside)


def finish_interrupted(library: Path) -> None:
    """Put a staged state in place that a kill left complete, and remove any other; for whoever opens."""
    if (library / location.STAGING).exists() and os.access(library, os.W_OK):
        is_complete = (library / location.NEXT_DATABASE).exists()
        with nullcontext() if is_complete else suppress(LockedError), staging(library):
            pass  # somebody who is still staging a state removes it


def expire_quarantine(library: Path, older_than: float = _KEPT_SECONDS) -> None:
    """Delete what was put aside, or begun and left, longer than `older_than` seconds ago."""
    for aside in (library / location.QUARANTINE, library / location.REDESCRIBED):
        if aside.exists() and time.time() - aside.stat().st_mtime >= older_than:
            shutil.rmtree(aside)
