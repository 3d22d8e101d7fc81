"""A face as it was found: its box, landmarks and score, how good it is to describe, and its descriptor."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from setnet.faces.align import five_point_crop

# Proportions of an average head, in distances between the eyes: how far the nose's tip stands out
# in front of them, and how far below them the mouth is. The nose halves that way when seen frontally.
_NOSE_OUT, _EYES_TO_MOUTH, _NOSE_DOWN = 0.55, 1.15, 0.495


def pose(landmarks: npt.NDArray[np.float32]) -> tuple[float, float, float]:
    """Return estimates of yaw, pitch and roll in degrees from the five landmarks.

    The nose's tip lies in front of the plane of eyes and mouth, so that turning the head moves it
    sideways by the tangent of the angle; nodding moves it up or down likewise.
    """
    left, right, nose, mouth_left, mouth_right = np.asarray(landmarks, np.float64)
    across = right - left
    roll = math.atan2(across[1], across[0])
    turn_back = np.array([[math.cos(roll), math.sin(roll)], [-math.sin(roll), math.cos(roll)]])
    eyes, mouth = (left + right) / 2, (mouth_left + mouth_right) / 2
    tip, down = turn_back @ (nose - eyes), turn_back @ (mouth - eyes)
    between_eyes, to_mouth = max(float(np.hypot(*across)), 1e-6), max(float(down[1]), 1e-6)
    # The middle line of a face runs from between the eyes to the mouth, not straight down.
    aside = tip[0] - down[0] * tip[1] / to_mouth
    yaw = math.atan(aside / between_eyes / _NOSE_OUT)
    pitch = -math.atan((tip[1] / to_mouth - _NOSE_DOWN) * _EYES_TO_MOUTH / _NOSE_OUT)
    return math.degrees(yaw), math.degrees(pitch), math.degrees(roll)


def sharpness(pixels: npt.NDArray[np.uint8], landmarks: npt.NDArray[np.float32]) -> float:
    """Return the share of the aligned face's contrast that is fine detail.

    Faces that are blurred, or so small that the crop had to be enlarged, have little of it; light
    and contrast do not matter.
    """
    import cv2

    grey = cv2.cvtColor(five_point_crop(pixels, landmarks), cv2.COLOR_RGB2GRAY).astype(np.float32)
    face = grey[16:96, 16:96]  # without the corners, which show the background
    contrast = float(face.std())
    if contrast < 1.0:
        return 0.0
    return float((face - cv2.GaussianBlur(face, (0, 0), 1.5)).std()) / contrast


class Box(NamedTuple):
    """A rectangle in pixels of the upright photo; it may reach over the photo's edge.

    >>> Box(10, 20, 30, 60).width, Box(10, 20, 30, 60).height
    (20, 40)
    """

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        """The horizontal side."""
        return self.x1 - self.x0

    @property
    def height(self) -> float:
        """The vertical side."""
        return self.y1 - self.y0

    def overlap(self, other: Box) -> float:
        """Return the intersection with another box over their union.

        >>> Box(0, 0, 2, 2).overlap(Box(1, 0, 3, 2)), Box(0, 0, 1, 1).overlap(Box(5, 5, 6, 6))
        (0.3333333333333333, 0.0)
        """
        width = min(self.x1, other.x1) - max(self.x0, other.x0)
        height = min(self.y1, other.y1) - max(self.y0, other.y0)
        if width <= 0 or height <= 0:
            return 0.0
        both = width * height
        return both / (self.width * self.height + other.width * other.height - both)


@dataclass(frozen=True)
class Quality:
    """How well a face can be recognised.

    Attributes
    ----------
    size
        Side in photo pixels of a square as large as the face's box.
    score
        The detector's, 0 to 1.
    sharpness
        Share of fine detail in the aligned face, about 0.05 (blurred) to 0.3 (crisp).
    yaw, pitch, roll
        Estimate in degrees from the landmarks; right, up and clockwise in the photo are positive.
    """

    size: float
    score: float
    sharpness: float
    yaw: float
    pitch: float
    roll: float


@dataclass(frozen=True, eq=False)
class Face:
    """A face: where it is, how good it is, and its descriptor.

    Attributes
    ----------
    landmarks
        (5, 2) float32: the eye on the photo's left, the other eye, nose, mouth left, right.
    descriptor
        (dim,) float32 of length 1.
    """

    box: Box
    landmarks: npt.NDArray[np.float32]
    score: float
    quality: Quality
    descriptor: npt.NDArray[np.float32]

    def to_dict(self) -> dict[str, Any]:
        """Return place and quality as values that JSON can hold."""
        return {
            "box": [round(float(v), 1) for v in self.box],
            "score": round(float(self.score), 4),
            "quality": {name: round(float(value), 4) for name, value in asdict(self.quality).items()},
        }
