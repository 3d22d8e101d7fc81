"""What a look at a photo file gives: its content hash, when it was taken, its faces."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import WorkerError
from setnet.library.paths import file_of
from setnet.library.photos import StoredFace
from setnet.sandbox import Message

if TYPE_CHECKING:
    from setnet.faces import Face
    from setnet.sandbox import Message

HASH_BYTES = 16
_HASHED_WHOLE = 32 << 20  # bytes of a video that is read as a whole
_SAMPLES = 32
_SAMPLE = 1 << 20


def content_hash(data: bytes) -> bytes:
    """Return the hash of a file's bytes."""
    return blake2b(data, digest_size=HASH_BYTES).digest()


def video_hash(path: Path) -> bytes:
    """Return the hash of a video: of its size, and of its bytes or, of a large file, of samples all over it.

    Reading many gigabytes to notice a moved file would take longer than watching some videos.
    """
    found = blake2b(digest_size=HASH_BYTES)
    with open(path, "rb") as file:
        size = file.seek(0, 2)
        found.update(b"video %d " % size)
        if size <= _HASHED_WHOLE:
            file.seek(0)
            found.update(file.read())
            return found.digest()
        for number in range(_SAMPLES):
            file.seek((size - _SAMPLE) * number // (_SAMPLES - 1))
            found.update(file.read(_SAMPLE))
    return found.digest()


# 20190704, 2019-07-04 or 2019_07_04, and after it 123456, 12.34.56 or "at 12-34-56", if anything.
_DATE = r"(?<!\d)(19[89]\d|20\d\d)([-_.]?)(\d\d)\2(\d\d)"
_TIME = r"(?:[-_. T]*(?:at )?(\d\d)([-_.:h]?)(\d\d)\6(\d\d)(?:\d{3})?)?(?!\d)"
_IN_NAME = re.compile(f"{_DATE}{_TIME}")
_DATE_ONLY = re.compile(rf"{_DATE}(?!\d)")
_FIRST_YEAR = 1990  # files without a time of their own have one long before


def taken_date(path: bytes, taken: float | None, mtime_ns: int) -> tuple[float | None, str | None]:
    """Return when a file's photo was taken, as a number, and where that is from.

    `taken` is what the camera wrote, which nothing is better than (None); else it is `name` or `file`,
    and None where nothing tells.
    """
    if taken is not None:
        return taken, None
    name = os.fsdecode(os.path.basename(path))
    for source, time in (("name", date_in_name(name)), ("file", _file_time(mtime_ns))):
        if time is not None:
            return time.replace(tzinfo=UTC).timestamp(), source
    return None, None


def date_in_name(name: str) -> datetime | None:
    """Return the date, with the time if there is one, that a camera or a program put into a file's name.

    >>> date_in_name("IMG_20190704_123456.jpg"), date_in_name("2019-07-04 12.34.56.jpg")
    (datetime.datetime(2019, 7, 4, 12, 34, 56), datetime.datetime(2019, 7, 4, 12, 34, 56))
    >>> date_in_name("IMG-20190704-WA0001.jpg")
    datetime.datetime(2019, 7, 4, 0, 0)
    """
    stem = os.path.splitext(name)[0]
    for pattern in (_IN_NAME, _DATE_ONLY):
        for found in pattern.finditer(stem):
            year, _, month, day, *time = found.groups()
            hour, minute, second = (time[0], time[2], time[3]) if time and time[0] else (0, 0, 0)
            try:
                return datetime(int(year), int(month), int(day), int(hour), int(minute), int(second))
            except ValueError:  # digits that are no date, or no time
                continue
    return None


def _file_time(mtime_ns: int) -> datetime | None:
    try:
        time = datetime.fromtimestamp(mtime_ns // 10**9)
    except (OverflowError, OSError, ValueError):
        return None
    return time if time.year >= _FIRST_YEAR else None


_LARGEST_NORM_ERROR = 1e-3


def faces_to_arrays(faces: Sequence[Face], dim: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a message that hold faces; quality is rounded to four digits."""
    quality = [[round(float(value), 4) for value in astuple(face.quality)] for face in faces]
    return {
        "boxes": np.array([face.box for face in faces], np.float64).reshape(-1, 4),
        "landmarks": np.array([face.landmarks for face in faces], np.float32).reshape(-1, 5, 2),
        "scores": np.array([face.score for face in faces], np.float64),
        "quality": np.array(quality, np.float64).reshape(-1, 6),
        "descriptors": np.array([face.descriptor for face in faces], np.float32).reshape(-1, dim),
    }


def descriptors_from_arrays(reply: Message, faces: int, dim: int) -> NDArray[np.float32]:
    """Return the (faces, dim) descriptors in a message; what no descriptor can be is refused."""
    found: NDArray[np.float32] = reply.array("descriptors", np.float32, faces, dim)
    norms = np.linalg.norm(found.astype(np.float64), axis=1)
    if (abs(norms - 1.0) > _LARGEST_NORM_ERROR).any():
        raise WorkerError("its worker process gave an invalid reply (a descriptor is not of length 1)")
    return found


def faces_from_arrays(reply: Message, dim: int) -> list[Face]:
    """Return the faces in a message; what no face can be is refused with a `WorkerError`."""
    from setnet.faces import Box, Face, Quality

    boxes = reply.array("boxes", np.float64, None, 4)
    landmarks = reply.array("landmarks", np.float32, len(boxes), 5, 2)
    scores = reply.array("scores", np.float64, len(boxes))
    quality = reply.array("quality", np.float64, len(boxes), 6)
    descriptors = descriptors_from_arrays(reply, len(boxes), dim)
    return [
        Face(Box(*box), landmarks[i], score, Quality(*qualities), descriptors[i])
        for i, (box, score, qualities) in enumerate(
            zip(boxes.tolist(), scores.tolist(), quality.tolist(), strict=True)
        )
    ]


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
    return taken_date(task.path, taken, mtime_ns)
