"""What an index run did, while it runs and at its end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setnet.wording import counted


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """A running index run: `done` of `total` files read, unchanged ones left out; `minutes` are of videos."""

    stage: str
    done: int
    total: int
    unchanged: int
    faces: int
    failed: int
    seconds: float
    minutes: float = 0.0

    @property
    def rate(self) -> float:
        """Photos per second so far."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The expected rest of the run, once there is something to go by."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None

    def to_dict(self) -> dict[str, Any]:
        """Return the progress as values that JSON can hold."""
        left = self.seconds_left
        return asdict(self) | {
            "seconds": round(self.seconds, 2),
            "rate": round(self.rate, 2),
            "minutes": round(self.minutes, 2),
            "seconds_left": None if left is None else round(left, 1),
        }


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The end of an index run; paths are absolute.

    `failed` has the files that could not be read, or not to their end: the latter are also in `partial`.
    `skipped` are files that nothing installed can read. `prune_refused`: photos whose files are gone were not
    removed, because they are more than a tenth and nobody agreed.
    """

    scanned: int
    unchanged: int
    added: int
    changed: int
    moved: int
    copied: int
    removed: int
    faces: int
    vanished: tuple[Path, ...]
    failed: tuple[tuple[Path, str], ...]
    unreadable: tuple[tuple[Path, str], ...]
    interrupted: bool
    seconds: float
    scan_seconds: float
    detect_seconds: float
    describe_seconds: float
    workers: int
    shots: int = 0
    minutes: float = 0.0
    partial: tuple[tuple[Path, str], ...] = ()
    skipped: tuple[tuple[Path, str], ...] = ()
    prune_refused: bool = False

    @property
    def ok(self) -> bool:
        """Whether every file could be read and the run came to its end."""
        return not self.failed and not self.unreadable and not self.interrupted

    @property
    def has_changed(self) -> bool:
        """Whether photos came, went or changed."""
        return any((self.added, self.changed, self.moved, self.copied, self.removed))

    @property
    def summary(self) -> str:
        """The run in one sentence."""
        new = self.added + self.changed
        rate = f"{new / self.seconds:,.1f} photos/s" if new else f"{self.scanned / self.seconds:,.0f} files/s"
        others = ("changed", "moved", "copied", "unchanged", "removed")
        parts = [f"{counted(self.scanned, 'photo')} seen", f"{self.added:,} new"]
        parts += [f"{getattr(self, name):,} {name}" for name in others if getattr(self, name)]
        parts += [f"{len(self.skipped):,} skipped"] if self.skipped else []
        if self.shots:
            rate += f"; {counted(self.shots, 'shot')} in {self.minutes:.1f} minutes of video"
        return f"{', '.join(parts)}; {counted(self.faces, 'face')} found in {self.seconds:.1f} s, {rate}"

    def to_dict(self, path_text: Callable[[Path], str] = str, most: int | None = None) -> dict[str, Any]:
        """Return the report as values that JSON can hold, with at most `most` paths in each list."""
        return asdict(self) | {
            "vanished": [path_text(path) for path in self.vanished[:most]],
            "failed": [{"photo": path_text(p), "reason": why} for p, why in self.failed[:most]],
            "unreadable": [{"folder": path_text(p), "reason": why} for p, why in self.unreadable[:most]],
            "partial": [{"photo": path_text(p), "reason": why} for p, why in self.partial[:most]],
            "skipped": [{"photo": path_text(p), "reason": why} for p, why in self.skipped[:most]],
            "vanished_count": len(self.vanished),
            "failed_count": len(self.failed),
            "unreadable_count": len(self.unreadable),
            "partial_count": len(self.partial),
            "skipped_count": len(self.skipped),
        }
