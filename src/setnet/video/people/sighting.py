"""A face at one look of a video."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, radians

from setnet.faces import Face

_FULL_SIZE = 112.0  # pixels: the descriptor sees no more of a larger face
_CRISP = 0.15  # sharpness from which a face is as good as any


@dataclass(frozen=True, slots=True)
class Sighting:
    """A face that was seen at a time of a video, in seconds."""

    time: float
    face: Face

    @property
    def weight(self) -> float:
        """How much the face tells of a person, 0 to 1: large, sharp and seen from the front tells most."""
        quality = self.face.quality
        size = min(1.0, quality.size / _FULL_SIZE)
        sharp = min(1.0, quality.sharpness / _CRISP)
        front = max(0.1, cos(radians(min(abs(quality.yaw), 90.0))))
        return max(0.01, size * (0.2 + 0.8 * sharp) * front * max(quality.score, 0.1))
