"""Edited copies of photos, as people and agencies make them: resized, cropped, recoloured, mirrored."""

from __future__ import annotations

import math
from collections.abc import Callable

import cv2
import numpy as np
from numpy.typing import NDArray

Pixels = NDArray[np.uint8]
_WORDS = ("BREAKING NEWS", "(c) photo desk", "SAMPLE", "12 May, 18:30")


def _resized(photo: Pixels, rng: np.random.Generator) -> Pixels:
    scale = math.exp(rng.uniform(math.log(0.4), math.log(2.0)))
    way = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(photo, None, fx=scale, fy=scale, interpolation=way), np.uint8)


def _cropped(photo: Pixels, rng: np.random.Generator, share: float) -> Pixels:
    """Cut away a share of the width and of the height, at random sides."""
    height, width = photo.shape[:2]
    rows, columns = round(height * (1 - share)), round(width * (1 - share))
    top, left = rng.integers(0, height - rows + 1), rng.integers(0, width - columns + 1)
    return photo[top : top + rows, left : left + columns]


def _colours(photo: Pixels, rng: np.random.Generator) -> Pixels:
    light = (photo / 255.0) ** rng.uniform(0.6, 1.6) * rng.uniform(0.75, 1.25, 3)
    grey = light.mean(axis=2, keepdims=True)
    light = grey + (light - grey) * rng.choice([0.0, 0.5, 1.5])  # black and white, pale, garish
    return np.asarray(np.clip(light, 0, 1) * 255, np.uint8)


def _text(photo: Pixels, rng: np.random.Generator) -> Pixels:
    """Lay a banner with words over the photo, a seventh of its height."""
    copy = photo.copy()
    height, width = copy.shape[:2]
    top = int(height * rng.uniform(0.05, 0.8))
    cv2.rectangle(copy, (0, top), (width, top + height // 7), rng.integers(0, 256, 3).tolist(), -1)
    words, white = str(rng.choice(_WORDS)), (255, 255, 255)
    place = (width // 20, top + height // 9)
    cv2.putText(copy, words, place, cv2.FONT_HERSHEY_SIMPLEX, width / 300, white, max(1, width // 150))
    return copy


def _mirrored(photo: Pixels, rng: np.random.Generator) -> Pixels:
    return photo[:, ::-1]


def _combined(photo: Pixels, rng: np.random.Generator) -> Pixels:
    return _jpeg(_colours(_cropped(_resized(photo, rng), rng, 0.1), rng), 50)


def _jpeg(photo: Pixels, quality: int) -> Pixels:
    _, data = cv2.imencode(".jpg", photo[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    decoded = cv2.imdecode(data, cv2.IMREAD_COLOR)
    assert decoded is not None  # it was encoded a line above
    return np.asarray(decoded[..., ::-1], np.uint8)


ALTERATIONS: dict[str, Callable[[Pixels, np.random.Generator], Pixels]] = {
    "resized": _resized,
    "cropped by 5 %": lambda photo, rng: _cropped(photo, rng, 0.05),
    "cropped by 10 %": lambda photo, rng: _cropped(photo, rng, 0.1),
    "cropped by 20 %": lambda photo, rng: _cropped(photo, rng, 0.2),
    "JPEG quality 30": lambda photo, rng: _jpeg(photo, 30),
    "colours": _colours,
    "text laid over": _text,
    "mirrored": _mirrored,
    "mirrored, cropped by 10 %": lambda photo, rng: _cropped(photo[:, ::-1], rng, 0.1),
    "resized, cropped, colours, JPEG": _combined,
}


def altered(photo: Pixels, kind: str, seed: int) -> Pixels:
    """Return an altered copy of an RGB photo, `kind` being one of `ALTERATIONS`; one seed, one copy."""
    rng = np.random.default_rng((seed, list(ALTERATIONS).index(kind)))
    return np.ascontiguousarray(ALTERATIONS[kind](photo, rng))
