"""YuNet's proposals confirmed by MTCNN's networks, beside MTCNN itself."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from setnet.faces import Detections, FaceSettings, extract_faces, load_detector, open_photo

PERSONS = [f"P{number:03d}" for number in range(1, 11)]


def on_a_wall(people: Path, side: int, light: float = 1.0, turn: float = 0.0) -> Detections:
    """Return what is found on a wall with ten portraits, each `side` pixels wide."""
    wall = np.full((900, 1600, 3), 120, np.uint8)
    for place, person in enumerate(PERSONS):
        portrait = open_photo(people / person / "assets" / "studio_portrait.jpg").pixels
        small = cv2.resize(portrait, (side, side), interpolation=cv2.INTER_AREA)
        matrix = cv2.getRotationMatrix2D((side / 2, side / 2), turn, 1)
        small = cv2.warpAffine(small, matrix, (side, side), borderMode=cv2.BORDER_REPLICATE)
        x, y = 40 + place % 5 * 310, 40 + place // 5 * 430
        wall[y : y + side, x : x + side] = small * light
    return load_detector("cascade").detect(wall, min_face=16, threshold=0.7, longest_side=1600)


@pytest.mark.parametrize(
    ("side", "light", "turn"),
    [(300, 1, 0), (90, 1, 0), (300, 0.15, 0), (90, 0.3, 0), (300, 1, 25), (90, 1, -20)],
)
def test_small_dark_and_turned_faces_are_found(people: Path, side: int, light: float, turn: float) -> None:
    found = on_a_wall(people, side, light, turn)
    assert len(found) == 10
    rows = np.sort(found.boxes[:, 1]).reshape(2, 5)
    assert (np.ptp(rows, axis=1) < 0.5 * side).all(), "two rows of five"


@pytest.mark.parametrize("person", PERSONS[:5])
def test_a_face_is_described_as_with_mtcnn(people: Path, person: str) -> None:
    photo = open_photo(people / person / "assets" / "amateur_selfie.jpg")
    ours, theirs = (
        max(extract_faces(photo, FaceSettings(detector=name)), key=lambda face: face.quality.size)
        for name in ("cascade", "mtcnn")
    )
    assert np.abs(ours.landmarks - theirs.landmarks).max() < 0.1 * theirs.quality.size
    assert float(ours.descriptor @ theirs.descriptor) > 0.9


def test_candidates_are_confirmed_in_a_larger_copy_of_the_photo(people: Path) -> None:
    photo = open_photo(people / "P007" / "assets" / "emotions_sheet.jpg").pixels
    detector = load_detector("cascade")
    half = np.asarray(cv2.resize(photo, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA), np.uint8)
    candidates = detector.candidates(half, min_face=20, threshold=0.7, longest_side=1600)
    found = detector.confirm(photo, candidates.scale(2), 0.7)
    assert len(found) == len(detector.confirm(half, candidates, 0.7)) == 16


def test_detections_can_be_picked_and_scaled() -> None:
    three = Detections(
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.array([0.9, 0.5, 0.7], np.float32),
        np.ones((3, 5, 2), np.float32),
    )
    assert three.only([2, 0]).scores.tolist() == pytest.approx([0.7, 0.9])
    assert three.only(three.scores > 0.6).boxes.tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert len(three.only([])) == len(three.only(three.scores > 1)) == 0
    twice = three.scale(2)
    assert twice.boxes.tolist() == (three.boxes * 2).tolist()
    assert twice.landmarks.tolist() == (three.landmarks * 2).tolist()
    assert twice.scores.tolist() == three.scores.tolist()
