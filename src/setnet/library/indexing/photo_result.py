"""What is known of a photo file before it is stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.library.store.records import StoredFace
from setnet.library.store.shot_paths import file_of
from setnet.library.store.taken_dates import dated
from setnet.sandbox import Message

_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_799  # what a date can hold


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


def date_from(reply: Message, task: PhotoTask, mtime_ns: int) -> tuple[float | None, str | None]:
    """Return when a photo or video was taken, and where that is from: the camera, else its name or file."""
    taken = None if reply.fields.get("taken") is None else reply.number("taken", _YEAR_1, _YEAR_10000)
    return dated(task.path, taken, mtime_ns)
