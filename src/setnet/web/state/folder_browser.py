"""Folders of this machine to choose from: below the home folder and mounted disks, nowhere else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setnet.library import is_below, is_photo_name
from setnet.web.server.problems import Problem, not_found

_DISKS = ("/media", "/mnt", "/run/media", "/Volumes")
_MOST_FOLDERS = 500
_MOST_ENTRIES = 20_000  # a folder with more is not counted to its end


@dataclass(frozen=True, slots=True)
class FolderListing:
    """One folder: the folders in it, and how many photos lie in it directly; None is the list of roots."""

    path: str | None
    parent: str | None
    folders: tuple[str, ...]
    photos: int
    has_more: bool

    def to_dict(self) -> dict[str, Any]:
        """Return the listing as values that JSON can hold."""
        named = [{"path": path, "name": os.path.basename(path) or path} for path in self.folders]
        return {
            "path": self.path,
            "parent": self.parent,
            "folders": named,
            "photos": self.photos,
            "has_more": self.has_more,
        }


def default_roots() -> list[Path]:
    """Return the home folder and the folders where disks are mounted, as far as they are there."""
    return [place for place in (Path.home(), *map(Path, _DISKS)) if place.is_dir()]


class FolderBrowser:
    """Lists folders below some roots; links are resolved first, so that none leads out of them."""

    def __init__(self, roots: Sequence[Path] | None = None) -> None:
        self._roots = [os.path.realpath(root) for root in (default_roots() if roots is None else roots)]

    def listing(self, path: str | None) -> FolderListing:
        """Return the folders in a folder, or the roots."""
        if path is None:
            return FolderListing(None, None, tuple(self._roots), 0, False)
        real = self._inside(path)
        folders: list[str] = []
        photos, seen = 0, 0
        try:
            with os.scandir(real) as entries:
                for seen, entry in enumerate(entries, 1):
                    if seen > _MOST_ENTRIES:
                        break
                    if self._is_folder(entry):
                        folders.append(entry.path)
                    elif is_photo_name(os.fsencode(entry.name)):
                        photos += 1
        except NotADirectoryError:
            raise not_found("this is no folder") from None
        except FileNotFoundError:
            raise not_found("this folder is not there any more") from None
        except OSError as error:
            raise Problem(403, f"this folder cannot be opened: {error.strerror}") from None
        folders.sort(key=lambda folder: os.path.basename(folder).casefold())
        return FolderListing(
            real,
            None if real in self._roots else os.path.dirname(real),
            tuple(folders[:_MOST_FOLDERS]),
            photos,
            seen > _MOST_ENTRIES or len(folders) > _MOST_FOLDERS,
        )

    def _inside(self, path: str) -> str:
        try:
            real = os.path.realpath(path) if os.path.isabs(path) else ""
        except (OSError, ValueError):  # a null character, or a name that no file can have
            real = ""
        if not any(is_below(os.fsencode(real), os.fsencode(root)) for root in self._roots):
            roots = ", ".join(self._roots)
            raise Problem(403, f"only folders below {roots} are listed: type the path of another one")
        return real

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        """Tell whether an entry is a folder to show: not hidden, with a name that JSON can hold, inside."""
        if entry.name.startswith(".") or not entry.name.isprintable():
            return False
        with suppress(OSError, Problem):
            return entry.is_dir() and bool(not entry.is_symlink() or self._inside(entry.path))
        return False
