"""From a photo to its faces: open, detect, crop, describe, measure the quality."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setnet.errors import InvalidInputError
from setnet.faces.describe.quality import pose, sharpness
from setnet.faces.detect.detector import Detections
from setnet.faces.face import Box, Face, Quality
from setnet.faces.face_settings import FaceSettings
from setnet.faces.photo.photo import Photo, open_photo
from setnet.faces.registry.loading import load_descriptor, load_detector

Image = Photo | npt.NDArray[np.uint8] | str | Path | bytes


@dataclass
class StageTimes:
    """Seconds spent in the two models; `faces_of` adds to it."""

    detector: float = 0.0
    descriptor: float = 0.0


def faces_of(
    image: Image, settings: FaceSettings | None = None, *, times: StageTimes | None = None
) -> list[Face]:
    """Return the faces in a photo, from left to right.

    Parameters
    ----------
    image
        An opened photo, RGB pixels (height, width, 3), or a file's path or bytes.
    settings
        Which models, and which faces count.
    times
        Where to add up the seconds the models took.

    Raises
    ------
    PhotoError, ModelError, InvalidInputError
        When the photo cannot be opened, a model is missing or wrong, or `image` is no image.
        A photo without faces is no error.
    """
    settings = settings or FaceSettings()
    times = times if times is not None else StageTimes()
    pixels = _pixels(image, settings)
    detector, descriptor = load_detector(settings.detector), load_descriptor(settings.descriptor)
    began = time.perf_counter()
    found = detector.detect(
        pixels,
        min_face=settings.min_face,
        threshold=detector.default_threshold if settings.threshold is None else settings.threshold,
        longest_side=settings.longest_side,
    )
    times.detector += time.perf_counter() - began
    found, qualities = _good_enough(pixels, found, settings)
    crops = descriptor.crops(pixels, found)
    began = time.perf_counter()
    descriptors = descriptor.describe(crops)
    times.descriptor += time.perf_counter() - began
    return [
        Face(Box(*box), landmarks, quality.score, quality, vector)
        for box, landmarks, quality, vector in zip(
            found.boxes.tolist(), found.landmarks, qualities, descriptors, strict=True
        )
    ]


def _good_enough(
    pixels: npt.NDArray[np.uint8], found: Detections, settings: FaceSettings
) -> tuple[Detections, list[Quality]]:
    """Return the faces that meet the settings, from left to right, with their quality."""
    kept: list[int] = []
    qualities: list[Quality] = []
    centres = found.boxes[:, :2] + found.boxes[:, 2:]
    for i in np.lexsort((centres[:, 1], centres[:, 0])):
        x0, y0, x1, y1 = found.boxes[i].tolist()
        size = (max(x1 - x0, 0.0) * max(y1 - y0, 0.0)) ** 0.5
        if size < settings.min_face:
            continue
        yaw, pitch, roll = pose(found.landmarks[i])
        sharp = sharpness(pixels, found.landmarks[i])
        if sharp < settings.min_sharpness or abs(yaw) > settings.max_turn:
            continue
        kept.append(int(i))
        qualities.append(Quality(size, float(found.scores[i]), sharp, yaw, pitch, roll))
    return Detections(found.boxes[kept], found.scores[kept], found.landmarks[kept]), qualities


def _pixels(image: Image, settings: FaceSettings) -> npt.NDArray[np.uint8]:
    if isinstance(image, str | Path | bytes):
        image = open_photo(image, max_pixels=settings.max_pixels)
    pixels = image.pixels if isinstance(image, Photo) else image
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 3 or pixels.shape[2] != 3:
        shape = getattr(pixels, "shape", type(pixels).__name__)
        raise InvalidInputError(f"an image is RGB pixels of shape (height, width, 3), not {shape}")
    if pixels.dtype != np.uint8:
        raise InvalidInputError(f"an image holds uint8 values 0 to 255, not {pixels.dtype}")
    if pixels.size == 0:
        raise InvalidInputError(f"an image of shape {pixels.shape} has no pixels")
    return np.ascontiguousarray(pixels)
