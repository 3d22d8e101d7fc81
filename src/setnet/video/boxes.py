"""What the head of a video file says: when it was taken, whether it belongs to a photo, or is AV1."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import BinaryIO

_MAX_BOXES = 64  # at the top of a file; real ones have about five
_LARGEST_INDEX = 32 << 20  # bytes of the box that describes the video
_HEADER = 1 << 16  # bytes: where a Matroska file says what its tracks are
_LIVE = b"com.apple.quicktime.content.identifier"
_LOCAL_TIME = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[+-]\d\d:?\d\d")
_1904 = datetime(1904, 1, 1, tzinfo=UTC)
_FIRST_YEAR = 1970  # a clock that was never set says 1904


def is_live_video(path: str | bytes) -> bool:
    """Return whether a MOV file is the moving part of a live photo: it says which photo it belongs to."""
    return _LIVE in _description(path)


def is_av1(path: str | bytes) -> bool:
    """Return whether the pictures of an MP4, MOV, MKV or WebM file are AV1, which OpenCV cannot decode."""
    if b"av01" in _description(path):
        return True
    with suppress(OSError), open(path, "rb") as file:
        return b"V_AV1" in file.read(_HEADER)
    return False


def taken_at(path: str | bytes) -> datetime | None:
    """Return when a video was taken, by the camera's clock where it says so, else in UTC."""
    described = _description(path)
    if (local := _LOCAL_TIME.search(described)) is not None:
        try:
            return datetime.fromisoformat(local[1].decode())
        except ValueError:
            return None
    place = described.find(b"mvhd")
    if place < 0:
        return None
    is_long = described[place + 4 : place + 5] == b"\1"
    seconds = int.from_bytes(described[place + 8 : place + (16 if is_long else 12)], "big")
    try:
        taken = (_1904 + timedelta(seconds=seconds)).replace(tzinfo=None)
    except OverflowError:
        return None
    return taken if taken.year > _FIRST_YEAR else None


def _description(path: str | bytes) -> bytes:
    """Return the contents of the box that describes the video; nothing for other files."""
    try:
        with open(path, "rb") as file:
            for name, size in _boxes(file):
                if name == b"moov":
                    return file.read(min(size, _LARGEST_INDEX))
    except OSError:
        pass
    return b""


def _boxes(file: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Yield names and sizes of the boxes of a file, which then stands at the contents of the box."""
    place = 0
    for _ in range(_MAX_BOXES):
        file.seek(place)
        header = file.read(16)
        if len(header) < 8:
            return
        size, begin = int.from_bytes(header[:4], "big"), 8
        if size == 1 and len(header) == 16:
            size, begin = int.from_bytes(header[8:], "big"), 16
        if size < begin or size >= 1 << 62:
            return
        file.seek(place + begin)
        yield header[4:8], size - begin
        place += size
