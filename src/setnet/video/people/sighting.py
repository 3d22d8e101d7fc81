"""A face at one look of a video."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, radians

from setnet.faces import Face, Quality

_FULL_SIZE = 112.0  # pixels: the descriptor sees no more of a larger face
_CRISP = 0.15  # sharpness from which a face is as good as any


@dataclass(frozen=True, slots=True)
class Sighting:
    """A face that was seen at a time of a video, in seconds.

    Unless it `is_described`, its descriptor is that of a better picture of the face, just before or after.
    """

    time: float
    face: Face
    is_described: bool = True

    @property
    def weight(self) -> float:
        """How much the face tells of a person, 0 to 1."""
        return face_weight(self.face.quality)


def face_weight(quality: Quality) -> float:
    """Return how much a face tells of a person, 0 to 1: large, sharp and seen from the front tells most."""
    size = min(1.0, quality.size / _FULL_SIZE)
    sharp = min(1.0, quality.sharpness / _CRISP)
    front = max(0.1, cos(radians(min(abs(quality.yaw), 90.0))))
    return max(0.01, size * (0.2 + 0.8 * sharp) * front * max(quality.score, 0.1))
