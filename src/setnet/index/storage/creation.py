"""Makes the files of a new index, so that a kill at any moment leaves a folder where it can be made again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from setnet.errors import InvalidInputError, NotAnIndexError
from setnet.index.storage.catalog import Catalog
from setnet.index.storage.commit_log import CommitLog, Committed
from setnet.index.storage.permissions import restrict
from setnet.system import sync_folder

UNFINISHED = "catalog.sqlite.new"


def create_files(root: Path, meta: dict[str, Any]) -> None:
    """Make an empty index in a folder that is new, empty, or holds what a killed attempt left."""
    if root.exists() and (not root.is_dir() or not _is_free(root)):
        raise InvalidInputError(f"{root} exists already: open it with SetIndex.open, or choose another path")
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    (root / "segments").mkdir(mode=0o700, exist_ok=True)
    CommitLog(root).rewrite(Committed(settings=meta["settings"]))
    empty_database(root / UNFINISHED)
    Catalog.create(root / UNFINISHED, meta)
    put_in_place(root / UNFINISHED, root / "catalog.sqlite")  # from here on there is an index
    sync_folder(root.parent)
    restrict(root)  # the folder may have been there before


def require_index(root: Path) -> None:
    """Raise unless a folder holds an index, saying what it holds and what to do."""
    if not (root / "catalog.sqlite").is_file():
        if (root / "segments").is_dir():
            raise NotAnIndexError(f"{root} has no catalogue: SetIndex.repair({str(root)!r}) rebuilds it")
        what = "does not exist" if not root.exists() else "holds no setnet index"
        raise NotAnIndexError(f"{root} {what}: make one with SetIndex.create({str(root)!r}, dim=...)")


def empty_database(path: Path) -> None:
    """Make an empty file for a new database that only its owner may read, instead of any that was left."""
    remove_database(path)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL, 0o600))  # SQLite gives its own files the same mode


def remove_database(path: Path) -> None:
    """Remove a database that was not finished, with its logs."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


def put_in_place(unfinished: Path, catalog: Path) -> None:
    """Give a catalogue its name; a log of an earlier one must never be taken for its own."""
    for suffix in ("-wal", "-shm"):
        catalog.with_name(catalog.name + suffix).unlink(missing_ok=True)
    os.replace(unfinished, catalog)
    sync_folder(catalog.parent)


def _is_free(root: Path) -> bool:
    names = {path.name for path in root.iterdir()}
    own = {name for name in names if name.startswith((UNFINISHED, "commits.log"))} | {"segments"}
    segments = root / "segments"
    return names <= own and (not segments.exists() or (segments.is_dir() and not any(segments.iterdir())))
