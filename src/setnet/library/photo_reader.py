"""Reads photos and videos in worker processes: one that crashes or hangs costs one file, not the run.

`tasks` and what it names run in the worker; `PhotoReader` checks what comes back.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from setnet.addresses import file_at, is_address, read_address
from setnet.errors import SetNetError, WorkerError
from setnet.library.folder_scan import is_video_name
from setnet.library.photo_result import (
    HASH_BYTES,
    PhotoResult,
    PhotoTask,
    content_hash,
    date_from,
    faces_from_arrays,
    faces_to_arrays,
)
from setnet.library.photos import stored_face
from setnet.library.video_reader import VideoReader, describe_shot, identify, watch_part
from setnet.sandbox import Limits, Message, Service, Tasks, WorkerPool, unordered_map
from setnet.sandbox.service import ran_out_of_memory

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_LARGEST_FILE = 512 << 20


def tasks(options: Mapping[str, Any]) -> Tasks:
    """Load the models of given face settings and return the tasks."""
    from setnet.faces import FaceSettings, extract_faces

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
    try:
        data, facts = _contents(task.fields["path"])
        fields |= facts
        if data is None:
            return Message("done", fields | {"reason": f"larger than {_LARGEST_FILE >> 20} MB"}, arrays)
        arrays["hash"] = np.frombuffer(content_hash(data), np.uint8)
        return work(task, data, fields, arrays)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
    except Exception as error:  # one photo never stops a run; the type tells whom to report it to
        if ran_out_of_memory(error):
            raise
        own = isinstance(error, SetNetError)
        reason = str(error) if own else f"unexpected {type(error).__name__}: {error}"
    return Message("done", fields | {"reason": reason.removeprefix("the given image: ")}, arrays)


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
    from setnet.faces import StageTimes, extract_faces, load_descriptor, open_photo
    from setnet.library.photo_catalog import taken_number

    photo = open_photo(data, max_pixels=settings.max_pixels, enough=settings.longest_side)
    times = StageTimes()
    faces = extract_faces(photo, settings, times=times)
    fields |= {
        "taken": taken_number(photo.taken),
        "width": photo.width,
        "height": photo.height,
        "note": photo.note,
        "detect_seconds": times.detector,
        "describe_seconds": times.descriptor,
    }
    return Message("done", fields, arrays | faces_to_arrays(faces, load_descriptor(settings.descriptor).dim))


_INT64 = 1 << 63
_LONGEST_SIDE = 1 << 30
_LONGEST_SECONDS = 1e6


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

    def __init__(
        self,
        settings: FaceSettings,
        workers: int,
        limits: Limits | None = None,
    ) -> None:
        from setnet.faces import model_entry

        self._dim = model_entry(settings.descriptor, "descriptor").dim or 0
        service = Service(__name__, settings.to_dict())
        self._pool = WorkerPool(service, workers, limits, ahead=1)
        self.videos = VideoReader(self._pool, self._dim, limits or Limits())

    def __enter__(self) -> PhotoReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def results(
        self, tasks: Iterable[PhotoTask], should_stop: Callable[[], bool] | None = None
    ) -> Iterator[PhotoResult]:
        """Yield one result per task; end early when `should_stop` is true while none comes."""
        return unordered_map(self._result, tasks, self._pool.capacity, should_stop)

    def _result(self, task: PhotoTask) -> PhotoResult:
        if _is_video(task):
            return self.videos.result(task)
        try:
            return self._pool.call(_message(task), partial(self._parsed, task))
        except WorkerError as error:
            size = mtime_ns = 0
            with suppress(OSError, SetNetError):
                if is_address(task.path):
                    found = file_at(os.fsdecode(task.path))
                    size, mtime_ns = found.size, found.stamp
                else:
                    info = os.stat(task.path)
                    size, mtime_ns = info.st_size, info.st_mtime_ns
            return PhotoResult(task.path, size, mtime_ns, reason=str(error))

    def _parsed(self, task: PhotoTask, reply: Message) -> PhotoResult:
        size = reply.integer("size", 0, _INT64 - 1)
        mtime_ns = reply.integer("mtime_ns", -_INT64, _INT64 - 1)
        digest = reply.data("hash")
        if reply.fields.get("reason") is not None:
            return PhotoResult(task.path, size, mtime_ns, digest, reason=reply.text("reason"))
        is_known = reply.flag("is_known")
        if len(digest) != HASH_BYTES or (is_known and digest not in task.known):
            raise WorkerError("its worker process gave an invalid reply (a wrong hash)")
        if is_known:
            return PhotoResult(task.path, size, mtime_ns, digest, is_known=True)
        faces = faces_from_arrays(reply, self._dim)
        taken, taken_from = date_from(reply, task, mtime_ns)
        return PhotoResult(
            task.path,
            size,
            mtime_ns,
            digest,
            taken=taken,
            taken_from=taken_from,
            width=reply.integer("width", 1, _LONGEST_SIDE),
            height=reply.integer("height", 1, _LONGEST_SIDE),
            note=None if reply.fields.get("note") is None else reply.text("note"),
            faces=tuple(stored_face(ordinal, face) for ordinal, face in enumerate(faces)),
            descriptors=np.stack([face.descriptor for face in faces]) if faces else None,
            detect_seconds=reply.number("detect_seconds", 0, _LONGEST_SECONDS),
            describe_seconds=reply.number("describe_seconds", 0, _LONGEST_SECONDS),
        )


def _is_video(task: PhotoTask) -> bool:
    return is_video_name(os.path.basename(task.path))


def _message(task: PhotoTask) -> Message:
    known = np.frombuffer(b"".join(task.known), np.uint8).reshape(-1, HASH_BYTES)
    return Message("read", {"path": os.fsdecode(task.path)}, {"known": known})
