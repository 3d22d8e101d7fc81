"""The status of a library: its contents, its settings, its size on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setnet.library.store.records import FailedPhoto
from setnet.library.store.tables.photo_counts import Counts

if TYPE_CHECKING:
    from setnet.faces import FaceSettings


@dataclass(frozen=True, slots=True)
class LibraryStatus:
    """What a library holds, the settings it was made with, and its bytes on disk.

    `calibrated` says whether what similarities mean was fitted to it, by `setnet calibrate`.
    """

    path: Path
    counts: Counts
    folders: tuple[Path, ...]
    failures: tuple[FailedPhoto, ...]
    settings: FaceSettings
    dim: int
    set_vectors: str
    bytes: int
    calibrated: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the status as values that JSON can hold."""
        return {
            "library": str(self.path),
            **self.counts.to_dict(),
            "folders": [str(p) for p in self.folders],
            "failures": [failure.to_dict() for failure in self.failures],
            "settings": self.settings.to_dict(),
            "dim": self.dim,
            "set_vectors": self.set_vectors,
            "bytes": self.bytes,
            "calibrated": self.calibrated,
            "folder_count": self.counts.folders,
        }


def bytes_in(folder: Path) -> int:
    """Return the bytes of all files below a folder."""
    total = 0
    for file in folder.rglob("*"):
        try:
            total += file.stat().st_size if file.is_file() else 0
        except OSError:  # a segment replaced a moment ago
            continue
    return total
