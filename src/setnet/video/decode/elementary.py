"""Decodes chosen packets of a video by themselves, without the ones in between."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from setnet.errors import VideoError
from setnet.video.decode.capture import opened
from setnet.video.decode.packets import Packet
from setnet.video.look import Look

_TURNS = {90: "ROTATE_90_CLOCKWISE", 180: "ROTATE_180", 270: "ROTATE_90_COUNTERCLOCKWISE"}


def decoded(packets: Sequence[Packet], turned: int, apart: float) -> Iterator[Look]:
    """Yield the pictures of packets that need no others, at least `apart` seconds from each other.

    `turned` are the degrees that the container says pictures are to be turned by: packets know nothing of it.

    Raises
    ------
    VideoError
        When there are not as many pictures as packets: then nobody knows which time is whose.
    """
    import cv2

    times = sorted(packet.time for packet in packets)
    data = io.BytesIO(b"".join(packet.data for packet in packets))
    capture = opened(data)
    number, last = 0, -1e9
    try:
        while capture.grab():
            if number < len(times) and times[number] - last >= apart - 0.001:
                found, frame = capture.retrieve()
                if found:
                    last = times[number]
                    yield Look(last, _upright(np.asarray(frame, np.uint8), turned))
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
