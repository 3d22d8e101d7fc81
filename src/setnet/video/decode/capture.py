"""Opens video files with OpenCV, restricted to containers that hold what they show."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from setnet.errors import VideoError
from setnet.video.decode.hardware import faster

if TYPE_CHECKING:
    import cv2

# Playlists are left out: they would make the decoder open other files, or addresses in the network.
_CONTAINERS = "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,mpeg,mpegts,asf,flv,ogg,h264,hevc"
_OPTIONS = f"protocol_whitelist;file|format_whitelist;{_CONTAINERS}"
_SECONDS = 20  # that opening or reading may wait for the disk


def opened(source: str | io.BytesIO, *, packets: bool = False) -> cv2.VideoCapture:
    """Return an open video, on one thread; with `packets` it yields what is encoded instead of pictures.

    Raises
    ------
    VideoError
        When the file is no video in a format that can be read.
    """
    import cv2

    os.environ["OPENCV_FFMPEG_CAPTURE_OPTIONS"] = _OPTIONS
    os.environ.setdefault("OPENCV_FFMPEG_LOGLEVEL", "-8")  # what matters of its messages is a VideoError
    os.environ.setdefault("OPENCV_LOG_LEVEL", "SILENT")
    cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_SILENT)
    settings = [
        cv2.CAP_PROP_N_THREADS, 1, cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, _SECONDS * 1000,
        cv2.CAP_PROP_READ_TIMEOUT_MSEC, _SECONDS * 1000,
    ]  # fmt: skip
    if packets:
        settings += [cv2.CAP_PROP_FORMAT, -1]
    with suppress(cv2.error):
        capture = cv2.VideoCapture(cast(str, source), cv2.CAP_FFMPEG, settings)
        if capture.isOpened():
            return capture if packets else faster(capture, lambda more: _again(source, [*settings, *more]))
    raise VideoError(
        "not a video that setnet can read (MP4, MOV, MKV, WebM, AVI, MPEG, WMV; not AV1), or damaged"
    )


def _again(source: str | io.BytesIO, settings: list[int]) -> cv2.VideoCapture:
    import cv2

    if isinstance(source, io.BytesIO):
        source.seek(0)
    return cv2.VideoCapture(cast(str, source), cv2.CAP_FFMPEG, settings)


def milliseconds(capture: cv2.VideoCapture) -> float:
    """Return the time of the last picture or packet in milliseconds; 0 where the file has nonsense."""
    import cv2

    time = float(capture.get(cv2.CAP_PROP_POS_MSEC))
    return time if 0 <= time < 1e12 else 0.0
