"""Reads photos and videos in worker processes: one that crashes or hangs costs one file, not the run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import numpy as np

from setnet.cluster import ClusterIndex
from setnet.errors import WorkerError
from setnet.library.indexing.face_arrays import faces_from
from setnet.library.indexing.folder_scan import is_video_name
from setnet.library.indexing.photo_result import PhotoResult, PhotoTask
from setnet.library.indexing.video_reader import VideoReader
from setnet.library.store.content_hash import HASH_BYTES
from setnet.library.store.records import stored_face
from setnet.library.store.taken_dates import dated
from setnet.workers import Limits, Message, Service, WorkerPool, unordered_map

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_INT64 = 1 << 63
_LONGEST_SIDE = 1 << 30
_YEAR_1, _YEAR_10000 = -62_135_596_800, 253_402_300_799  # what a date can hold
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
    index
        Where the photos' faces go: if it is a cluster that runs, its machines read the photos.
    """

    def __init__(
        self,
        settings: FaceSettings,
        workers: int,
        limits: Limits | None = None,
        index: object = None,
    ) -> None:
        from setnet.faces import model_entry

        self._dim = model_entry(settings.descriptor, "descriptor").dim or 0
        service = Service(f"{__package__}.photo_service", settings.to_dict())
        shared = index.task_pool(service, limits) if isinstance(index, ClusterIndex) else None
        # a pool of a cluster has the same calls
        self._pool = cast(WorkerPool, shared) if shared else WorkerPool(service, workers, limits, ahead=1)
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
        if is_video_name(os.path.basename(task.path)):
            return self.videos.result(task)
        known = np.frombuffer(b"".join(task.known), np.uint8).reshape(-1, HASH_BYTES)
        message = Message("read", {"path": os.fsdecode(task.path)}, {"known": known})
        try:
            return self._pool.call(message, lambda reply: self._parsed(task, reply))
        except WorkerError as error:
            size = mtime_ns = 0
            with suppress(OSError):
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
        taken = None if reply.fields.get("taken") is None else reply.number("taken", _YEAR_1, _YEAR_10000)
        taken, taken_from = dated(task.path, taken, mtime_ns)
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
