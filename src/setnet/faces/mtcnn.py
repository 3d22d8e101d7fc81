"""MTCNN, the paper's face detector (Zhang et al. 2016): three small networks, each pruning the last."""

from __future__ import annotations

import math
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from setnet.faces.detector import Detections, Detector, non_maximum
from setnet.faces.pixels import Pixels, crop_pixels, resize

Floats = npt.NDArray[np.float32]

_CELL, _STRIDE = 12, 2  # P-Net sees 12 x 12 pixels and moves by 2
_FACTOR = 0.709  # between pyramid levels: half the area each, as published
_SMALLEST = 20.0  # in the searched image; below it P-Net finds mostly noise
_PORTION = 128  # boxes looked at in one run
_STRIP = 32  # columns of a level that P-Net answers in one run: what it computes then stays in the cache
_PROPOSE, _REFINE = 0.6, 0.7  # published score thresholds of P-Net and R-Net


class Mtcnn(Detector):
    """MTCNN over three onnxruntime sessions (P-Net, R-Net, O-Net)."""

    name = "mtcnn"
    default_threshold = 0.7
    candidate_share = 0.75

    def __init__(self, pnet: Any, rnet: Any, onet: Any) -> None:
        self._pnet, self._rnet, self._onet = pnet, rnet, onet

    def candidates(
        self, pixels: Pixels, *, min_face: float, threshold: float, longest_side: int
    ) -> Detections:
        """Return what the first two networks take for faces; see `Detector.candidates`."""
        rows, columns = pixels.shape[:2]
        shrink = min(1.0, longest_side / max(rows, columns))
        searched = resize(pixels, max(1, round(columns * shrink)), max(1, round(rows * shrink)))
        boxes = self._proposals(searched, max(_SMALLEST, min_face * shrink))
        boxes = self._refine(searched, boxes)
        boxes[:, :4] /= np.float32(shrink)
        return without_landmarks(boxes)

    def confirm(self, pixels: Pixels, candidates: Detections, threshold: float) -> Detections:
        """Return the faces by the last network, which looks at the photo itself and not at a smaller copy."""
        return confirm_by_onet(self._onet, pixels, candidates, threshold)

    def _proposals(self, pixels: Pixels, min_face: float) -> Floats:
        rows, columns = pixels.shape[:2]
        found = [np.zeros((0, 5), np.float32)]
        scale = _CELL / min_face
        while min(rows, columns) * scale >= _CELL:
            level = resize(pixels, math.ceil(columns * scale), math.ceil(rows * scale))
            boxes = self._windows(level, scale)
            found.append(boxes[non_maximum(boxes, 0.5)])
            scale *= _FACTOR
        boxes = np.concatenate(found)
        return square(boxes[non_maximum(boxes, 0.7)])

    def _windows(self, level: Pixels, scale: float) -> Floats:
        """Return P-Net's windows above its threshold as rows x0, y0, x1, y1, score in image pixels."""
        import cv2

        turned = cast(Pixels, cv2.transpose(level))
        shared = _CELL - _STRIDE  # columns of two strips; one more makes a column of windows
        starts = range(0, len(turned) - shared, _STRIP)
        answers = [_run(self._pnet, turned[None, left : left + _STRIP + shared]) for left in starts]
        offsets, scores = (
            np.concatenate([part[0] for part in parts]) for parts in zip(*answers, strict=True)
        )
        x, y = np.nonzero(scores[..., 1] > _PROPOSE)
        corners = np.stack([x, y, x, y], axis=1) * float(_STRIDE)
        corners[:, 2:] += _CELL
        boxes = np.concatenate([corners / scale, scores[x, y, 1:]], axis=1).astype(np.float32)
        return move_boxes(boxes, offsets[x, y])

    def _refine(self, pixels: Pixels, boxes: Floats) -> Floats:
        if len(boxes) == 0:
            return boxes
        offsets, scores = run_on_boxes(self._rnet, pixels, boxes, 24)
        boxes[:, 4] = scores[:, 1]
        keep = np.flatnonzero(boxes[:, 4] > _REFINE)
        boxes = move_boxes(boxes[keep], offsets[keep])
        return square(boxes[non_maximum(boxes, 0.7)])


def without_landmarks(boxes: Floats) -> Detections:
    """Return rows x0, y0, x1, y1, score as detections whose landmarks are not known yet."""
    return Detections(boxes[:, :4], boxes[:, 4], np.zeros((len(boxes), 5, 2), np.float32))


def confirm_by_onet(onet: Any, pixels: Pixels, candidates: Detections, threshold: float) -> Detections:
    """Return the candidates that O-Net takes for faces, with its boxes, scores and landmarks."""
    if len(candidates) == 0:
        return Detections.none()
    boxes = np.concatenate([candidates.boxes, candidates.scores[:, None]], axis=1)
    offsets, points, scores = run_on_boxes(onet, pixels, boxes, 48)
    boxes[:, 4] = scores[:, 1]
    keep = np.flatnonzero(boxes[:, 4] > threshold)
    boxes, points = boxes[keep], points[keep]
    # Landmarks come as x1..x5, y1..y5, as fractions of the box before its last move.
    sides = boxes[:, 2:4] - boxes[:, :2]
    landmarks = boxes[:, None, :2] + points.reshape(-1, 2, 5).transpose(0, 2, 1) * sides[:, None]
    boxes = move_boxes(boxes, offsets[keep])
    keep = non_maximum(boxes, 0.7, of_smaller=True)
    return Detections(boxes[keep, :4], boxes[keep, 4], landmarks[keep].astype(np.float32))


def move_boxes(boxes: Floats, offsets: Floats) -> Floats:
    """Return the boxes with their corners shifted by `offsets`, fractions of the box's sides."""
    sides = boxes[:, 2:4] - boxes[:, :2]
    moved = boxes.copy()
    moved[:, :4] += offsets * np.concatenate([sides, sides], axis=1)
    return moved


def square(boxes: Floats) -> Floats:
    """Return the boxes as squares around the same centre, as wide as their longer side."""
    centre = (boxes[:, :2] + boxes[:, 2:4]) / 2
    half = (boxes[:, 2:4] - boxes[:, :2]).max(axis=1, keepdims=True, initial=1) / 2
    return np.concatenate([centre - half, centre + half, boxes[:, 4:]], axis=1)


def run_on_boxes(network: Any, pixels: Pixels, boxes: Floats, size: int) -> list[Floats]:
    """Return the network's answers for all boxes; a crowd goes in portions, which bounds the memory."""
    parts = [boxes[at : at + _PORTION] for at in range(0, len(boxes), _PORTION)]
    answers = [_run(network, _turned_crops(pixels, part, size)) for part in parts]
    return [np.concatenate(answer) for answer in zip(*answers, strict=True)]


def _turned_crops(pixels: Pixels, boxes: Floats, size: int) -> Pixels:
    """Return each box resized to `size` x `size`, columns before rows; outside of the photo is black."""
    crops = np.zeros((len(boxes), size, size, 3), np.uint8)
    for crop, (x0, y0, x1, y1) in zip(crops, np.rint(boxes[:, :4]).astype(int).tolist(), strict=True):
        if x0 < x1 and y0 < y1:
            crop[:] = resize(crop_pixels(pixels, x0, y0, x1, y1), size, size).transpose(1, 0, 2)
    return crops


def _run(network: Any, images: Pixels) -> list[Floats]:
    """Return the network's answers for images that are turned over: its weights want columns before rows."""
    values = images.astype(np.float32)
    values -= 127.5
    values *= 0.0078125
    answers: list[Floats] = network.run(None, {network.get_inputs()[0].name: values})
    return answers
