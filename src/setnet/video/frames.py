"""Frames of a video at chosen times: key pictures where they are enough, all pictures around changes.

Packets of H.264 and H.265 are handed to the decoder directly, so that what nobody looks at is not decoded.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from setnet.errors import VideoError
from setnet.video.capture import Packet, PacketGroup, milliseconds, open_capture, packet_groups


@dataclass(frozen=True, eq=False, slots=True)
class Frame:
    """A picture at a time of a video, in seconds; `bgr` is upright, (rows, columns, 3), blue first."""

    time: float
    bgr: NDArray[np.uint8]

    @property
    def pixels(self) -> NDArray[np.uint8]:
        """The picture with red first, as `setnet.faces` takes it."""
        import cv2

        return np.asarray(cv2.cvtColor(self.bgr, cv2.COLOR_BGR2RGB), np.uint8)


_TURNS = {90: "ROTATE_90_CLOCKWISE", 180: "ROTATE_180", 270: "ROTATE_90_COUNTERCLOCKWISE"}


def decode_packets(packets: Sequence[Packet], turned: int, apart: float) -> Iterator[Frame]:
    """Yield the pictures of packets that need no others, at least `apart` seconds from each other.

    `turned` are the degrees that the container says pictures are to be turned by: packets know nothing of it.
    As many pictures as packets must come: else nobody knows which time is whose, a `VideoError`.
    """
    import cv2

    times = sorted(packet.time for packet in packets)
    data = io.BytesIO(b"".join(packet.data for packet in packets))
    capture = open_capture(data)
    number, last = 0, -1e9
    try:
        while capture.grab():
            if number < len(times) and times[number] - last >= apart - 0.001:
                found, frame = capture.retrieve()
                if found:
                    last = times[number]
                    yield Frame(last, _upright(np.asarray(frame, np.uint8), turned))
            number += 1
    except cv2.error as error:
        raise VideoError("damaged") from error
    finally:
        capture.release()
        data.close()  # not before: the decoder reads it without holding it
    if number != len(times):
        raise VideoError("its pictures and packets do not agree")


def _upright(frame: NDArray[np.uint8], turned: int) -> NDArray[np.uint8]:
    import cv2

    name = _TURNS.get(turned)
    return frame if name is None else np.asarray(cv2.rotate(frame, getattr(cv2, name)), np.uint8)


_SLACK = 0.001  # seconds: times are rounded to milliseconds
_UNSEEKABLE = 1.0  # seconds after the wanted time: the file has no usable list of its pictures


def read_frames(path: str, at: float, apart: float) -> Iterator[Frame]:
    """Yield pictures from a time on, at least `apart` seconds from each other; all are decoded."""
    import cv2

    capture = open_capture(path)
    try:
        if at > 0:
            capture.set(cv2.CAP_PROP_POS_MSEC, max(0.0, at * 1000 - 1))
        wanted, last = at, -1.0
        with suppress(cv2.error):  # a damaged file ends where it cannot be decoded any more
            while capture.grab():
                time = milliseconds(capture) / 1000
                if last < 0 and 0 < at < time - _UNSEEKABLE:
                    raise VideoError("cannot be read from its middle: its list of pictures is damaged")
                if time < wanted - _SLACK or time <= last:
                    continue
                found, frame = capture.retrieve()
                if found and frame is not None and frame.ndim == 3:
                    yield Frame(time, np.asarray(frame, np.uint8))
                    wanted, last = time + apart, time
    finally:
        capture.release()


def frames_at(path: str, times: Sequence[float]) -> list[NDArray[np.uint8]]:
    """Return the pictures of a video at given times (seconds, ascending), red first.

    Raises
    ------
    VideoError
        When the file cannot be read, or has no picture at a time.
    """
    found = []
    for time in times:
        frame = next(read_frames(path, max(0.0, time), 0.0), None)
        if frame is None:
            raise VideoError(f"has no picture at {time:.1f} s")
        found.append(frame.pixels)
    return found


FRAME_STEP = 0.25  # seconds between frames: a cut is found to this precision
_OFTEN = 1.1  # seconds: key pictures so close are enough to look at, unless there is a cut between them
_STILL = 0.004  # bytes per picture as a share of the key picture's, where nothing moves
_BATCH_SECONDS = 12.0
_BATCH_BYTES = 32 << 20

HasChanged = Callable[[Frame, Frame], bool]


def watch_frames(path: str, at: float, has_changed: HasChanged) -> Iterator[Frame]:
    """Yield pictures of a video from a time on, in the order of their times.

    `has_changed` tells whether two pictures may be of different shots: then those between them are seen too.
    """
    last = at - FRAME_STEP
    groups = packet_groups(path, at)
    try:
        turned = _rotation(path)
        for batch, following in _batches(groups):
            for frame in _batch_frames(batch, following, turned, has_changed):
                if frame.time > last + FRAME_STEP / 2 and frame.time >= at - FRAME_STEP / 4:
                    last = frame.time
                    yield frame
            if not batch[-1].is_whole:
                raise VideoError("key pictures are too far from each other")
    except VideoError:  # the long way: every picture is decoded
        pass
    else:
        if last >= at:
            return
    finally:
        groups.close()  # type: ignore[attr-defined]
    yield from read_frames(path, max(at, last + FRAME_STEP), FRAME_STEP)


def _batches(groups: Iterator[PacketGroup]) -> Iterator[tuple[list[PacketGroup], PacketGroup | None]]:
    """Yield groups together, with the one after them: to open a decoder takes as long as some pictures."""
    batch: list[PacketGroup] = []
    size = 0
    for group in groups:
        is_full = batch and (group.key.time - batch[0].key.time >= _BATCH_SECONDS or size >= _BATCH_BYTES)
        if is_full or (batch and not batch[-1].is_whole):
            yield batch, group
            batch, size = [], 0
        batch.append(group)
        size += sum(len(packet.data) for packet in (group.key, *group.others))
    if batch:
        yield batch, None


def _batch_frames(
    batch: list[PacketGroup], following: PacketGroup | None, turned: int, has_changed: HasChanged
) -> Iterator[Frame]:
    whole = _thin_out([group for group in batch if group.is_whole])
    known = [*whole, following] if following is not None else whole
    keys = [group.key for group in known if group.seconds <= _OFTEN or group.motion < _STILL]
    by_time = {frame.time: frame for frame in decode_packets(keys, turned, 0.0)} if keys else {}
    inside: list[Packet] = []  # of neighbouring groups that are decoded together
    for number, group in enumerate(whole):
        key = by_time.get(group.key.time)
        after = by_time.get(known[number + 1].key.time) if number + 1 < len(known) else None
        loud = group.loud_until
        seen = 0.0 if loud is None else loud + 2 * FRAME_STEP
        if following is None and number + 1 == len(whole):
            inside += group.needed_packets(inf)  # the end of the video is that of its last picture
        elif key is None:
            # Its end is like a short group: the next key picture shows it, unless there is something new.
            inside += group.needed_packets(max(group.end - _OFTEN, seen))
        elif loud is not None and after is not None and has_changed(key, after):
            inside += group.needed_packets(seen)
        else:  # a change without many bytes is a cut at the next key picture
            yield from _frames_before(key.time, inside, turned)
            inside = []
            yield key
    yield from _frames_before(following.key.time if following is not None else inf, inside, turned)


def _frames_before(key: float, packets: list[Packet], turned: int) -> Iterator[Frame]:
    """Yield the frames of packets; none just before a key picture, which could then be skipped."""
    if packets:
        frames = decode_packets(packets, turned, FRAME_STEP)
        yield from (frame for frame in frames if frame.time < key - FRAME_STEP / 2)


def _thin_out(groups: list[PacketGroup]) -> list[PacketGroup]:
    """Return groups without short ones close to the one before: some videos have only key pictures.

    Where a long one begins just after another, the long one is kept: it is the one after the cut.
    """
    kept: list[PacketGroup] = []
    for group in groups:
        if kept and group.seconds > FRAME_STEP and group.key.time - kept[-1].key.time <= FRAME_STEP / 2:
            kept.pop()
        if not kept or group.seconds > FRAME_STEP or group.key.time - kept[-1].key.time >= 2 * FRAME_STEP:
            kept.append(group)
    return kept


def _rotation(path: str) -> int:
    import cv2

    capture = open_capture(path)  # one that yields packets does not say
    try:
        return int(np.nan_to_num(capture.get(cv2.CAP_PROP_ORIENTATION_META))) % 360
    finally:
        capture.release()
