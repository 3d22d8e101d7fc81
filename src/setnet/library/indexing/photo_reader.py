"""Reads photos and videos in worker processes: one that crashes or hangs costs one file, not the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from setnet.addresses import file_at, is_address
from setnet.errors import SetNetError, WorkerError
from setnet.library.indexing.face_arrays import faces_from
from setnet.library.indexing.folder_scan import is_video_name
from setnet.library.indexing.photo_result import PhotoResult, PhotoTask, date_from
from setnet.library.indexing.video_reader import VideoReader
from setnet.library.store.content_hash import HASH_BYTES
from setnet.library.store.records import stored_face
from setnet.sandbox import Limits, Message, Service, WorkerPool, unordered_map

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

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
        service = Service(f"{__package__}.photo_service", settings.to_dict())
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
        faces = faces_from(reply, self._dim)
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
