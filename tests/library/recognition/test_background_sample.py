"""What strangers are like is measured in the library itself."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet.faces.settings import load_calibration
from setnet.library.person_matcher import BackgroundSample
from setnet.library.score_calibration import ScoreCalibration

MODEL = ScoreCalibration.of(load_calibration("sface", "match"))


def crowd(people: int, each: int, alike: float, seed: int = 0) -> NDArray[np.float32]:
    """Return faces of people who share a direction: strangers' similarities have about that mean."""
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=128) * np.sqrt(alike / (1 - alike) / 128)
    centres = shared + rng.normal(size=(people, 128)) / np.sqrt(128)
    faces = np.repeat(centres, each, axis=0) + 0.3 * rng.normal(size=(people * each, 128)) / np.sqrt(128)
    rows: NDArray[np.float32] = (faces / np.linalg.norm(faces, axis=1, keepdims=True)).astype(np.float32)
    return rows


def test_people_who_look_alike_raise_the_mean() -> None:
    apart, alike = (BackgroundSample.of_faces(crowd(1500, 1, share), MODEL) for share in (0.02, 0.2))
    for background in (apart, alike):
        stranger = crowd(1500, 1, 0.2, seed=0)[0]
        assert background.faces == 1500
        assert abs(background.non_match_scores(stranger, 1, MODEL).spread - 0.088) < 0.01
    person = crowd(1, 1, 0.2, seed=0)[0]
    assert (
        alike.non_match_scores(person, 1, MODEL).mean > apart.non_match_scores(person, 1, MODEL).mean + 0.08
    )


def test_a_persons_own_faces_do_not_count_as_strangers() -> None:
    others, own = crowd(1000, 1, 0.1), crowd(1, 600, 0.1, seed=1)
    without = BackgroundSample.of_faces(others, MODEL).non_match_scores(own[0], 1, MODEL)
    mixed = np.random.default_rng(0).permutation(np.concatenate([others, own]))
    among = BackgroundSample.of_faces(mixed, MODEL).non_match_scores(own[0], 1, MODEL)
    assert among.mean == pytest.approx(without.mean, abs=0.01)
    assert among.spread == pytest.approx(without.spread, abs=0.005)


def test_few_people_leave_the_models_constants_as_they_are() -> None:
    known = MODEL.non_match_scores(1)
    vector = crowd(1, 1, 0.3, seed=3)[0]
    nobody = BackgroundSample.of_faces(np.zeros((0, 128), np.float32), MODEL)
    assert nobody.non_match_scores(vector, 1, MODEL) == known
    few = BackgroundSample.of_faces(crowd(3, 400, 0.3, seed=3), MODEL)
    assert few.people < 4
    assert few.non_match_scores(vector, 1, MODEL).spread == pytest.approx(known.spread, rel=0.02)
    assert few.non_match_scores(vector, 1, MODEL).mean < known.mean + 0.06


@pytest.mark.parametrize(("people", "each"), [(200, 1), (20, 10), (2, 100)])
def test_people_are_counted_in_effect(people: int, each: int) -> None:
    background = BackgroundSample.of_faces(crowd(people, each, 0.02), MODEL)
    assert background.people == pytest.approx(people, rel=0.1)
