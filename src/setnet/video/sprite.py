"""Sprites: a few small pictures of a shot beside each other, which a page shows one after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from setnet.video.frames import Frame

LARGEST_SPRITE = 64 << 10  # bytes
_PICTURES = 6
_HEIGHT = 120
_APART = 0.5  # seconds between pictures that are kept until the cuts are known
_QUALITIES = (70, 40, 15)


def sprite_times(start: float, stop: float) -> list[float]:
    """Return the seconds of a video that the sprite of a shot shows."""
    return [start + (stop - start) * (n + 0.5) / _PICTURES for n in range(_PICTURES)]


def make_sprite(frames: Sequence[NDArray[np.uint8]]) -> bytes:
    """Return pictures, red first, beside each other as a JPEG; nothing if it were too large."""
    sheet = np.concatenate([_small(frame) for frame in frames], axis=1)
    for quality in _QUALITIES:
        data = _jpeg(np.ascontiguousarray(sheet[..., ::-1]), quality)
        if len(data) <= LARGEST_SPRITE:
            return data
    return b""


class SpritePictures:
    """Small copies of frames, kept until the cuts are known."""

    def __init__(self) -> None:
        self._kept: list[tuple[float, bytes]] = []

    def take(self, frame: Frame) -> None:
        """Keep a small copy of a frame, unless one was kept just before."""
        if not self._kept or frame.time - self._kept[-1][0] >= _APART:
            self._kept.append((frame.time, _jpeg(_small(frame.bgr), 85)))

    def sprite(self, start: float, stop: float) -> bytes:
        """Return the sprite of a shot; nothing where no frame of it was kept."""
        import cv2

        inside = [(time, data) for time, data in self._kept if start <= time < stop]
        if not inside:
            return b""
        frames = []
        for wanted in sprite_times(start, stop):
            _, data = min(inside, key=lambda kept: abs(kept[0] - wanted))
            frames.append(np.asarray(cv2.imdecode(np.frombuffer(data, np.uint8), 1), np.uint8)[..., ::-1])
        return make_sprite(frames)


def _small(frame: NDArray[np.uint8]) -> NDArray[np.uint8]:
    import cv2

    rows, columns = frame.shape[:2]
    if rows == _HEIGHT:
        return frame
    step = max(1, rows // (2 * _HEIGHT))  # to read every pixel would take longer than the rest
    width = min(8 * _HEIGHT, max(1, round(_HEIGHT * columns / rows)))
    part = np.ascontiguousarray(frame[::step, ::step])
    return np.asarray(cv2.resize(part, (width, _HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)


def _jpeg(frame: NDArray[np.uint8], quality: int) -> bytes:
    import cv2

    return cv2.imencode(".jpg", frame, [cv2.IMWRITE_JPEG_QUALITY, quality])[1].tobytes()
