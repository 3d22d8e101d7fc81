"""A face found in a photo: its place, quality and descriptor."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


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
