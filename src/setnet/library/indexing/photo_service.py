"""The tasks of a process that reads photo files for an index run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from setnet.addresses import is_address, read_address
from setnet.errors import SetNetError
from setnet.library.indexing.face_arrays import faces_to_arrays
from setnet.library.indexing.video_service import describe_shot, identify, watch_part
from setnet.library.store.content_hash import content_hash
from setnet.sandbox import Message, Tasks, ran_out_of_memory

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_LARGEST_FILE = 512 << 20


def tasks(options: Mapping[str, Any]) -> Tasks:
    """Load the models of given face settings and return the tasks."""
    from setnet.faces import FaceSettings, faces_of

    settings = FaceSettings.from_dict(options)
    with suppress(SetNetError):  # a missing model is the reason of each photo that needs it
        faces_of(np.zeros((64, 64, 3), np.uint8), settings)
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
    from setnet.faces import StageTimes, faces_of, load_descriptor, open_photo
    from setnet.library.store.photo_catalog import taken_number

    photo = open_photo(data, max_pixels=settings.max_pixels, enough=settings.longest_side)
    times = StageTimes()
    faces = faces_of(photo, settings, times=times)
    fields |= {
        "taken": taken_number(photo.taken),
        "width": photo.width,
        "height": photo.height,
        "note": photo.note,
        "detect_seconds": times.detector,
        "describe_seconds": times.descriptor,
    }
    return Message("done", fields, arrays | faces_to_arrays(faces, load_descriptor(settings.descriptor).dim))
