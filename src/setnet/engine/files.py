"""The files of an index: how they are made, who may read them, and where those go that nothing names.

Vectors may be biometric data, so files are 0600 and folders 0700 whatever the umask. Where the catalogue is
readable for its group and nobody else, the others are 0640 and 0750.

A file that no committed transaction names may still be needed: a commit that reported an error can come
back when SQLite recovers its write-ahead log, and a damaged catalogue forgets files that are sound. So
nothing is deleted in passing. Unnamed files are moved aside and kept for a week; a number once used is
never given to another file.
"""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from setnet.engine.catalog import Catalog
from setnet.engine.commit_log import CommitLog, Committed
from setnet.errors import InvalidInputError, NotAnIndexError
from setnet.system import restrict_access, sync_folder

OWN = ("backup.json", "catalog.", "commits.log", "lock", "quarantine", "segments")
_LOG = logging.getLogger("setnet.engine")


def restrict(root: Path) -> list[Path]:
    """Give all files and folders of an index their mode; return those that others could read."""
    shared = (root / "catalog.sqlite").stat().st_mode & 0o044 == 0o040
    top = list(root.iterdir())
    own = [path for path in top if path.name.startswith(OWN)]
    inside = [path for folder in own if folder.is_dir() for path in folder.iterdir()]
    # a folder that holds other things is not the index's alone
    return restrict_access([*own, *inside, *([root] if len(own) == len(top) else [])], group_readable=shared)


def restrict_with_notice(root: Path) -> None:
    """Restrict what others can read, and say so."""
    if opened := restrict(root):
        _LOG.warning(
            "%d files and folders of the index in %s could be read by others: no longer", len(opened), root
        )


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


QUARANTINE = "quarantine"
KEPT_SECONDS = 7 * 24 * 3600.0


def segment_path(root: Path, number: int) -> Path:
    """Return where segment ``number`` of the index at ``root`` lies."""
    return root / "segments" / f"{number:08d}.seg"


class SegmentFolder:
    """The segment files of an index, for its writer."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._folder = root / "segments"
        self._quarantine = root / QUARANTINE

    def free_number(self, least: int) -> int:
        """Return a number from ``least`` on that no file has, or had when it was put aside."""
        names = [path.stem for path in (*self._folder.glob("*.seg"), *self._quarantined())]
        return max([least, *(int(name) + 1 for name in names if name.isdecimal())])

    def unnamed(self, numbers: Collection[int]) -> list[Path]:
        """Return the files that belong to none of these segments."""
        known = {segment_path(self.root, number) for number in numbers}
        return [path for path in self._folder.iterdir() if path not in known]

    def put_aside(self, paths: Collection[Path]) -> None:
        """Move files to the quarantine; their week begins now."""
        if paths:
            self._quarantine.mkdir(mode=0o700, exist_ok=True)
        for path in paths:
            os.utime(path)
            path.rename(self._quarantine / path.name)

    def bring_back(self, numbers: Collection[int]) -> None:
        """Take segments that the catalogue names, after all, out of the quarantine."""
        for path in self._quarantined():
            if path.stem.isdecimal() and int(path.stem) in numbers:
                home = segment_path(self.root, int(path.stem))
                if not home.exists():
                    path.rename(home)

    def empty_quarantine(self, older_than: float = -math.inf) -> None:
        """Delete the files put aside longer than ``older_than`` seconds ago; all, whatever the clock says."""
        now = time.time()
        for path in self._quarantined():
            if now - path.stat().st_mtime >= older_than:
                path.unlink()

    def sync(self) -> None:
        """Make deletions as durable as commits: a power cut must not bring files back."""
        for folder in (self._folder, self._quarantine):
            if folder.is_dir():
                sync_folder(folder)

    def _quarantined(self) -> list[Path]:
        return list(self._quarantine.iterdir()) if self._quarantine.is_dir() else []
