"""Small video clips of synthetic people, encoded by what comes with OpenCV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, RATE = 320, 180, 10
CODECS = {".mp4": "mp4v", ".mov": "mp4v", ".avi": "MJPG", ".mkv": "VP80", ".webm": "VP80", ".wmv": "WMV2"}


class Scene(NamedTuple):
    """Who is in a shot from left to right, for how long, before which wall; `mix` s dissolve at its end."""

    people: tuple[str, ...]
    seconds: float = 2.0
    wall: tuple[int, int, int] = (70, 100, 120)
    mix: float = 0.0


@cache
def _bust(person: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    from setnet.cli.demo_album import bust

    cutout = bust(person, 1)
    scale = 160 / len(cutout.alpha)
    size = (round(cutout.alpha.shape[1] * scale), 160)
    pixels, alpha = (
        np.asarray(cv2.resize(np.asarray(a, np.float32), size, interpolation=cv2.INTER_AREA), np.float32)
        for a in (cutout.pixels, cutout.alpha)
    )
    return pixels[..., ::-1], alpha[..., None]


def picture(scene: Scene, number: int) -> NDArray[np.uint8]:
    """Return a frame of a scene; people sway a little from frame to frame."""
    canvas = np.empty((HEIGHT, WIDTH, 3), np.float32)
    canvas[:] = scene.wall
    canvas += 25 * np.sin(np.arange(WIDTH) / (9 + scene.wall[0] / 20))[None, :, None]
    for place, person in enumerate(scene.people):
        pixels, alpha = _bust(person)
        left = int((place + 0.5) * WIDTH / len(scene.people) - alpha.shape[1] / 2 + 6 * np.sin(number / 6))
        left = min(max(0, left), WIDTH - alpha.shape[1])
        part = canvas[HEIGHT - len(alpha) :, left : left + alpha.shape[1]]
        part[:] = part * (1 - alpha) + pixels * alpha
    return np.clip(canvas, 0, 255).astype(np.uint8)


def frames(scenes: Sequence[Scene]) -> Iterator[NDArray[np.uint8]]:
    """Yield the frames of scenes one after the other."""
    for place, scene in enumerate(scenes):
        count, mixed = round(scene.seconds * RATE), round(scene.mix * RATE)
        for number in range(count):
            frame = picture(scene, number)
            share = (number - (count - mixed)) / mixed if mixed and place + 1 < len(scenes) else 0.0
            if share > 0:
                following = picture(scenes[place + 1], 0)
                frame = cv2.addWeighted(frame, 1 - share, following, share, 0).astype(np.uint8)
            yield frame


def write_clip(path: Path, scenes: Sequence[Scene]) -> Path:
    """Write a clip of scenes in the container that the path's suffix names."""
    path.parent.mkdir(parents=True, exist_ok=True)
    code = cv2.VideoWriter.fourcc(*CODECS[path.suffix])
    writer = cv2.VideoWriter(str(path), cv2.CAP_FFMPEG, code, RATE, (WIDTH, HEIGHT))
    assert writer.isOpened()
    for frame in frames(scenes):
        writer.write(frame)
    writer.release()
    return path
