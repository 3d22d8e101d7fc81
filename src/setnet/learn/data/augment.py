"""Face crops for a backbone: scaled and cropped, and in training rotated and flipped (section 3.4)."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from setnet.learn.models.backbones.backbone import InputSpec
from setnet.learn.training.training_settings import AugmentSettings

Pixels = NDArray[np.uint8]


def random_crop(
    pixels: Pixels, spec: InputSpec, settings: AugmentSettings, rng: np.random.Generator
) -> Pixels:
    """Return a training crop: scaled to `short_side`, rotated, a random square of it, flipped."""
    height, width = pixels.shape[:2]
    scale = settings.short_side / min(height, width)
    room_x, room_y = width * scale - spec.size, height * scale - spec.size
    left, top = rng.uniform(0, max(room_x, 0)), rng.uniform(0, max(room_y, 0))
    angle = rng.uniform(-settings.rotation, settings.rotation)
    flip = settings.flip and rng.random() < 0.5
    return _warp(pixels, spec.size, scale, left, top, angle, flip)


def centre_crop(pixels: Pixels, spec: InputSpec) -> Pixels:
    """Return the test crop: short side to the spec's size, the central square."""
    height, width = pixels.shape[:2]
    scale = spec.size / min(height, width)
    left, top = (width * scale - spec.size) / 2, (height * scale - spec.size) / 2
    return _warp(pixels, spec.size, scale, left, top, 0.0, False)


def _warp(
    pixels: Pixels, size: int, scale: float, left: float, top: float, angle: float, flip: bool
) -> Pixels:
    # One interpolation does it all; a strong reduction is averaged first, or it would alias.
    if scale < 0.5:
        shrink = (max(size, round(pixels.shape[1] * scale)), max(size, round(pixels.shape[0] * scale)))
        scale *= pixels.shape[1] / shrink[0]
        pixels = np.asarray(cv2.resize(pixels, shrink, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    height, width = pixels.shape[:2]
    matrix = cv2.getRotationMatrix2D(((width - 1) / 2, (height - 1) / 2), angle, scale)
    # Rotation about the centre keeps it in place; scaling must keep the corner instead.
    matrix[:, 2] += (np.array([width - 1, height - 1]) / 2) * (scale - 1) - np.array([left, top])
    if flip:
        matrix[0] = -matrix[0]
        matrix[0, 2] += size - 1
    out = cv2.warpAffine(
        pixels, matrix, (size, size), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT_101
    )
    return np.asarray(out, dtype=np.uint8)
