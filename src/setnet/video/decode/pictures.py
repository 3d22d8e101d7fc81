"""Pictures of a video, decoded one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from setnet.errors import VideoError
from setnet.video.decode.capture import milliseconds, opened
from setnet.video.look import Look

_SLACK = 0.001  # seconds: times are rounded to milliseconds
_UNSEEKABLE = 1.0  # seconds after the wanted time: the file has no usable list of its pictures


def pictures(path: str, at: float, apart: float) -> Iterator[Look]:
    """Yield pictures from a time on, at least `apart` seconds from each other; all are decoded."""
    import cv2

    capture = opened(path)
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
                    yield Look(time, np.asarray(frame, np.uint8))
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
        look = next(pictures(path, max(0.0, time), 0.0), None)
        if look is None:
            raise VideoError(f"has no picture at {time:.1f} s")
        found.append(look.pixels)
    return found
