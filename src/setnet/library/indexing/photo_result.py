"""What is known of a photo file before it is stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.library.store.records import StoredFace
from setnet.library.store.shot_paths import file_of


@dataclass(frozen=True, slots=True)
class PhotoTask:
    """A file to read; `known` are hashes of contents the library has, whose faces need not be found."""

    path: bytes
    known: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class PhotoResult:
    """What was found in a file.

    `reason` says why it could not be used, `is_known` that its content is one of the task's known ones;
    `moved_from` is the stored photo that is at this path now. The result of a video has its `shots`, which
    are results by themselves, with a path of their own, `video`, the hash of its content, and `sprite`,
    a JPEG to be kept; `note` says what is missing of it. `taken_from` says where the time `taken` is from,
    if not from the camera: `name`, `file`, or `none` for no time at all.
    """

    path: bytes
    size: int = 0
    mtime_ns: int = 0
    hash: bytes = b""
    is_known: bool = False
    moved_from: int | None = None
    taken: float | None = None
    taken_from: str | None = None
    width: int = 0
    height: int = 0
    faces: tuple[StoredFace, ...] = ()
    descriptors: NDArray[np.float32] | None = None
    reason: str | None = None
    start: float | None = None
    stop: float = 0.0
    best: float = 0.0
    video: bytes = b""
    sprite: bytes = b""
    shots: tuple[PhotoResult, ...] = ()
    note: str | None = None
    detect_seconds: float = 0.0
    describe_seconds: float = 0.0

    @property
    def file(self) -> bytes:
        """The path of the file it was found in."""
        return file_of(self.path, self.start)
