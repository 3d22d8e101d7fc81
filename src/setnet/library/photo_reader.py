"""Reads photos and videos in worker processes: one that crashes or hangs costs one file, not the run.

`tasks` and what it names run in the worker; `PhotoReader` checks what comes back. A face found there travels
as rows of arrays and arrives as it is stored: a `StoredFace`, and a row of `PhotoResult.descriptors`.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from setnet.addresses import file_at, is_address, local_copy, read_address
from setnet.errors import InvalidInputError, SetNetError, StorageError, WorkerError
from setnet.library.folder_scan import is_video_name
from setnet.library.paths import source_file
from setnet.library.photos import HASH_BYTES, LibraryPhoto, StoredFace, content_hash
from setnet.sandbox import Limits, Message, Service, Tasks, WorkerPool, unordered_map
from setnet.sandbox.messages import as_bytes, invalid_reply
from setnet.sandbox.process import ran_out_of_memory

if TYPE_CHECKING:
    from setnet.faces import Face, FaceSettings, Photo
    from setnet.library.video_reader import VideoReader

T = TypeVar("T")

_LARGEST_FILE = 512 << 20


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
    a JPEG to be kept, as is the `thumbnail` of a photo; `colour` is its mean. `note` says what is missing of
    the file. `taken_from` says where the time `taken` is from, if not from the camera: `name`, `file`, or
    `none` for no time at all.
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
    thumbnail: bytes = b""
    colour: int | None = None
    shots: tuple[PhotoResult, ...] = ()
    note: str | None = None

    @property
    def file(self) -> bytes:
        """The path of the file it was found in."""
        return source_file(self.path, self.start)


# 20190704, 2019-07-04 or 2019_07_04, and after it 123456, 12.34.56 or "at 12-34-56", if anything.
_DATE = r"(?<!\d)(19[89]\d|20\d\d)([-_.]?)(\d\d)\2(\d\d)"
_TIME = r"(?:[-_. T]*(?:at )?(\d\d)([-_.:h]?)(\d\d)\6(\d\d)(?:\d{3})?)?(?!\d)"
_IN_NAME = re.compile(f"{_DATE}{_TIME}")
_DATE_ONLY = re.compile(rf"{_DATE}(?!\d)")
_FIRST_YEAR = 1990  # files without a time of their own have one long before


def taken_date(path: bytes, taken: float | None, mtime_ns: int) -> tuple[float | None, str | None]:
    """Return when a file's photo was taken, as a number, and where that is from.

    `taken` is what the camera wrote, which nothing is better than (None); else it is `name` or `file`,
    and None where nothing tells: the `mtime_ns` of a file at an address is a stamp, and no time.
    """
    if taken is not None:
        return taken, None
    name = os.fsdecode(os.path.basename(path))
    of_file = None if is_address(path) else _file_time(mtime_ns)
    for source, time in (("name", date_in_name(name)), ("file", of_file)):
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


def tasks(options: Mapping[str, Any]) -> Tasks:
    """Load the models of given face settings and return the tasks."""
    from setnet.faces import FaceSettings, extract_faces
    from setnet.library.video_reader import describe_shot, identify, watch_part

    settings = FaceSettings.from_dict(options)
    with suppress(SetNetError):  # a missing model is the reason of each photo that needs it
        extract_faces(np.zeros((64, 64, 3), np.uint8), settings)
    return {
        "read": partial(with_file, partial(_read, settings)),
        "describe": partial(with_file, partial(_describe, settings)),
        "identify": identify,
        "watch": partial(watch_part, settings),
        "describe_shot": partial(describe_shot, settings),
    }


def with_file(work: Callable[..., Message], task: Message) -> Message:
    """Read and hash one file, and do some work on it; a failure becomes a reason."""
    fields: dict[str, Any] = {"size": 0, "mtime_ns": 0, "is_known": False, "reason": None}
    arrays = {"hash": np.zeros(0, np.uint8)}

    def read_and_work() -> Message:
        data, facts = _contents(task.fields["path"])
        fields.update(facts)
        if data is None:
            return Message("done", fields | {"reason": f"larger than {_LARGEST_FILE >> 20} MB"}, arrays)
        arrays["hash"] = as_bytes(content_hash(data))
        return work(task, data, fields, arrays)

    found = reason_or(read_and_work)
    return Message("done", fields | {"reason": found}, arrays) if isinstance(found, str) else found


def reason_or(work: Callable[[], T]) -> T | str:
    """Return what some work on a file returns, or why it failed: one file never stops a run."""
    try:
        return work()
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    except Exception as error:
        if ran_out_of_memory(error):
            raise
        if isinstance(error, SetNetError):
            return str(error).removeprefix("the given image: ")
        return f"unexpected {type(error).__name__}: {error}"  # the type tells whom to report it to


def _contents(path: str) -> tuple[bytes | None, dict[str, int]]:
    """Return the bytes of a file, None if they are too many, and what tells that it has changed."""
    if is_address(path):
        found, data = read_address(path, _LARGEST_FILE)
        facts = {"size": found.size, "mtime_ns": found.stamp}
        return (data if len(data) <= _LARGEST_FILE else None), facts
    with open(path, "rb") as file:
        info = os.fstat(file.fileno())
        facts = {"size": info.st_size, "mtime_ns": info.st_mtime_ns}
        return (file.read() if info.st_size <= _LARGEST_FILE else None), facts


def _describe(
    settings: FaceSettings, task: Message, data: bytes, fields: dict[str, Any], arrays: dict[str, Any]
) -> Message:
    """Describe the faces of a file whose places are known, if it is still the file they were found in."""
    from setnet.faces import describe_faces

    if not np.array_equal(task.arrays["hash"], arrays["hash"]):
        return Message("done", fields | {"reason": "its content has changed since it was indexed"}, arrays)
    found = describe_faces(data, task.arrays["boxes"], task.arrays["landmarks"], settings)
    return Message("done", fields, arrays | {"descriptors": found})


def _read(
    settings: FaceSettings, task: Message, data: bytes, fields: dict[str, Any], arrays: dict[str, Any]
) -> Message:
    """Decode, detect and describe one file, unless its content is known."""
    if (task.arrays["known"] == arrays["hash"]).all(axis=1).any():
        return Message("done", fields | {"is_known": True}, arrays)
    from setnet.faces import extract_faces, open_photo

    photo = open_photo(data, max_pixels=settings.max_pixels, enough=settings.longest_side)
    found = photo_message(photo, extract_faces(photo, settings), settings)
    return replace(found, fields={**fields, **found.fields}, arrays={**arrays, **found.arrays})


def photo_message(photo: Photo, faces: Sequence[Face], settings: FaceSettings) -> Message:
    """Return what is known of an opened photo; `photo_in` reads it."""
    from setnet.faces import load_descriptor
    from setnet.library.photos import taken_number
    from setnet.library.pictures import THUMBNAIL_SIDE, jpeg, mean_colour, thumbnail

    small = thumbnail(photo.pixels, THUMBNAIL_SIDE)
    fields = {
        "colour": mean_colour(small),
        "taken": taken_number(photo.taken),
        "width": photo.width,
        "height": photo.height,
        "note": photo.note,
    }
    arrays = faces_to_arrays(faces, load_descriptor(settings.descriptor).dim)
    return Message("done", fields, arrays | {"thumbnail": as_bytes(jpeg(small))})


def faces_to_arrays(faces: Sequence[Face], dim: int) -> dict[str, NDArray[Any]]:
    """Return the arrays of a message that hold faces; quality is rounded to four digits."""
    quality = [[round(float(value), 4) for value in astuple(face.quality)] for face in faces]
    return {
        "boxes": np.array([face.box for face in faces], np.float64).reshape(-1, 4),
        "landmarks": np.array([face.landmarks for face in faces], "<f4").reshape(-1, 5, 2),
        "scores": np.array([face.score for face in faces], np.float64),
        "quality": np.array(quality, np.float64).reshape(-1, 6),
        "descriptors": np.array([face.descriptor for face in faces], np.float32).reshape(-1, dim),
    }


_INT64 = 1 << 63
_LONGEST_SIDE = 1 << 30
_LARGEST_NORM_ERROR = 1e-3
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_799  # what a date can hold
_QUALITY = ("size", "score", "sharpness", "yaw", "pitch", "roll")


def faces_in(reply: Message, dim: int) -> tuple[list[StoredFace], NDArray[np.float32]]:
    """Return the faces in a message and their (n, dim) descriptors; what can be none is a `WorkerError`."""
    boxes = reply.array("boxes", np.float64, None, 4)
    landmarks = reply.array("landmarks", np.float32, len(boxes), 5, 2)
    scores = reply.array("scores", np.float64, len(boxes))
    quality = reply.array("quality", np.float64, len(boxes), 6)
    rows = zip(boxes.tolist(), scores.tolist(), landmarks, quality.tolist(), strict=True)
    faces: list[StoredFace] = []
    for (x0, y0, x1, y1), score, points, own in rows:
        known = json.dumps(dict(zip(_QUALITY, own, strict=True)))
        faces.append(StoredFace(len(faces), x0, y0, x1, y1, score, points.tobytes(), known))
    return faces, _descriptors_in(reply, len(faces), dim)


def _descriptors_in(reply: Message, faces: int, dim: int) -> NDArray[np.float32]:
    found: NDArray[np.float32] = reply.array("descriptors", np.float32, faces, dim)
    norms = np.linalg.norm(found.astype(np.float64), axis=1)
    if (abs(norms - 1.0) > _LARGEST_NORM_ERROR).any():
        raise invalid_reply("a descriptor is not of length 1")
    return found


def jpeg_in(reply: Message, name: str) -> bytes:
    """Return a picture in a message; what is none is a `WorkerError`."""
    data = reply.data(name)
    if not data.startswith(b"\xff\xd8\xff"):
        raise invalid_reply(f"{name} is no JPEG")
    return data


def taken_in(reply: Message) -> float | None:
    """Return when a photo was taken, by the reply of a worker."""
    return None if reply.fields.get("taken") is None else reply.number("taken", _YEAR_1, _YEAR_10000)


def photo_in(reply: Message, found: PhotoResult, dim: int) -> PhotoResult:
    """Return what was found with the facts and faces of a photo; what no photo has is a `WorkerError`."""
    faces, descriptors = faces_in(reply, dim)
    return replace(
        found,
        width=reply.integer("width", 1, _LONGEST_SIDE),
        height=reply.integer("height", 1, _LONGEST_SIDE),
        note=None if reply.fields.get("note") is None else reply.text("note"),
        faces=tuple(faces),
        descriptors=descriptors if faces else None,
        thumbnail=jpeg_in(reply, "thumbnail"),
        colour=reply.integer("colour", 0, 0xFFFFFF),
    )


def reason_in(reply: Message) -> str | None:
    """Return why a file could not be read, by the reply of a worker."""
    return None if reply.fields.get("reason") is None else reply.text("reason")


def facts_in(reply: Message, task: PhotoTask) -> PhotoResult:
    """Return what a reply says of a file, but for its faces; what no file has is a `WorkerError`."""
    size = reply.integer("size", 0, _INT64 - 1)
    mtime_ns = reply.integer("mtime_ns", -_INT64, _INT64 - 1)
    digest, reason, is_known = reply.data("hash"), reason_in(reply), reply.flag("is_known")
    if reason is not None:
        return PhotoResult(task.path, size, mtime_ns, digest, reason=reason)
    if len(digest) != HASH_BYTES or (is_known and digest not in task.known):
        raise invalid_reply("a wrong hash")
    taken, taken_from = taken_date(task.path, taken_in(reply), mtime_ns)
    return PhotoResult(task.path, size, mtime_ns, digest, is_known, taken=taken, taken_from=taken_from)


def unread_result(task: PhotoTask, error: SetNetError) -> PhotoResult:
    """Return what is known of a file that no process could read."""
    size = mtime_ns = 0
    with suppress(OSError, SetNetError):
        if is_address(task.path):
            found = file_at(os.fsdecode(task.path))
            size, mtime_ns = found.size, found.stamp
        else:
            info = os.stat(task.path)
            size, mtime_ns = info.st_size, info.st_mtime_ns
    return PhotoResult(task.path, size, mtime_ns, reason=str(error))


# A photo, and new descriptors of its faces, in their order, or why there are none.
DescribedPhoto = tuple[LibraryPhoto, NDArray[np.float32] | str]


class PhotoReader:
    """Reads photo files and yields results as they come, in no fixed order.

    Parameters
    ----------
    settings
        Detector, descriptor and their limits.
    workers
        Number of processes; 0 works in this process (no protection against a crash).
    limits
        Time and memory that one photo may take.
    """

    def __init__(self, settings: FaceSettings, workers: int, limits: Limits | None = None) -> None:
        from setnet.faces import model_entry

        self.dim = model_entry(settings.descriptor, "descriptor").dim or 0
        self.limits = limits or Limits()
        self.pool = WorkerPool(Service(__name__, settings.to_dict()), workers, limits, ahead=1)
        self._videos: VideoReader | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> PhotoReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.pool.close()

    @property
    def video_seconds(self) -> float:
        """How many seconds of video were watched so far."""
        return 0.0 if self._videos is None else self._videos.seconds

    def results(
        self, tasks: Iterable[PhotoTask], should_stop: Callable[[], bool] | None = None
    ) -> Iterator[PhotoResult]:
        """Yield one result per task; end early when `should_stop` is true while none comes."""
        return unordered_map(self._result, tasks, self.pool.capacity, should_stop)

    def _result(self, task: PhotoTask) -> PhotoResult:
        if is_video_name(os.path.basename(task.path)):
            return self._video_reader().result(task)
        known = np.frombuffer(b"".join(task.known), np.uint8).reshape(-1, HASH_BYTES)
        message = Message("read", {"path": os.fsdecode(task.path)}, {"known": known})
        try:
            return self.pool.call(message, partial(self._parse, task))
        except WorkerError as error:
            return unread_result(task, error)

    def _video_reader(self) -> VideoReader:
        from setnet.library.video_reader import VideoReader

        with self._lock:
            if self._videos is None:
                self._videos = VideoReader(self.pool, self.dim, self.limits)
            return self._videos

    def _parse(self, task: PhotoTask, reply: Message) -> PhotoResult:
        found = facts_in(reply, task)
        if found.reason is not None or found.is_known:
            return found
        return photo_in(reply, found, self.dim)

    def describe(
        self, photos: Iterable[LibraryPhoto], should_stop: Callable[[], bool] | None = None
    ) -> Iterator[DescribedPhoto]:
        """Yield stored photos with new descriptors of the faces that are known of them."""
        return unordered_map(self._reembed, photos, self.pool.capacity, should_stop)

    def _reembed(self, photo: LibraryPhoto) -> DescribedPhoto:
        if not photo.faces:
            return photo, np.zeros((0, self.dim), np.float32)
        is_shot = photo.start is not None
        places: dict[str, NDArray[Any]] = {
            "hash": as_bytes(photo.stored_video if is_shot else photo.stored_hash),
            "boxes": np.array([face.box for face in photo.faces], np.float64),
            "landmarks": np.stack([face.landmarks for face in photo.faces]),
        }
        if is_shot:  # the best picture of each person is described
            times = [photo.start if face.at is None else face.at for face in photo.faces]
            places["times"] = np.array(times, np.float64)
        path = os.fsdecode(photo.stored_path)

        def parsed(reply: Message) -> NDArray[np.float32] | str:
            return reason_in(reply) or _descriptors_in(reply, len(photo.faces), self.dim)

        try:
            if not is_shot:
                return photo, self.pool.call(Message("describe", {"path": path}, places), parsed)
            if not is_address(path):
                return photo, self.pool.call(Message("describe_shot", {"path": path}, places), parsed)
            with local_copy(path) as (_, copy):
                return photo, self.pool.call(Message("describe_shot", {}, places, (copy,)), parsed)
        except (WorkerError, StorageError, InvalidInputError) as error:
            return photo, str(error)
