"""The interface of face detectors: pixels in, boxes with five landmarks and a score out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setnet.faces.photo.resample import Pixels


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

    def only(self, rows: npt.ArrayLike) -> Detections:
        """Return some of the faces, by number or by a mask."""
        chosen = np.asarray(rows)
        chosen = chosen if chosen.size else np.zeros(0, np.intp)
        return Detections(self.boxes[chosen], self.scores[chosen], self.landmarks[chosen])

    def scaled(self, factor: float) -> Detections:
        """Return the faces in the pixels of a copy of the photo that is `factor` times larger."""
        return Detections(self.boxes * np.float32(factor), self.scores, self.landmarks * np.float32(factor))


class Detector(ABC):
    """Finds faces in two steps; safe to call from several threads, and deterministic.

    The first step searches the whole photo, which it may do on a smaller copy. The second looks at what was
    found, for which it may be given a larger copy.
    """

    name: str
    default_threshold: float
    perhaps: float = 1.0
    """Share of the threshold from which a candidate may be a face when it is looked at in more pixels."""

    @abstractmethod
    def candidates(
        self, pixels: Pixels, *, min_face: float, threshold: float, longest_side: int
    ) -> Detections:
        """Return what may be faces of at least `min_face` pixels; see `detect`."""

    @abstractmethod
    def confirmed(self, pixels: Pixels, candidates: Detections, threshold: float) -> Detections:
        """Return the candidates that are faces, placed exactly in these pixels."""

    def detect(self, pixels: Pixels, *, min_face: float, threshold: float, longest_side: int) -> Detections:
        """Return the faces of at least `min_face` pixels and `threshold` score.

        Photos longer than `longest_side` are searched at that length; results are in the pixels given.
        """
        found = self.candidates(pixels, min_face=min_face, threshold=threshold, longest_side=longest_side)
        return self.confirmed(pixels, found, threshold)
