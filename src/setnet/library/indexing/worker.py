"""One worker: a file becomes faces and descriptors, or the reason why not."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import Connection
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.errors import SetNetError

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

__all__ = ["FaceRow", "PhotoResult", "PhotoTask", "content_hash", "read_photo", "serve_tasks"]

_LARGEST_FILE = 512 << 20


@dataclass(frozen=True, slots=True)
class PhotoTask:
    """A file to look at; `known` are contents the library has, for which no faces need to be found."""

    path: bytes
    known: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True)
class FaceRow:
    """A face as it is stored."""

    box: tuple[float, float, float, float]
    landmarks: bytes
    score: float
    quality: str


@dataclass(frozen=True, slots=True)
class PhotoResult:
    """What a worker found in a file.

    `reason` says why it is no photo, `is_known` that its content is one of the task's known ones;
    `moved_from` is the stored photo that lies here now.
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
    faces: tuple[FaceRow, ...] = ()
    descriptors: NDArray[np.float32] | None = None
    reason: str | None = None
    detect_seconds: float = 0.0
    describe_seconds: float = 0.0
    seconds: float = 0.0


def content_hash(data: bytes) -> bytes:
    """Return the 16-byte hash that tells one photo's content from another's."""
    return hashlib.blake2b(data, digest_size=16).digest()


def read_photo(task: PhotoTask, settings: FaceSettings) -> PhotoResult:
    """Read, hash, decode, detect and describe one file; every failure becomes a reason."""
    start = perf_counter()
    result = PhotoResult(task.path)
    try:
        with open(task.path, "rb") as file:
            info = os.fstat(file.fileno())
            result = replace(result, size=info.st_size, mtime_ns=info.st_mtime_ns)
            if info.st_size > _LARGEST_FILE:
                return replace(result, reason=f"larger than {_LARGEST_FILE >> 20} MB")
            data = file.read()
        result = replace(result, hash=content_hash(data))
        if result.hash in task.known:
            return replace(result, is_known=True)
        result = _faces_in(data, result, settings)
    except OSError as error:
        return replace(result, reason=f"cannot be read: {error.strerror or error}")
    except SetNetError as error:
        return replace(result, reason=str(error).removeprefix("the given image: "))
    except MemoryError:
        return replace(result, reason="not enough memory to open it")
    except Exception as error:  # one photo never stops a run; the type tells whom to report it to
        return replace(result, reason=f"unexpected {type(error).__name__}: {error}")
    return replace(result, seconds=perf_counter() - start)


def _faces_in(data: bytes, result: PhotoResult, settings: FaceSettings) -> PhotoResult:
    from setnet.faces import StageTimes, faces_of, open_photo
    from setnet.library.store.photo_catalog import taken_number

    photo = open_photo(data, max_pixels=settings.max_pixels)
    times = StageTimes()
    faces = faces_of(photo, settings, times=times)
    rows = tuple(
        FaceRow(
            box=(face.box.x0, face.box.y0, face.box.x1, face.box.y1),
            landmarks=np.asarray(face.landmarks, "<f4").tobytes(),
            score=float(face.score),
            quality=json.dumps({k: round(float(v), 4) for k, v in asdict(face.quality).items()}),
        )
        for face in faces
    )
    return replace(
        result,
        taken=taken_number(photo.taken),
        width=photo.width,
        height=photo.height,
        faces=rows,
        descriptors=np.stack([f.descriptor for f in faces]).astype(np.float32) if faces else None,
        detect_seconds=times.detector,
        describe_seconds=times.descriptor,
    )


def serve_tasks(tasks: Connection, settings: FaceSettings) -> None:
    """Answer tasks from the pipe until it closes; the body of a worker process."""
    while True:
        try:
            task = tasks.recv()
            if task is None:
                return
            tasks.send(read_photo(task, settings))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return
