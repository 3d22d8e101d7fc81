"""Panoramas are searched in overlapping parts: as a whole, their faces would be too small to be seen."""

from __future__ import annotations

import numpy as np

from setnet.faces.detect.detector import Detections, Detector
from setnet.faces.detect.non_maximum import non_maximum
from setnet.faces.photo.photo import LONGEST_SEARCHED
from setnet.faces.photo.resample import Pixels

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
