"""YuNet proposes faces, MTCNN's second and third network confirm them: much of MTCNN, without its cost.

Most of MTCNN's time goes into its first network, which walks over a pyramid of copies of the photo. YuNet
looks at one copy. With a threshold so low that most of its proposals are no faces it misses few that MTCNN
finds, small and dark ones, and the other two networks know a face when they see one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from setnet.faces.detector import Detections, Detector, non_maximum
from setnet.faces.mtcnn import confirm_by_onet, move_boxes, run_on_boxes, square, without_landmarks
from setnet.faces.pixels import Pixels, resize
from setnet.faces.yunet import YuNet

# Chosen on people of LFW's training half; docs/performance.md has what the choice gives on the others.
_PROPOSE = 0.02  # YuNet's score, of which its own users ask 0.7
_SURE = 0.7  # where YuNet is sure, R-Net only moves the box
_REFINE = 0.1  # R-Net's score elsewhere
_SEARCHED = 40.0  # pixels of the smallest face wanted; to search at a larger scale finds no more


class Cascade(Detector):
    """YuNet, then R-Net and O-Net of MTCNN."""

    name = "cascade"
    default_threshold = 0.7
    candidate_share = 0.75

    def __init__(self, yunet: YuNet, rnet: Any, onet: Any) -> None:
        self._yunet, self._rnet, self._onet = yunet, rnet, onet

    def candidates(
        self, pixels: Pixels, *, min_face: float, threshold: float, longest_side: int
    ) -> Detections:
        """Return what YuNet and R-Net together take for faces; see `Detector.candidates`."""
        rows, columns = pixels.shape[:2]
        shrink = min(1.0, longest_side / max(rows, columns), _SEARCHED / min_face)
        searched = resize(pixels, max(1, round(columns * shrink)), max(1, round(rows * shrink)))
        found = self._yunet.find_at(1.0, searched, _PROPOSE)
        if len(found) == 0:
            return found
        boxes = square(np.concatenate([found.boxes, found.scores[:, None]], axis=1))
        offsets, scores = run_on_boxes(self._rnet, searched, boxes, 24)
        keep = np.flatnonzero((scores[:, 1] > _REFINE) | (boxes[:, 4] > _SURE))
        boxes = move_boxes(boxes[keep], offsets[keep])
        boxes[:, 4] = scores[keep, 1]
        boxes = square(boxes[non_maximum(boxes, 0.7)])
        boxes[:, :4] /= np.float32(shrink)
        return without_landmarks(boxes)

    def confirm(self, pixels: Pixels, candidates: Detections, threshold: float) -> Detections:
        """Return the faces by O-Net, which looks at the photo itself and not at a smaller copy."""
        return confirm_by_onet(self._onet, pixels, candidates, threshold)
