"""The photos of a data set: linked into its folder, or copied where that cannot be."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path


class PhotoFolder:
    """Puts photos below a folder under the paths they had in the archive.

    Parameters
    ----------
    folder
        Where they go.
    roots
        Folders of the archive; with several, each becomes a folder of its own.
    copy
        Copy in any case; else a hard link is made where source and folder are on one file system.
    """

    def __init__(self, folder: Path, roots: Sequence[str], copy: bool = False) -> None:
        self.folder, self.copy = folder, copy
        names = [Path(root).name or "root" for root in roots]
        unique = len(set(names)) == len(names)
        self._roots = {
            root: "" if len(roots) == 1 else name if unique else f"{number}-{name}"
            for number, (root, name) in enumerate(zip(roots, names, strict=True))
        }

    def add(self, photo: str) -> str:
        """Put a photo in; return its path below the folder."""
        place = self._place(photo)
        target = self.folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        if not self.copy:
            try:
                os.link(os.path.realpath(photo), target)
                return place
            except FileExistsError:
                return place
            except OSError:
                pass  # another file system, or one without links
        shutil.copyfile(photo, target)
        return place

    def _place(self, photo: str) -> str:
        for root, name in self._roots.items():
            if photo.startswith(root.rstrip("/") + "/"):
                return os.path.join(name, os.path.relpath(photo, root))
        return os.path.join("elsewhere", photo.lstrip("/"))
