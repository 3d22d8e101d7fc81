"""Degraded copies of photos, to train and to test on photos unlike the ones at hand.

python -m studies.degrade LFW/images coarse/ --kind coarse
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, choice_error
from setnet.sandbox import unordered_map
from setnet.system import usable_cores

Pixels = NDArray[np.uint8]


def _coarse(photo: Pixels, rng: np.random.Generator) -> tuple[Pixels, int]:
    height, width = photo.shape[:2]
    scale = rng.uniform(0.3, 0.6)
    small = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    light = (cv2.resize(small, (width, height)) / 255.0) ** rng.uniform(0.5, 2.0) * rng.uniform(0.6, 1.2)
    light = (light + rng.normal(0, 0.03, light.shape)) * rng.uniform(0.85, 1.15, 3)
    return _pixels(light), int(rng.integers(20, 60))


def _shaken(photo: Pixels, rng: np.random.Generator) -> tuple[Pixels, int]:
    height, width = photo.shape[:2]
    length, angle = int(rng.integers(3, 10)), rng.uniform(0, math.pi)
    trace = np.zeros((length * 2 + 1,) * 2, np.float32)
    ends = [round(length + sign * length / 2 * f(angle)) for sign in (-1, 1) for f in (math.cos, math.sin)]
    cv2.line(trace, (ends[0], ends[1]), (ends[2], ends[3]), 1.0)
    blurred = cv2.filter2D(photo, -1, trace / trace.sum())
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), rng.uniform(-20, 20), rng.uniform(0.7, 1.0))
    turned = cv2.warpAffine(blurred, turn, (width, height), borderMode=cv2.BORDER_REFLECT)
    light = (turned / 255.0 - 0.5) * rng.uniform(0.4, 1.0) + rng.uniform(0.35, 0.65)
    if rng.random() < 0.5:  # a bar as wide as a hand, somewhere over the middle
        top = int(height * rng.uniform(0.3, 0.65))
        light[top : top + height // 12, width // 4 : width * 3 // 4] = rng.uniform(0, 1, 3)
    return _pixels(light), 90


def _small(photo: Pixels, rng: np.random.Generator) -> tuple[Pixels, int]:
    height, width = photo.shape[:2]
    scale = math.exp(rng.uniform(math.log(0.2), math.log(0.9)))
    small = cv2.resize(photo, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    top, left = (height - small.shape[0]) // 2, (width - small.shape[1]) // 2
    wall = np.full_like(photo, 128)
    wall[top : top + small.shape[0], left : left + small.shape[1]] = small
    return wall, 90


KINDS: dict[str, Callable[[Pixels, np.random.Generator], tuple[Pixels, int]]] = {
    "coarse": _coarse,
    "shaken": _shaken,
    "small": _small,
}


def degraded(photo: Pixels, kind: str, seed: int) -> tuple[Pixels, int]:
    """Return a degraded copy of a photo and the JPEG quality to store it with."""
    return KINDS[kind](photo, np.random.default_rng(seed))


def degrade_photos(photos: Path, out: Path, kind: str = "coarse") -> int:
    """Write a degraded copy of every JPEG photo below a folder; return how many there are.

    The copy is the same for the same name and kind.
    """
    if kind not in KINDS:
        raise choice_error("kind", kind, sorted(KINDS))
    names = sorted(str(path.relative_to(photos)) for path in photos.rglob("*.jpg"))
    if not names:
        raise InvalidInputError(f"{photos} holds no .jpg photos: give a folder of photos")
    copy = partial(_copy, photos=photos, out=out, kind=kind)
    return sum(unordered_map(copy, names, usable_cores()))  # OpenCV lets other threads work beside it


def _pixels(light: NDArray[Any]) -> Pixels:
    return np.asarray(np.clip(light, 0, 1) * 255, dtype=np.uint8)


def _copy(name: str, photos: Path, out: Path, kind: str) -> int:
    photo = cv2.imread(str(photos / name))
    if photo is None:
        raise InvalidInputError(f"{photos / name} is not a photo that can be read")
    copy, quality = degraded(np.asarray(photo, np.uint8), kind, zlib.crc32(name.encode()))
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(out / name), copy, [cv2.IMWRITE_JPEG_QUALITY, quality])
    return 1


def main() -> None:
    parser = argparse.ArgumentParser(
        "python -m studies.degrade", description="Write degraded copies of photos."
    )
    parser.add_argument("photos", type=Path, help="folder of .jpg photos")
    parser.add_argument("out", type=Path, help="the copies are written here")
    parser.add_argument("--kind", choices=sorted(KINDS), default="coarse", help="%(choices)s")
    options = parser.parse_args()
    print(f"{options.out}: {degrade_photos(options.photos, options.out, options.kind):,} degraded copies")


if __name__ == "__main__":
    main()
