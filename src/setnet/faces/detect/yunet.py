"""YuNet (Wu et al. 2023), a fast one-stage face detector, run by OpenCV."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from setnet.errors import ModelError
from setnet.faces.detect.detector import Detections
from setnet.faces.photo.resample import resized

_SMALLEST = 10.0  # pixels in the searched image, the limit its authors state
_OVERLAP, _MOST = 0.3, 5000  # OpenCV's own defaults


class YuNet:
    """YuNet through `cv2.FaceDetectorYN`, which keeps state: each thread has its own."""

    name = "yunet"
    default_threshold = 0.7

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._threads = threading.local()
        self._network()

    def detect(
        self, pixels: npt.NDArray[np.uint8], *, min_face: float, threshold: float, longest_side: int
    ) -> Detections:
        """Return the faces found; see `Detector.detect`."""
        rows, columns = pixels.shape[:2]
        # Twice the smallest face it can see is enough for `min_face`; more would cost time for nothing.
        shrink = min(1.0, longest_side / max(rows, columns), 2 * _SMALLEST / min_face)
        size = (max(1, round(columns * shrink)), max(1, round(rows * shrink)))
        if min(size) < _SMALLEST:
            return Detections.none()
        network = self._network()
        network.setInputSize(size)
        network.setScoreThreshold(threshold)
        _, found = network.detect(np.ascontiguousarray(resized(pixels, *size)[..., ::-1]))
        if found is None:
            return Detections.none()
        found = found.astype(np.float32)
        scale = np.array([columns / size[0], rows / size[1]], np.float32)
        corner, sides = found[:, :2] * scale, found[:, 2:4] * scale
        landmarks = found[:, 4:14].reshape(-1, 5, 2) * scale
        order = np.argsort(-found[:, 14], kind="stable")
        boxes = np.concatenate([corner, corner + sides], axis=1)
        return Detections(boxes[order], found[order, 14], landmarks[order])

    def _network(self) -> Any:
        network = getattr(self._threads, "network", None)
        if network is None:
            import cv2

            loudness = cv2.utils.logging.setLogLevel(2)  # OpenCV 5 warns here of its own defaults
            try:
                network = cv2.FaceDetectorYN.create(self._path, "", (320, 320), 0.7, _OVERLAP, _MOST)
            except cv2.error as error:
                raise ModelError(f"{self._path}: OpenCV cannot run this model: {error}") from error
            finally:
                cv2.utils.logging.setLogLevel(loudness)
            self._threads.network = network
        return network
