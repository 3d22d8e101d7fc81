"""What is known of a photo file before it is stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.library.store.records import StoredFace


@dataclass(frozen=True, slots=True)
class PhotoTask:
    """A file to read; `known` are hashes of contents the library has, whose faces need not be found."""

    path: bytes
    known: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class PhotoResult:
    """What was found in a file.

    `reason` says why it could not be used, `is_known` that its content is one of the task's known ones;
    `moved_from` is the stored photo that is at this path now.
    """

    path: bytes
    size: int = 0
    mtime_ns: int = 0
    hash: bytes = b""
    is_known: bool = False
    moved_from: int | None = None
    taken: float | None = None
    width: int = 0
    height: int = 0
    faces: tuple[StoredFace, ...] = ()
    descriptors: NDArray[np.float32] | None = None
    reason: str | None = None
    detect_seconds: float = 0.0
    describe_seconds: float = 0.0
