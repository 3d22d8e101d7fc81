"""Aligned face crops of folders of identities, cut once and kept beside a run."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from setnet.errors import TrainingError
from setnet.faces import five_point_crop, load_detector

SECONDS_BETWEEN_LINES = 20.0
logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Crops:
    """Face crops, (n, size, size, 3) uint8 RGB, and whose they are; `missed` had no face found."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.str_]
    missed: int


def aligned_crops(root: Path, size: int, cache: Path) -> Crops:
    """Return a crop of the face nearest the centre of each photo in ``root/identity/``, aligned.

    The crops are kept in `cache` (an `.npz`) and read from there the next time. A photo in which no face is
    found gives its central part: these collections are centred on the labelled person.
    """
    if not cache.is_file():
        if not root.is_dir() or not any(root.iterdir()):
            raise TrainingError(f"{root}: no folders of identities; expected root/person/photo.jpg")
        made = _cut(root, size)
        cache.parent.mkdir(parents=True, exist_ok=True)
        fresh = cache.with_suffix(".tmp.npz")
        np.savez(fresh, pixels=made.pixels, labels=made.labels, missed=made.missed)
        fresh.replace(cache)
    with np.load(cache, allow_pickle=False) as file:
        crops = Crops(file["pixels"], file["labels"], int(file["missed"]))
    if crops.pixels.shape[1] != size:
        raise TrainingError(
            f"{cache}: crops of {crops.pixels.shape[1]} pixels, {size} wanted; remove this file"
        )
    return crops


def _cut(root: Path, size: int) -> Crops:
    photos = sorted(p for p in root.glob("*/*") if p.suffix.lower() in {".jpg", ".jpeg", ".png"})
    detector = load_detector("yunet")
    pixels = np.empty((len(photos), size, size, 3), dtype=np.uint8)
    missed, logged = 0, time.monotonic()
    for row, path in enumerate(photos):
        with Image.open(path) as photo:
            image = np.asarray(photo.convert("RGB"), dtype=np.uint8)
        found = detector.detect(image, min_face=30, threshold=detector.default_threshold, longest_side=640)
        if len(found):
            middle = np.array([image.shape[1], image.shape[0]]) / 2
            centres = (found.boxes[:, :2] + found.boxes[:, 2:]) / 2
            nearest = int(((centres - middle) ** 2).sum(1).argmin())
            pixels[row] = five_point_crop(image, found.landmarks[nearest], size)
        else:
            missed += 1
            pixels[row] = _middle(image, size)
        if time.monotonic() - logged > SECONDS_BETWEEN_LINES:
            logged = time.monotonic()
            logger.info("crops %s/%s", row + 1, len(photos))
    return Crops(pixels, np.array([p.parent.name for p in photos], dtype=np.str_), missed)


def _middle(image: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    side = min(image.shape[:2]) * 9 // 20
    top, left = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
    part = Image.fromarray(image[top : top + side, left : left + side])
    return np.asarray(part.resize((size, size), Image.Resampling.BOX), dtype=np.uint8)
