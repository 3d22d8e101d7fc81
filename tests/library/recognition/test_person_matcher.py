"""Thresholds of one person among so many faces."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from setnet.faces.settings import load_calibration
from setnet.library.person_matcher import PersonMatcher
from setnet.library.score_calibration import NonMatchScores, ScoreCalibration

MODEL = ScoreCalibration.of(load_calibration("sface", "match"))
VECTOR = np.eye(4, dtype=np.float32)[0]

non_matches = st.builds(NonMatchScores, st.floats(0.0, 0.2), st.floats(0.06, 0.12))
refusals = st.lists(st.floats(0.2, 0.8), max_size=12)


def made(
    examples: int = 1,
    faces: int = 5000,
    rejected: list[float] | None = None,
    here: NonMatchScores | None = None,
) -> PersonMatcher:
    known = MODEL.non_match_scores(examples) if here is None else here
    return PersonMatcher.of(MODEL, VECTOR, examples, known, faces, np.array(rejected or []))


@given(st.integers(1, 60), st.integers(1, 10_000_000), non_matches, refusals)
def test_sure_is_above_maybe_and_probable(
    n: int, faces: int, here: NonMatchScores, rejected: list[float]
) -> None:
    person = made(n, faces, rejected, here)
    assert person.maybe <= person.sure
    assert person.probability(min(person.sure, 1.0) + 1e-9) >= 0.75 or person.sure > 1.0
    false = person.strictness * faces * MODEL.false_match_rate(person.sure, here)
    assert false <= 0.02 * (1 + 1e-9)
    assert MODEL.false_match_rate(person.sure, here) <= 1e-6 * (1 + 1e-9)
    assert MODEL.false_match_rate(person.maybe, here) <= 1e-4 * (1 + 1e-9)


@given(st.integers(1, 40), st.integers(1, 1_000_000))
def test_thresholds_rise_with_examples_and_with_faces(n: int, faces: int) -> None:
    person, better, larger = made(n, faces), made(n + 1, faces), made(n, 2 * faces)
    assert person.maybe < better.maybe
    assert person.maybe <= larger.maybe
    assert person.sure <= larger.sure


def test_three_examples_have_a_higher_threshold_than_one() -> None:
    assert made(1).sure < made(3).sure < made(1).sure + 0.02


@given(st.integers(1, 10), st.integers(1, 100_000), refusals, st.floats(0.2, 0.8))
def test_a_refusal_never_lowers_a_threshold(n: int, faces: int, rejected: list[float], more: float) -> None:
    before, after = made(n, faces, rejected), made(n, faces, [*rejected, more])
    assert after.maybe >= before.maybe
    mean, spread = MODEL.genuine_to(n)
    slips = sum(similarity > mean - spread for similarity in [*rejected, more])
    assert after.sure >= max(before.sure, min(more + 0.019, mean + (slips - 2) * spread))
    assert after.probability(0.5) <= before.probability(0.5) + 1e-12


def test_what_was_expected_anyway_changes_little_and_more_than_that_a_lot() -> None:
    large = made(faces=100_000)  # ten false matches are expected among guesses
    assert made(faces=100_000, rejected=[0.45] * 5).maybe == large.maybe
    small = made(faces=500)
    assert small.maybe + 0.01 < made(faces=500, rejected=[0.45]).maybe < small.maybe + 0.03
    assert made(faces=500, rejected=[0.45] * 9).maybe > small.maybe + 0.04


def test_the_quality_of_a_face_matters_to_the_probability_alone() -> None:
    person = made(3, 20_000)
    good = {"size": 200.0, "sharpness": 0.3, "score": 1.0, "yaw": 0.0, "pitch": 0.0}
    poor = good | {"size": 25.0, "sharpness": 0.05, "score": 0.9}
    assert person.probability(0.45, poor) > 2 * person.probability(0.45, good)
    assert person.probability(0.75, good) > 0.999
