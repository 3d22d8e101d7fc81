"""The folder of segment files, and the quarantine for those that the catalogue does not name.

A file that no committed transaction names may still be needed: a commit that reported an error can come
back when SQLite recovers its write-ahead log, and a damaged catalogue forgets files that are sound. So
nothing is deleted in passing. Unnamed files are moved aside and kept for a week; a number once used is
never given to another file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection
from pathlib import Path

from setnet.system import sync_folder

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

    def empty_quarantine(self, older_than: float = 0.0) -> None:
        """Delete the files put aside longer than ``older_than`` seconds ago."""
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
