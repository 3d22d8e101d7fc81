"""Describes faces that a library knows already, by another model, in worker processes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.errors import WorkerError
from setnet.library.indexing.face_arrays import descriptors_from
from setnet.library.store.records import LibraryPhoto
from setnet.sandbox import Limits, Message, Service, WorkerPool, as_bytes, unordered_map

if TYPE_CHECKING:
    from setnet.faces import FaceSettings


class DescribedPhoto(NamedTuple):
    """A photo and the new descriptors of its faces, in their order; or why there are none."""

    photo: LibraryPhoto
    descriptors: NDArray[np.float32]
    reason: str | None = None


class FaceDescriber:
    """Reads photo files and describes their known faces; see `PhotoReader` for what the workers protect from.

    Parameters
    ----------
    settings
        With the new descriptor.
    workers
        Number of processes; 0 works in this process.
    limits
        Time and memory that one photo may take.
    """

    def __init__(self, settings: FaceSettings, workers: int, limits: Limits | None = None) -> None:
        from setnet.faces import model_entry

        self._dim = model_entry(settings.descriptor, "descriptor").dim or 0
        service = Service("setnet.library.indexing.photo_service", settings.to_dict())
        self._pool = WorkerPool(service, workers, limits, ahead=1)

    def __enter__(self) -> FaceDescriber:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def results(
        self, photos: Iterable[LibraryPhoto], should_stop: Callable[[], bool] | None = None
    ) -> Iterator[DescribedPhoto]:
        """Yield the photos with their descriptors as they come, in no fixed order."""
        return unordered_map(self._result, photos, self._pool.capacity, should_stop)

    def _result(self, photo: LibraryPhoto) -> DescribedPhoto:
        none = np.zeros((0, self._dim), np.float32)
        if not photo.faces:
            return DescribedPhoto(photo, none)
        places: dict[str, NDArray[Any]] = {
            "hash": as_bytes(photo.stored_hash),
            "boxes": np.array([face.box for face in photo.faces], np.float64),
            "landmarks": np.stack([face.landmarks for face in photo.faces]),
        }
        name = "describe"
        if photo.start is not None:  # of a shot the best picture of each person is described
            name = "describe_shot"
            times = [photo.start if face.at is None else face.at for face in photo.faces]
            places |= {"hash": as_bytes(photo.stored_video), "times": np.array(times, np.float64)}
        message = Message(name, {"path": os.fsdecode(photo.stored_path)}, places)
        try:
            return self._pool.call(message, lambda reply: self._parsed(photo, reply))
        except WorkerError as error:
            return DescribedPhoto(photo, none, str(error))

    def _parsed(self, photo: LibraryPhoto, reply: Message) -> DescribedPhoto:
        if reply.fields.get("reason") is not None:
            return DescribedPhoto(photo, np.zeros((0, self._dim), np.float32), reply.text("reason"))
        return DescribedPhoto(photo, descriptors_from(reply, len(photo.faces), self._dim))
