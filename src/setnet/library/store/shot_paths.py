"""The paths by which shots are stored: the video's, with the shot's times as a last part."""

from __future__ import annotations

import os
import re

_TIMES = re.compile(rb"\d{7}\.\d{3}-\d{7}\.\d{3}")


def shot_path(video: bytes, start: float, stop: float) -> bytes:
    """Return the stored path of a shot.

    >>> shot_path(b"/films/party.mp4", 12, 19.5)
    b'/films/party.mp4/0000012.000-0000019.500'
    """
    return video + b"/%011.3f-%011.3f" % (start, stop)


def file_of(path: bytes, start: float | None) -> bytes:
    """Return the file of a stored path: of a shot, which has a start, the video."""
    return path if start is None else os.path.dirname(path)


def is_shot_path(path: bytes) -> bool:
    """Return whether a stored path can only be a shot's.

    >>> is_shot_path(b"/films/party.mp4/0000012.000-0000019.500"), is_shot_path(b"/films/party.mp4")
    (True, False)
    """
    return _TIMES.fullmatch(os.path.basename(path)) is not None
