"""The tasks of a worker process that are about videos."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setnet.errors import SetNetError
from setnet.library.indexing.face_arrays import faces_to_arrays
from setnet.library.store.content_hash import video_hash
from setnet.sandbox import Message, ran_out_of_memory

if TYPE_CHECKING:
    from setnet.faces import FaceSettings


def identify(task: Message) -> Message:
    """Return size, times and hash of a video file."""
    from setnet.library.store.photo_catalog import taken_number
    from setnet.video import taken_at

    path = task.fields["path"]
    fields: dict[str, Any] = {"size": 0, "mtime_ns": 0, "taken": None, "reason": None}
    digest = b""
    try:
        info = os.stat(path)
        fields |= {"size": info.st_size, "mtime_ns": info.st_mtime_ns}
        if not info.st_size:
            fields["reason"] = "the file is empty"
        digest = video_hash(Path(path))
        fields["taken"] = taken_number(taken_at(path))
    except OSError as error:
        fields["reason"] = f"cannot be read: {error.strerror or error}"
    return Message("done", fields, {"hash": np.frombuffer(digest, np.uint8)})


def watch_part(settings: FaceSettings, task: Message) -> Message:
    """Watch a part of a video; why it cannot be is the reason in the reply."""
    from setnet.faces import load_descriptor
    from setnet.video import allow_hardware, watch

    fields: dict[str, Any] = {"reason": None}
    allow_hardware(task.fields["hardware"])
    try:
        at, budget = task.fields["at"], task.fields["budget"]
        seen = watch(task.fields["path"], settings, at, budget=budget)
    except Exception as error:  # one video never stops a run; the type tells whom to report it to
        if ran_out_of_memory(error):
            raise
        own = isinstance(error, SetNetError)
        reason = str(error) if own else f"unexpected {type(error).__name__}: {error}"
        return Message("done", fields | {"reason": reason}, {})
    people = [person for shot in seen.shots for person in shot.people]
    fields |= {"until": seen.until, "is_end": seen.is_end, "width": seen.width, "height": seen.height}
    dim = load_descriptor(settings.descriptor).dim
    arrays = {
        "shots": np.array([(s.start, s.stop, s.best, len(s.people)) for s in seen.shots], np.float64),
        "times": np.array([(p.at, p.seen, len(p.track)) for p in people], np.float64).reshape(-1, 3),
        "tracks": np.concatenate([np.zeros((0, 5), np.float32), *(p.track for p in people)]),
    }
    arrays["shots"] = arrays["shots"].reshape(-1, 4)
    arrays["sprites"] = np.frombuffer(b"".join(shot.sprite for shot in seen.shots), np.uint8)
    fields["sprites"] = [len(shot.sprite) for shot in seen.shots]
    return Message("done", fields, arrays | faces_to_arrays([person.face for person in people], dim))


def describe_shot(settings: FaceSettings, task: Message) -> Message:
    """Describe the people of a shot by their best pictures, if the video is still the one they are from."""
    from setnet.faces import describe_faces, load_descriptor
    from setnet.video import frames_at

    path, places = task.fields["path"], task.arrays
    try:
        if video_hash(Path(path)) != places["hash"].tobytes():
            return Message("done", {"reason": "its content has changed since it was indexed"})
        found = [np.zeros((0, load_descriptor(settings.descriptor).dim), np.float32)]
        for i, time in enumerate(places["times"].tolist()):
            (pixels,) = frames_at(path, [time])
            found.append(describe_faces(pixels, places["boxes"][i], places["landmarks"][i], settings))
    except OSError as error:
        return Message("done", {"reason": f"cannot be read: {error.strerror or error}"})
    except SetNetError as error:
        return Message("done", {"reason": str(error)})
    return Message("done", {"reason": None}, {"descriptors": np.concatenate(found)})
