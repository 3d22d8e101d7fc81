"""What every detector is, and how a large photo is searched in tiles."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from setnet.faces.photo import LONGEST_SEARCHED
from setnet.faces.pixels import Pixels

_BLOCK = 64  # boxes that are compared with all others at once


def non_maximum(
    boxes: npt.NDArray[np.float32], overlap: float, of_smaller: bool = False
) -> npt.NDArray[np.intp]:
    """Return which rows (x0, y0, x1, y1, score) to keep, best first.

    A box goes when it shares more than `overlap` of the union (or, `of_smaller`, of the smaller
    box) with a better one.

    >>> non_maximum(np.array([[0, 0, 4, 4, 0.6], [0, 0, 4, 5, 0.9], [9, 9, 12, 12, 0.7]]), 0.5)
    array([1, 2])
    """
    x0, y0, x1, y1 = boxes[:, :4].T
    areas = np.maximum(x1 - x0, 0) * np.maximum(y1 - y0, 0)
    left = np.argsort(-boxes[:, 4], kind="stable")
    kept = [left[:0]]
    while left.size:
        best = left[:_BLOCK, None]
        width = np.minimum(x1[best], x1[left]) - np.maximum(x0[best], x0[left])
        height = np.minimum(y1[best], y1[left]) - np.maximum(y0[best], y0[left])
        shared = np.maximum(width, 0) * np.maximum(height, 0)
        limit = np.minimum(areas[best], areas[left]) if of_smaller else areas[best] + areas[left] - shared
        stays, apart = np.ones(len(left), bool), shared <= overlap * limit
        for row in range(len(best)):
            if stays[row]:
                stays[row + 1 :] &= apart[row, row + 1 :]
        kept.append(left[:_BLOCK][stays[:_BLOCK]])
        left = left[_BLOCK:][stays[_BLOCK:]]
    return np.concatenate(kept)


_SAME = 0.5  # share of the union from which boxes of two parts are one face


def tiled_candidates(
    detector: Detector, pixels: Pixels, *, min_face: float, threshold: float, longest_side: int
) -> Detections:
    """Return what may be faces, as `Detector.candidates` does, also in photos much longer than wide.

    Parts of a panorama overlap by half of its shorter side, so that a smaller face is whole in one of them;
    larger ones are found in the photo as a whole.
    """

    def candidates(part: Pixels) -> Detections:
        return detector.candidates(part, min_face=min_face, threshold=threshold, longest_side=longest_side)

    found = [candidates(pixels)]
    for x, y, part in _parts(pixels):
        here = candidates(part)
        place = np.array([x, y], np.float32)
        found.append(Detections(here.boxes + np.tile(place, 2), here.scores, here.landmarks + place))
    if len(found) == 1:
        return found[0]
    boxes, scores, landmarks = (
        np.concatenate([getattr(part, name) for part in found]) for name in ("boxes", "scores", "landmarks")
    )
    together = Detections(boxes, scores, landmarks)
    return together.only(non_maximum(np.concatenate([boxes, scores[:, None]], axis=1), _SAME))


def _parts(pixels: Pixels) -> list[tuple[int, int, Pixels]]:
    """Return the parts of a panorama with their places; none of a photo of a common shape."""
    rows, columns = pixels.shape[:2]
    short, long = sorted((rows, columns))
    if long <= LONGEST_SEARCHED * short:
        return []
    length, step = 2 * short, max(1, short * 3 // 2)
    starts = [*range(0, long - length, step), long - length]
    if columns > rows:
        return [(at, 0, np.ascontiguousarray(pixels[:, at : at + length])) for at in starts]
    return [(0, at, pixels[at : at + length]) for at in starts]


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

    def scale(self, factor: float) -> Detections:
        """Return the faces in the pixels of a copy of the photo that is `factor` times larger."""
        return Detections(self.boxes * np.float32(factor), self.scores, self.landmarks * np.float32(factor))


class Detector(ABC):
    """Finds faces in two steps; safe to call from several threads, and deterministic.

    The first step searches the whole photo, which it may do on a smaller copy. The second looks at what was
    found, for which it may be given a larger copy.
    """

    name: str
    default_threshold: float
    candidate_share: float = 1.0
    """Share of the threshold from which a candidate may be a face when it is looked at in more pixels."""

    @abstractmethod
    def candidates(
        self, pixels: Pixels, *, min_face: float, threshold: float, longest_side: int
    ) -> Detections:
        """Return what may be faces of at least `min_face` pixels; see `detect`."""

    @abstractmethod
    def confirm(self, pixels: Pixels, candidates: Detections, threshold: float) -> Detections:
        """Return the candidates that are faces, placed exactly in these pixels."""

    def detect(self, pixels: Pixels, *, min_face: float, threshold: float, longest_side: int) -> Detections:
        """Return the faces of at least `min_face` pixels and `threshold` score.

        Photos longer than `longest_side` are searched at that length; results are in the pixels given.
        """
        found = self.candidates(pixels, min_face=min_face, threshold=threshold, longest_side=longest_side)
        return self.confirm(pixels, found, threshold)
