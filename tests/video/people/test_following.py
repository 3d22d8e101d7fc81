"""Faces followed by place: of a few pictures of one, the best is described, and crossing people all are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from setnet.faces import Box, Face, FaceSettings, Quality
from setnet.faces.pipeline import FoundFace
from setnet.video import people as following
from setnet.video.people import Tracker
from tests.support.invented_photos import face_of


@pytest.fixture
def crops(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first pixel of each picture that is described, as it happens; it tells whose face it is."""
    told: list[int] = []

    def described(found: Sequence[FoundFace], settings: FaceSettings) -> list[Face]:
        told.extend(int(face.crop[0, 0, 0]) for face in found)
        return [
            Face(f.box, f.landmarks, f.quality.score, f.quality, face_of(int(f.crop[0, 0, 0]))) for f in found
        ]

    monkeypatch.setattr(following, "describe_found", described)
    return told


def face(person: int, x: float, size: float = 80.0) -> FoundFace:
    quality = Quality(size, 0.95, 0.2, 0.0, 0.0, 0.0)
    landmarks = np.zeros((5, 2), np.float32)
    return FoundFace(Box(x, 0, x + 80, 80), landmarks, quality, np.full((8, 8, 3), person, np.uint8))


def test_the_best_of_three_pictures_is_described(crops: list[int]) -> None:
    faces = Tracker(FaceSettings())
    for time, size in enumerate((60.0, 100.0, 70.0, 80.0)):
        faces.add(float(time), [face(1, 3.0 * time, size)], is_new=False)
    seen = faces.detections()
    assert crops == [1, 1]
    assert [detection.is_described for _, (detection,) in seen] == [False, True, False, True]
    assert [detection.face.quality.size for _, (detection,) in seen] == [60, 100, 70, 80]


def test_people_close_to_each_other_are_described_at_each_look(crops: list[int]) -> None:
    faces = Tracker(FaceSettings())
    for time in range(3):
        faces.add(float(time), [face(1, 10.0 * time), face(2, 60.0 - 10.0 * time)], is_new=False)
    assert all(detection.is_described for _, seen in faces.detections() for detection in seen)
    assert sorted(crops) == [1, 1, 1, 2, 2, 2]


@pytest.mark.parametrize(("gap", "is_new"), [(1.0, True), (5.0, False)])
def test_nobody_is_followed_over_a_cut_or_a_long_time(crops: list[int], gap: float, is_new: bool) -> None:
    faces = Tracker(FaceSettings())
    faces.add(0.0, [face(1, 0.0)], is_new=True)
    faces.add(gap, [face(2, 0.0)], is_new=is_new)
    (_, (before,)), (_, (after,)) = faces.detections()
    assert crops == [1, 2]
    assert np.array_equal(before.face.descriptor, face_of(1))
    assert np.array_equal(after.face.descriptor, face_of(2))


def test_a_picture_that_stays_the_same_is_described_once(crops: list[int]) -> None:
    faces = Tracker(FaceSettings())
    faces.add(0.0, [face(1, 0.0)], is_new=True)
    for time in range(1, 9):
        faces.repeat(float(time))
    assert faces.count == 1
    assert [time for time, _ in faces.detections()] == list(range(9))
    assert crops == [1]
