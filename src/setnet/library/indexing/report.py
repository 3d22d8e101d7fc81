"""What an index run did, while it runs and at its end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["IndexProgress", "IndexReport"]


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """A running index run: `done` of `total` files read, unchanged ones not counted."""

    stage: str
    done: int
    total: int
    unchanged: int
    faces: int
    failed: int
    seconds: float

    @property
    def rate(self) -> float:
        """Photos per second so far."""
        return self.done / self.seconds if self.seconds > 0 else 0.0

    @property
    def seconds_left(self) -> float | None:
        """The expected rest of the run, once there is something to go by."""
        return (self.total - self.done) / self.rate if self.rate > 0 else None


@dataclass(frozen=True, slots=True)
class IndexReport:
    """The end of an index run; paths are absolute."""

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

    @property
    def ok(self) -> bool:
        """Whether every file could be read and the run came to its end."""
        return not self.failed and not self.unreadable and not self.interrupted
