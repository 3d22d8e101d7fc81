"""YuNet (Wu et al. 2023), a very small face detector: one network, which also places the landmarks."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from setnet.faces.detector import Detections, Detector, non_maximum
from setnet.faces.pixels import Pixels, resize

Floats = npt.NDArray[np.float32]

_SMALLEST = 10.0  # pixels in the searched image, the limit its authors state
_OVERLAP = 0.3  # OpenCV's default, as is the threshold below
_STRIDES = (8, 16, 32)  # it answers on three grids of so many pixels a cell
_OUTPUTS = [f"{part}_{stride}" for stride in _STRIDES for part in ("cls", "obj", "bbox", "kps")]


class YuNet(Detector):
    """YuNet over an onnxruntime session that takes images of any size."""

    name = "yunet"
    default_threshold = 0.7

    def __init__(self, session: Any) -> None:
        self._session = session

    def candidates(
        self, pixels: Pixels, *, min_face: float, threshold: float, longest_side: int
    ) -> Detections:
        """Return the faces found; see `Detector.candidates`."""
        # Twice the smallest face it can see is enough for `min_face`; more would cost time for nothing.
        shrink = min(1.0, longest_side / max(pixels.shape[:2]), 2 * _SMALLEST / min_face)
        return self.find_at(shrink, pixels, threshold)

    def confirm(self, pixels: Pixels, candidates: Detections, threshold: float) -> Detections:
        """Return the candidates: there is no second network."""
        return candidates.only(candidates.scores >= threshold)

    def find_at(self, shrink: float, pixels: Pixels, threshold: float) -> Detections:
        """Return the faces in a photo searched at `shrink` times its size, in the pixels given."""
        rows, columns = pixels.shape[:2]
        width, height = max(1, round(columns * shrink)), max(1, round(rows * shrink))
        if min(width, height) < _SMALLEST:
            return Detections.none()
        image = _pad(resize(pixels, width, height))
        answers = self._session.run(_OUTPUTS, {"input": image})
        grids = [
            _above(threshold, stride, image.shape[3] // stride, *(a[0] for a in answers[4 * i : 4 * i + 4]))
            for i, stride in enumerate(_STRIDES)
        ]
        boxes, landmarks = (np.concatenate(parts) for parts in zip(*grids, strict=True))
        keep = non_maximum(boxes, _OVERLAP)
        scale = np.array([columns / width, rows / height], np.float32)
        return Detections(boxes[keep, :4] * np.tile(scale, 2), boxes[keep, 4], landmarks[keep] * scale)


def _pad(pixels: Pixels) -> Floats:
    """Return the image as a batch of one, blue first, black below and to the right up to whole cells."""
    rows, columns = (-(-side // _STRIDES[-1]) * _STRIDES[-1] for side in pixels.shape[:2])
    image = np.zeros((1, 3, rows, columns), np.float32)
    image[0, :, : pixels.shape[0], : pixels.shape[1]] = pixels[..., ::-1].transpose(2, 0, 1)
    return image


def _above(
    threshold: float,
    stride: int,
    columns: int,
    face: Floats,
    objectness: Floats,
    sides: Floats,
    points: Floats,
) -> tuple[Floats, Floats]:
    """Return the rows x0, y0, x1, y1, score of a grid's cells above the threshold, and their landmarks."""
    scores = np.sqrt(np.clip(face[:, 0], 0, 1) * np.clip(objectness[:, 0], 0, 1))
    cells = np.flatnonzero(scores >= threshold)
    corners = np.stack([cells % columns, cells // columns], axis=1).astype(np.float32)
    centres, halves = corners + sides[cells, :2], np.exp(sides[cells, 2:]) / 2
    boxes = np.concatenate([centres - halves, centres + halves], axis=1) * stride
    landmarks = (corners[:, None] + points[cells].reshape(-1, 5, 2)) * stride
    return np.concatenate([boxes, scores[cells, None]], axis=1), landmarks.astype(np.float32)
