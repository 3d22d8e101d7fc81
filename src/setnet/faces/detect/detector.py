"""The interface of face detectors: pixels in, boxes with five landmarks and a score out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Detections:
    """Faces found in one photo, best first, in the photo's own pixels.

    Attributes
    ----------
    boxes
        (n, 4) float32: x0, y0, x1, y1.
    scores
        (n,) float32 in 0..1.
    landmarks
        (n, 5, 2) float32: the eye on the left, the other eye, nose, mouth left, mouth right.
    """

    boxes: npt.NDArray[np.float32]
    scores: npt.NDArray[np.float32]
    landmarks: npt.NDArray[np.float32]

    @classmethod
    def none(cls) -> Detections:
        """Return the detections of a photo without faces."""
        return cls(np.zeros((0, 4), np.float32), np.zeros(0, np.float32), np.zeros((0, 5, 2), np.float32))

    def __len__(self) -> int:
        return len(self.boxes)


class Detector(Protocol):
    """Finds faces; safe to call from several threads, and deterministic."""

    name: str
    default_threshold: float

    def detect(
        self, pixels: npt.NDArray[np.uint8], *, min_face: float, threshold: float, longest_side: int
    ) -> Detections:
        """Return the faces of at least `min_face` pixels and `threshold` score.

        Photos longer than `longest_side` are searched at that length; results are in the pixels given.
        """
        ...
