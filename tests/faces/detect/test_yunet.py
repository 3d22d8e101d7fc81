"""YuNet in onnxruntime beside OpenCV's own, which reads the same file."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from setnet.faces import load_detector, model_entry, model_paths, open_photo
from setnet.faces.yunet import YuNet


@pytest.mark.parametrize("size", [(640, 640), (1000, 750), (333, 517), (160, 96)])
def test_it_finds_what_opencv_finds(people: Path, size: tuple[int, int]) -> None:
    sheet = open_photo(people / "P007" / "assets" / "emotions_sheet.jpg").pixels
    pixels = np.asarray(cv2.resize(sheet, size, interpolation=cv2.INTER_AREA), np.uint8)
    path = str(model_paths(model_entry("yunet", "detector"))["model"])
    reference = cv2.FaceDetectorYN.create(path, "", size, 0.6, 0.3, 5000)
    _, expected = reference.detect(np.ascontiguousarray(pixels[..., ::-1]))
    expected = np.zeros((0, 15)) if expected is None else expected[np.argsort(-expected[:, 14])]
    detector = load_detector("yunet")
    assert isinstance(detector, YuNet)
    found = detector.find_at(1.0, pixels, 0.6)
    np.testing.assert_allclose(found.scores, expected[:, 14], atol=1e-4)
    corner, sides = expected[:, :2], expected[:, 2:4]
    np.testing.assert_allclose(found.boxes, np.hstack([corner, corner + sides]), atol=0.02)
    np.testing.assert_allclose(found.landmarks, expected[:, 4:14].reshape(-1, 5, 2), atol=0.02)
    assert len(found) >= (8 if max(size) > 300 else 0)


def test_the_second_step_only_leaves_out(people: Path) -> None:
    sheet = open_photo(people / "P007" / "assets" / "emotions_sheet.jpg").pixels
    detector = load_detector("yunet")
    some = detector.candidates(sheet, min_face=40, threshold=0.3, longest_side=1600)
    for threshold in (0.3, 0.8, 1.0):
        kept = detector.confirm(sheet, some, threshold)
        np.testing.assert_array_equal(kept.scores, some.scores[some.scores >= threshold])
    assert 0 < len(detector.confirm(sheet, some, 0.8)) <= len(some)
