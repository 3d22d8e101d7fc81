"""Reads video files part by part in worker processes, with limits for each part and for the whole.

The first functions run in the worker; `VideoReader` checks what comes back.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from setnet.addresses import AddressedFile, is_address, local_copy
from setnet.errors import InvalidInputError, StorageError, WorkerError
from setnet.library.paths import shot_path
from setnet.library.photo_reader import (
    PhotoResult,
    PhotoTask,
    faces_in,
    faces_to_arrays,
    facts_in,
    reason_in,
    reason_or,
    unread_result,
)
from setnet.library.photos import HASH_BYTES, StoredFace, content_hash, taken_number
from setnet.sandbox import Limits, Message, WorkerPool
from setnet.sandbox.messages import as_bytes, invalid_reply
from setnet.video.sprite import LARGEST_SPRITE

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_HASHED_WHOLE = 32 << 20  # bytes of a video that is read as a whole
_SAMPLES = 32
_SAMPLE = 1 << 20


def video_hash(path: str) -> bytes:
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


def identify(task: Message) -> Message:
    """Return size, times and hash of a video file."""
    from setnet.video.boxes import taken_at

    path = _path_in(task)
    fields: dict[str, Any] = {"size": 0, "mtime_ns": 0, "taken": None, "reason": None}
    digest = b""
    try:
        info = os.stat(path)
        fields |= {"size": info.st_size, "mtime_ns": info.st_mtime_ns}
        if not info.st_size:
            fields["reason"] = "the file is empty"
        digest = video_hash(path)
        fields["taken"] = taken_number(taken_at(path))
    except OSError as error:
        fields["reason"] = f"cannot be read: {error.strerror or error}"
    is_known = bool((task.arrays["known"] == as_bytes(digest)).all(axis=1).any()) if digest else False
    return Message("done", fields | {"is_known": is_known}, {"hash": as_bytes(digest)})


def _path_in(task: Message) -> str:
    """Return where the video is: at a path, or an open file that came with the task."""
    return f"/dev/fd/{task.files[0]}" if task.files else str(task.fields["path"])


def watch_part(settings: FaceSettings, task: Message) -> Message:
    """Watch a part of a video; why it cannot be is the reason in the reply."""
    from setnet.faces import load_descriptor
    from setnet.video import watch
    from setnet.video.boxes import is_av1

    path, at, budget = _path_in(task), task.fields["at"], task.fields["budget"]
    seen = reason_or(lambda: watch(path, settings, at, budget=budget))
    if isinstance(seen, str):
        reason = "its pictures are AV1, which setnet cannot decode: convert it to H.264 or H.265"
        return Message("done", {"reason": reason if is_av1(path) else seen})
    people = [person for shot in seen.shots for person in shot.people]
    fields = {
        "reason": None,
        "until": seen.until,
        "is_end": seen.is_end,
        "width": seen.width,
        "height": seen.height,
        "sprites": [len(shot.sprite) for shot in seen.shots],
    }
    shots = [(s.start, s.stop, s.best, len(s.people)) for s in seen.shots]
    arrays = faces_to_arrays([person.face for person in people], load_descriptor(settings.descriptor).dim)
    arrays |= {
        "shots": np.array(shots, np.float64).reshape(-1, 4),
        "times": np.array([(p.at, p.seen, len(p.track)) for p in people], np.float64).reshape(-1, 3),
        "tracks": np.concatenate([np.zeros((0, 5), np.float32), *(p.track for p in people)]),
        "sprites": as_bytes(b"".join(shot.sprite for shot in seen.shots)),
    }
    return Message("done", fields, arrays)


def describe_shot(settings: FaceSettings, task: Message) -> Message:
    """Describe the people of a shot by their best pictures, if the video is still the one they are from."""
    from setnet.faces import describe_faces, load_descriptor
    from setnet.video import frames_at

    path, places = _path_in(task), task.arrays

    def describe() -> Message:
        if video_hash(path) != places["hash"].tobytes():
            return Message("done", {"reason": "its content has changed since it was indexed"})
        found = [np.zeros((0, load_descriptor(settings.descriptor).dim), np.float32)]
        for i, time in enumerate(places["times"].tolist()):
            (pixels,) = frames_at(path, [time])
            found.append(describe_faces(pixels, places["boxes"][i], places["landmarks"][i], settings))
        return Message("done", {"reason": None}, {"descriptors": np.concatenate(found)})

    done = reason_or(describe)
    return Message("done", {"reason": done}) if isinstance(done, str) else done


_LONGEST = 1e6  # seconds of a video: longer times are nonsense
_LONGEST_SIDE = 1 << 16
_ROUNDED = 0.001  # seconds
_MAX_PEOPLE = 10_000  # in a part
_PART = 1 / 3  # of the time that a task may take, after which a part ends by itself
_PATIENCE = 600.0  # seconds for a video of any length
_PACE = 2.0  # seconds for each second of a video beyond that


@dataclass(frozen=True, eq=False)
class _Part:
    shots: list[PhotoResult]
    until: float
    is_end: bool


class VideoReader:
    """Reads videos on a pool of processes that others use too; `seconds` of video were watched so far."""

    def __init__(self, pool: WorkerPool, dim: int, limits: Limits) -> None:
        self._pool, self._dim, self._limits = pool, dim, limits
        self.seconds = 0.0

    def result(self, task: PhotoTask) -> PhotoResult:
        """Return what was found in a video: its shots, or why there are none."""
        path = os.fsdecode(task.path)
        try:
            if not is_address(path):
                return self._read(task, Message("", {"path": path}))
            with local_copy(path) as (file, copy):
                return self._read(task, Message("", files=(copy,)), file)
        except (WorkerError, StorageError, InvalidInputError) as error:
            return unread_result(task, error)

    def _read(self, task: PhotoTask, video: Message, file: AddressedFile | None = None) -> PhotoResult:
        """Return what was found in a video that workers reach as a message says; `file` is that of a copy."""
        known = np.frombuffer(b"".join(task.known), np.uint8).reshape(-1, HASH_BYTES)
        identify = replace(video, name="identify", arrays={"known": known})
        whole = self._pool.call(identify, lambda reply: facts_in(reply, task))
        if file is not None:
            whole = replace(whole, size=file.size, mtime_ns=file.stamp)
        return whole if whole.reason is not None or whole.is_known else self._watch(whole, video)

    def _watch(self, whole: PhotoResult, video: Message) -> PhotoResult:
        """Return the shots of all parts; those before a part that failed are kept."""
        shots: list[PhotoResult] = []
        at, began, problem = 0.0, monotonic(), None
        while problem is None:
            fields = {**video.fields, "at": at, "budget": self._limits.seconds * _PART}
            try:
                part = self._pool.call(
                    replace(video, name="watch", fields=fields), partial(self._parse, whole, at)
                )
            except WorkerError as error:
                part = str(error)
            if isinstance(part, str):
                problem = part
                break
            shots += part.shots
            self.seconds += max(0.0, part.until - at)
            if part.is_end:
                break
            if part.until <= at:
                problem = "it does not go on"
            at = part.until
            if monotonic() - began > _PATIENCE + _PACE * at:
                problem = "the rest would take too long"
        if not shots:
            return replace(whole, reason=problem or "holds no picture that can be decoded")
        note = None if problem is None else f"only the first {at:.0f} s were read: {problem}"
        return replace(whole, shots=tuple(shots), note=note)

    def _parse(self, whole: PhotoResult, at: float, reply: Message) -> _Part | str:
        if (reason := reason_in(reply)) is not None:
            return reason
        until, is_end = reply.number("until", 0, _LONGEST), reply.flag("is_end")
        limits = reply.array("shots", np.float64, None, 4)
        if not len(limits):
            return _Part([], until, is_end)
        width, height = (reply.integer(name, 1, _LONGEST_SIDE) for name in ("width", "height"))
        faces, descriptors = faces_in(reply, self._dim)
        times = list(_times(reply, len(faces)))
        counts = limits[:, 3]
        if len(faces) > _MAX_PEOPLE or (counts < 0).any() or counts.sum() != len(faces):
            raise invalid_reply("people of no shot")
        if (limits[:, :2] < 0).any() or (limits[:, 1] <= limits[:, 0]).any() or (limits > _LONGEST).any():
            raise invalid_reply("shots that end before they begin")
        if limits[0, 0] < at - _ROUNDED or (np.diff(limits[:, 0]) <= 0).any():
            raise invalid_reply("shots that were seen before")
        sprites = _sprites(reply, len(limits))
        ends = np.cumsum(counts).astype(int).tolist()
        found = []
        for (start, stop, best, count), end, sprite in zip(limits.tolist(), ends, sprites, strict=True):
            inside = range(end - int(count), end)
            found.append(
                replace(
                    whole,
                    path=shot_path(whole.path, start, stop),
                    hash=content_hash(whole.hash + b"%.3f-%.3f" % (start, stop)),
                    taken=None if whole.taken is None else whole.taken + start,
                    width=width,
                    height=height,
                    faces=tuple(
                        StoredFace(ordinal, *faces[i][1:8], *times[i]) for ordinal, i in enumerate(inside)
                    ),
                    descriptors=descriptors[inside.start : end] if count else None,
                    start=start,
                    stop=stop,
                    best=best,
                    video=whole.hash,
                    sprite=sprite,
                )
            )
        return _Part(found, until, is_end)


def _times(reply: Message, count: int) -> Iterator[tuple[float, float, bytes]]:
    """Yield when each person is best seen, for how long, and where."""
    times = reply.array("times", np.float64, count, 3)
    tracks = reply.array("tracks", np.float32, None, 5).astype("<f4")
    place = 0
    for at, seen, looks in times.tolist():
        if not 0 <= looks <= len(tracks) - place or not 0 <= at <= _LONGEST or not 0 <= seen <= _LONGEST:
            raise invalid_reply("a track of no person")
        yield at, seen, tracks[place : place + int(looks)].tobytes()
        place += int(looks)


def _sprites(reply: Message, count: int) -> list[bytes]:
    """Return the sprite of each shot, which may be empty."""
    sizes = reply.fields.get("sprites")
    if not isinstance(sizes, list) or len(sizes) != count:
        raise invalid_reply("sprites of no shot")
    whole, found, place = reply.data("sprites"), [], 0
    for size in sizes:
        if not isinstance(size, int) or not 0 <= size <= min(LARGEST_SPRITE, len(whole) - place):
            raise invalid_reply("a sprite that is too large")
        found.append(whole[place : place + size])
        place += size
    return found
