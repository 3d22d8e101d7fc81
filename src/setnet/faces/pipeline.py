"""From a photo to its faces: open, detect, crop, describe, measure the quality."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from setnet.errors import InvalidInputError
from setnet.faces.descriptor import Descriptor
from setnet.faces.detector import Detections, Detector, tiled_candidates
from setnet.faces.face import Box, Face, Quality, pose, sharpness
from setnet.faces.photo import Photo, open_photo
from setnet.faces.sessions import load_descriptor, load_detector
from setnet.faces.settings import FaceSettings

Image = Photo | npt.NDArray[np.uint8] | str | Path | bytes

# Enlarged this much a face is still recognised as well as from all its pixels, in LFW up to 1.4 times.
_MAX_ENLARGED = 1.25


@dataclass
class StageTimes:
    """Seconds spent in each stage, by a clock of choice; `extract_faces` adds to it."""

    decoder: float = 0.0
    detector: float = 0.0
    cropping: float = 0.0
    descriptor: float = 0.0
    clock: Callable[[], float] = field(default=time.perf_counter, repr=False)

    @contextmanager
    def spent(self, stage: str) -> Iterator[None]:
        """Add the time that the block takes to a stage."""
        began = self.clock()
        try:
            yield
        finally:
            setattr(self, stage, getattr(self, stage) + self.clock() - began)


@dataclass(frozen=True, eq=False, slots=True)
class FoundFace:
    """A face that is not described yet: its place, its quality, and the pixels to describe."""

    box: Box
    landmarks: npt.NDArray[np.float32]
    quality: Quality
    crop: npt.NDArray[np.uint8]


def extract_faces(
    image: Image, settings: FaceSettings | None = None, *, times: StageTimes | None = None
) -> list[Face]:
    """Return the faces in a photo, from left to right.

    Parameters
    ----------
    image
        An opened photo, RGB pixels (height, width, 3), or a file's path or bytes. Of a file, or of a photo
        opened with `enough`, all pixels are decoded only if a face is small.
    settings
        Which models, and which faces count.
    times
        Where to add up the seconds that each stage took.

    Raises
    ------
    PhotoError, ModelError, InvalidInputError
        When the photo cannot be opened, a model is missing or wrong, or `image` is no image.
        A photo without faces is no error.
    """
    return describe_found(find_faces(image, settings, times=times), settings, times=times)


def find_faces(
    image: Image, settings: FaceSettings | None = None, *, times: StageTimes | None = None
) -> list[FoundFace]:
    """Return the faces in a photo as `extract_faces` does, not described yet."""
    settings, times = settings or FaceSettings(), times or StageTimes()
    with times.spent("decoder"):
        photo = _open(image, settings)
    detector, descriptor = load_detector(settings.detector), load_descriptor(settings.descriptor)
    photo, found = _detect(photo, detector, descriptor, settings, times)
    with times.spent("cropping"):
        found, qualities = _good_enough(photo, found, settings)
        crops = descriptor.crops(photo.pixels, found)
    found = found.scale(photo.reduction)
    return [
        FoundFace(Box(*box), landmarks, quality, crop)
        for box, landmarks, quality, crop in zip(
            found.boxes.tolist(), found.landmarks, qualities, crops, strict=True
        )
    ]


def describe_found(
    found: Sequence[FoundFace], settings: FaceSettings | None = None, *, times: StageTimes | None = None
) -> list[Face]:
    """Return faces with their descriptors; the settings are those that they were found with."""
    settings, times = settings or FaceSettings(), times or StageTimes()
    with times.spent("descriptor"):
        descriptors = load_descriptor(settings.descriptor).describe([face.crop for face in found])
    return [
        Face(face.box, face.landmarks, face.quality.score, face.quality, vector)
        for face, vector in zip(found, descriptors, strict=True)
    ]


def describe_faces(
    image: Image,
    boxes: npt.ArrayLike,
    landmarks: npt.ArrayLike,
    settings: FaceSettings | None = None,
) -> npt.NDArray[np.float32]:
    """Return the descriptors of faces that were found before, (n, dim), without looking for them again.

    Parameters
    ----------
    image
        The photo, as for `extract_faces`.
    boxes, landmarks
        (n, 4) and (n, 5, 2) in pixels of the upright photo, as in `Face`.
    settings
        Which descriptor; what it says about finding faces does not matter.
    """
    settings = settings or FaceSettings()
    photo, descriptor = _open(image, settings), load_descriptor(settings.descriptor)
    places = np.asarray(boxes, np.float32).reshape(-1, 4)
    points = np.asarray(landmarks, np.float32).reshape(-1, 5, 2)
    known = Detections(places, np.ones(len(places), np.float32), points)
    if len(places) != len(points):
        raise InvalidInputError(f"{len(places)} boxes and {len(points)} landmarks are not of the same faces")
    found = known.scale(1 / photo.reduction)
    if photo.reduction > 1 and (descriptor.enlargement(found) > _MAX_ENLARGED).any():
        photo = photo.in_full()
        found = known.scale(1 / photo.reduction)
    return descriptor.describe(descriptor.crops(photo.pixels, found))


def _detect(
    photo: Photo, detector: Detector, descriptor: Descriptor, settings: FaceSettings, times: StageTimes
) -> tuple[Photo, Detections]:
    """Return the faces, and the photo in whose pixels they are: in full if a face was small in the given."""
    threshold = detector.default_threshold if settings.threshold is None else settings.threshold
    lowest = threshold if photo.reduction == 1 else threshold * detector.candidate_share
    with times.spent("detector"):
        candidates = tiled_candidates(
            detector,
            photo.pixels,
            min_face=settings.min_face / photo.reduction,
            threshold=lowest,
            longest_side=settings.longest_side,
        )
        found = detector.confirm(photo.pixels, candidates, lowest)
    if photo.reduction > 1 and (descriptor.enlargement(found) > _MAX_ENLARGED).any():
        with times.spent("decoder"):
            full = photo.in_full()
        with times.spent("detector"):
            larger = candidates.scale(photo.reduction / full.reduction)
            return full, detector.confirm(full.pixels, larger, threshold)
    return photo, found.only(found.scores > threshold)


def _good_enough(photo: Photo, found: Detections, settings: FaceSettings) -> tuple[Detections, list[Quality]]:
    """Return the faces that meet the settings, from left to right, with their quality."""
    kept: list[int] = []
    qualities: list[Quality] = []
    centres = found.boxes[:, :2] + found.boxes[:, 2:]
    for i in np.lexsort((centres[:, 1], centres[:, 0])):
        x0, y0, x1, y1 = found.boxes[i].tolist()
        size = (max(x1 - x0, 0.0) * max(y1 - y0, 0.0)) ** 0.5 * photo.reduction
        if size < settings.min_face:
            continue
        yaw, pitch, roll = pose(found.landmarks[i])
        sharp = sharpness(photo.pixels, found.landmarks[i])
        if sharp < settings.min_sharpness or abs(yaw) > settings.max_turn:
            continue
        kept.append(int(i))
        qualities.append(Quality(size, float(found.scores[i]), sharp, yaw, pitch, roll))
    return found.only(kept), qualities


def _open(image: Image, settings: FaceSettings) -> Photo:
    if isinstance(image, str | Path | bytes):
        return open_photo(image, max_pixels=settings.max_pixels, enough=settings.longest_side)
    pixels = image.pixels if isinstance(image, Photo) else image
    if not isinstance(pixels, np.ndarray) or pixels.ndim != 3 or pixels.shape[2] != 3:
        shape = getattr(pixels, "shape", type(pixels).__name__)
        raise InvalidInputError(f"an image is RGB pixels of shape (height, width, 3), not {shape}")
    if pixels.dtype != np.uint8:
        raise InvalidInputError(f"an image holds uint8 values 0 to 255, not {pixels.dtype}")
    if pixels.size == 0:
        raise InvalidInputError(f"an image of shape {pixels.shape} has no pixels")
    if isinstance(image, Photo):
        return image
    return Photo(np.ascontiguousarray(pixels), None, pixels.shape[1], pixels.shape[0], "pixels")
