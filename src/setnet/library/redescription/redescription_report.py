"""What describing a library anew did."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setnet.wording import counted


@dataclass(frozen=True, slots=True)
class RedescribeReport:
    """The end of a run; paths are absolute.

    Attributes
    ----------
    total
        Photos that have to be described.
    described, faces
        Photos described in this run, and their faces.
    kept
        Photos that an interrupted run before had described.
    removed
        Photos whose files are gone.
    failed
        Photos that could not be read, and why; `setnet index` looks at them again.
    examples_from_photos, examples_from_pictures
        Example faces of people, by where they were seen again.
    lost
        Example faces that were not: the person, and the photo they came from.
    is_done
        Whether there was nothing to do, as the library was described by this model before.
    """

    descriptor: str
    dim: int
    total: int = 0
    described: int = 0
    faces: int = 0
    kept: int = 0
    removed: int = 0
    failed: tuple[tuple[Path, str], ...] = ()
    examples_from_photos: int = 0
    examples_from_pictures: int = 0
    lost: tuple[tuple[str, Path | None], ...] = ()
    interrupted: bool = False
    is_done: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether every photo and every example was described and the run came to its end."""
        return not self.failed and not self.lost and not self.interrupted

    @property
    def summary(self) -> str:
        """The run in one sentence."""
        if self.is_done:
            return f"the library is described by {self.descriptor} already"
        photos, faces = counted(self.described, "photo"), counted(self.faces, "face")
        parts = [f"{photos} with {faces} described by {self.descriptor}"]
        if self.kept:
            parts.append(f"{self.kept:,} before")
        if self.removed:
            parts.append(f"{self.removed:,} removed")
        examples = self.examples_from_photos + self.examples_from_pictures
        if examples:
            parts.append(f"{examples:,} examples of people")
        return f"{', '.join(parts)}, in {self.seconds:.1f} s"

    def to_dict(self, path_text: Callable[[Path], str] = str) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return asdict(self) | {
            "failed": [{"photo": path_text(path), "reason": why} for path, why in self.failed],
            "lost": [
                {"person": person, "photo": None if path is None else path_text(path)}
                for person, path in self.lost
            ],
        }
