"""Decoding by the graphics hardware, where OpenCV offers it and it gives pictures."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import cv2

SWITCH = "SETNET_VIDEO_HARDWARE"  # `off` leaves the hardware alone

_is_allowed = True
_gives_pictures: dict[float, bool] = {}  # by codec, as found out in this process

Open = Callable[[list[int]], "cv2.VideoCapture"]


def may_have_hardware() -> bool:
    """Return whether there may be hardware that decodes videos, and it is not switched off."""
    if os.environ.get(SWITCH, "").lower() == "off":
        return False
    return sys.platform != "linux" or any(Path("/dev/dri").glob("render*"))


def allow_hardware(allowed: bool) -> None:
    """Say whether this process may decode by hardware; drivers that crash or hang cannot be caught in it."""
    global _is_allowed  # the decoder is shared by all that this process reads
    _is_allowed = allowed


def faster(capture: cv2.VideoCapture, open_with: Open) -> cv2.VideoCapture:
    """Return a video that was opened as it is, or opened again so that hardware decodes it.

    `open_with` opens it again with more settings. Hardware is tried once for each codec in a process: it
    must be offered and give a picture.
    """
    import cv2

    if not _is_allowed or not may_have_hardware():
        return capture
    codec = capture.get(cv2.CAP_PROP_FOURCC)
    more = [cv2.CAP_PROP_HW_ACCELERATION, cv2.VIDEO_ACCELERATION_ANY]
    if codec not in _gives_pictures:
        _gives_pictures[codec] = False
        with suppress(cv2.error):
            tried = open_with(more)
            if tried.isOpened() and tried.get(cv2.CAP_PROP_HW_ACCELERATION) > 0:
                _gives_pictures[codec] = bool(tried.read()[0])
            tried.release()
        return _opened_anew(capture, open_with, more if _gives_pictures[codec] else [])
    return _opened_anew(capture, open_with, more) if _gives_pictures[codec] else capture


def _opened_anew(capture: cv2.VideoCapture, open_with: Open, more: list[int]) -> cv2.VideoCapture:
    """Return the video opened again, from its beginning; as it was, where that fails."""
    again = open_with(more)
    if not again.isOpened():
        again = open_with([])
    capture.release()
    return again
