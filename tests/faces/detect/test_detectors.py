"""MTCNN and YuNet on real pixels."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from setnet.faces import (
    Detections,
    Face,
    FaceSettings,
    Photo,
    extract_faces,
    load_detector,
    mtcnn,
    open_photo,
)
from setnet.faces.detector import non_maximum
from setnet.faces.mtcnn import Mtcnn

ALL = ["cascade", "mtcnn", "yunet"]
Pixels = npt.NDArray[np.uint8]


def found(detector: str, pixels: Pixels, min_face: float = 40, longest_side: int = 1600) -> Detections:
    chosen = load_detector(detector)
    return chosen.detect(
        pixels, min_face=min_face, threshold=chosen.default_threshold, longest_side=longest_side
    )


@pytest.mark.parametrize("detector", ALL)
def test_all_sixteen_expressions_are_found(detector: str, people: Path) -> None:
    sheet = open_photo(people / "P007" / "assets" / "emotions_sheet.jpg")
    faces = found(detector, sheet.pixels)
    assert len(faces) == 16
    rows = np.sort(faces.boxes[:, 1]).reshape(4, 4)
    assert (np.ptp(rows, axis=1) < 40).all(), "four rows of four"


@pytest.mark.parametrize("detector", ALL)
def test_landmarks_lie_where_eyes_nose_and_mouth_are(detector: str, portrait: Photo) -> None:
    (landmarks,) = found(detector, portrait.pixels).landmarks
    # Read off the picture by eye: eyes, nose tip, mouth corners of the synthetic person P001.
    by_eye = np.array([[838, 850], [1208, 843], [1027, 1045], [872, 1250], [1192, 1248]])
    assert np.abs(landmarks - by_eye).max() < 60


def test_the_detectors_agree(portrait: Photo) -> None:
    cascade, mtcnn, yunet = (found(detector, portrait.pixels).landmarks[0] for detector in ALL)
    assert np.abs(mtcnn - yunet).max() < 40
    assert np.abs(cascade - mtcnn).max() < 20, "the same network places them"


@pytest.mark.parametrize("rows", [12, 13, 43, 44, 75, 106, 333])
def test_strips_hold_the_windows_of_the_whole_level(
    rows: int, portrait: Photo, monkeypatch: pytest.MonkeyPatch
) -> None:
    detector = load_detector("mtcnn")
    assert isinstance(detector, Mtcnn)
    level = cv2.resize(portrait.pixels, (97, rows)).astype(np.uint8)
    monkeypatch.setattr(mtcnn, "_PROPOSE", 0.01)
    in_strips = detector._windows(level, 0.6)
    monkeypatch.setattr(mtcnn, "_STRIP", 10_000)
    at_once = detector._windows(level, 0.6)
    assert len(at_once) > rows // 12
    np.testing.assert_allclose(in_strips, at_once, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("detector", ALL)
@pytest.mark.parametrize("shape", [(1, 1), (5, 5), (12, 12), (19, 400), (2000, 3), (300, 300)])
def test_blank_and_tiny_images_have_no_faces(detector: str, shape: tuple[int, int]) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (*shape, 3)).astype(np.uint8)
    for pixels in (np.zeros((*shape, 3), np.uint8), np.full((*shape, 3), 255, np.uint8), noise):
        assert len(found(detector, pixels)) == 0


@pytest.mark.parametrize("detector", ALL)
def test_a_face_at_the_edge_is_found(detector: str, small_portrait: Pixels) -> None:
    (box,) = found(detector, small_portrait).boxes
    x0 = int(box[0] + 0.15 * (box[2] - box[0]))
    assert len(found(detector, np.ascontiguousarray(small_portrait[:, x0:]))) == 1


@pytest.mark.parametrize("detector", ALL)
def test_faces_below_the_minimum_are_left_out(detector: str, small_portrait: Pixels) -> None:
    canvas = np.full((400, 600, 3), 128, np.uint8)
    canvas[50:306, 50:306] = cv2.resize(small_portrait, (256, 256), interpolation=cv2.INTER_AREA)
    canvas[100:200, 400:500] = cv2.resize(small_portrait, (100, 100), interpolation=cv2.INTER_AREA)
    sizes = {
        least: [
            round(f.quality.size)
            for f in extract_faces(canvas, FaceSettings(detector=detector, min_face=least))
        ]
        for least in (25, 80, 300)
    }
    assert len(sizes[25]) == 2
    assert len(sizes[80]) == 1
    assert sizes[80][0] > 80
    assert sizes[300] == []


@pytest.mark.parametrize("detector", ALL)
def test_fifty_megapixels_are_searched_small_and_cut_out_large(detector: str, portrait: Photo) -> None:
    huge = np.full((5773, 8660, 3), 90, np.uint8)
    x, y, side = 6000, 3000, 800
    huge[y : y + side, x : x + side] = cv2.resize(portrait.pixels, (side, side), interpolation=cv2.INTER_AREA)
    (face,) = extract_faces(huge, FaceSettings(detector=detector))
    (alone,) = extract_faces(
        np.ascontiguousarray(huge[y : y + side, x : x + side]), FaceSettings(detector=detector)
    )
    assert np.abs(face.landmarks - [x, y] - alone.landmarks).max() < 0.06 * face.quality.size
    assert float(face.descriptor @ alone.descriptor) > 0.93


@pytest.mark.parametrize("detector", ALL)
def test_equal_pixels_give_equal_answers_from_any_thread(detector: str, small_portrait: Pixels) -> None:
    expected = found(detector, small_portrait)
    answers: list[Detections] = []
    threads = [
        threading.Thread(target=lambda: answers.append(found(detector, small_portrait))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    for answer in answers:
        np.testing.assert_array_equal(answer.boxes, expected.boxes)
        np.testing.assert_array_equal(answer.landmarks, expected.landmarks)


def test_no_face_is_seen_in_scenery_without_people() -> None:
    rng = np.random.default_rng(3)
    for _ in range(6):
        coarse = rng.integers(0, 256, (9, 12, 3)).astype(np.uint8)
        scenery = cv2.resize(coarse, (900, 640), interpolation=cv2.INTER_CUBIC)
        noisy = np.clip(scenery + rng.normal(0, 12, scenery.shape), 0, 255).astype(np.uint8)
        assert len(found("mtcnn", noisy)) == 0


def test_faces_come_from_left_to_right(faces_in: Callable[[str, str], list[Face]]) -> None:
    centres = [face.box.x0 + face.box.x1 for face in faces_in("P001", "character_sheet")]
    assert len(centres) >= 5
    assert centres == sorted(centres)


def test_of_overlapping_boxes_the_best_stays() -> None:
    rng = np.random.default_rng(0)
    corner = rng.uniform(0, 100, (200, 2))
    boxes = np.column_stack([corner, corner + rng.uniform(5, 40, (200, 2)), rng.uniform(0, 1, 200)]).astype(
        np.float32
    )

    def overlap(a: npt.NDArray[np.float32], b: npt.NDArray[np.float32]) -> float:
        w, h = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
        shared = max(w, 0) * max(h, 0)
        return float(shared / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - shared))

    keep = non_maximum(boxes, 0.4)
    assert keep[0] == boxes[:, 4].argmax()
    for i in keep:
        assert all(overlap(boxes[i], boxes[j]) <= 0.4 + 1e-6 for j in keep if j != i)
    for i in set(range(200)) - set(keep.tolist()):
        assert any(overlap(boxes[i], boxes[j]) > 0.4 - 1e-6 and boxes[j, 4] >= boxes[i, 4] for j in keep)
