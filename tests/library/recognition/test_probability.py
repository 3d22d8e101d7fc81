"""What a similarity means: laws that hold for every model, person and library."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.faces.settings import load_calibration
from setnet.library.score_calibration import NonMatchScores, ScoreCalibration

SFACE = ScoreCalibration.of(load_calibration("sface", "match"))
MODELS = [SFACE, replace(SFACE, non_match=0.05, non_match_many=0.07, genuine=0.65, genuine_many=0.75)]

models = st.sampled_from(MODELS)
similarities = st.floats(-1.0, 1.0)
non_matches = st.builds(NonMatchScores, st.floats(0.0, 0.2), st.floats(0.06, 0.12))
examples = st.integers(1, 60)
numbers_of_faces = st.integers(1, 10_000_000)
qualities = st.floats(0.3, 1.0)


@given(models, similarities, similarities, examples, non_matches, numbers_of_faces, qualities)
def test_a_more_similar_face_is_more_probably_the_persons_and_fewer_strangers_are(
    model: ScoreCalibration,
    one: float,
    other: float,
    n: int,
    here: NonMatchScores,
    faces: int,
    quality: float,
) -> None:
    less, more = sorted((one, other))
    assert model.false_match_rate(less, here) >= model.false_match_rate(more, here)
    low = model.probability(less, n, here, faces, quality)
    assert 0.0 <= low <= model.probability(more, n, here, faces, quality) <= 1.0


@given(models, similarities, examples, non_matches, numbers_of_faces, numbers_of_faces)
def test_the_more_faces_are_searched_the_less_probable_is_a_match(
    model: ScoreCalibration, similarity: float, n: int, here: NonMatchScores, one: int, other: int
) -> None:
    few, many = sorted((one, other))
    in_few = model.probability(similarity, n, here, few)
    assert in_few >= model.probability(similarity, n, here, many)
    assert (
        in_few > model.probability(similarity, n, here, 10 * many + 10**6) or in_few == 0.0 or in_few == 1.0
    )


@given(models, st.floats(1e-9, 0.4), non_matches)
def test_a_threshold_is_what_its_share_of_strangers_reaches(
    model: ScoreCalibration, rate: float, here: NonMatchScores
) -> None:
    threshold = model.threshold(rate, here)
    assert model.false_match_rate(threshold, here) == pytest.approx(rate, rel=1e-6)


@given(models, st.floats(1e-9, 0.1), st.integers(1, 50))
def test_more_examples_need_a_higher_threshold(model: ScoreCalibration, rate: float, n: int) -> None:
    fewer, more = (model.threshold(rate, model.non_match_scores(number)) for number in (n, n + 1))
    assert fewer < more


@given(models, st.floats(0.01, 0.99), examples, non_matches, numbers_of_faces)
def test_the_similarity_of_a_probability_has_it(
    model: ScoreCalibration, probability: float, n: int, here: NonMatchScores, faces: int
) -> None:
    similarity = model.find_similarity(probability, n, here, faces)
    assert model.probability(similarity, n, here, faces) >= probability or similarity == 1.0
    assert model.probability(similarity - 1e-6, n, here, faces) <= probability + 0.01


@given(models, similarities, examples, non_matches, numbers_of_faces, qualities, qualities)
def test_of_a_better_face_more_similarity_is_expected(
    model: ScoreCalibration,
    similarity: float,
    n: int,
    here: NonMatchScores,
    faces: int,
    one: float,
    other: float,
) -> None:
    poor, good = sorted((one, other))
    of_poor = model.probability(similarity, n, here, faces, poor)
    assert of_poor >= model.probability(similarity, n, here, faces, good) - 1e-12


@pytest.mark.parametrize(
    ("name", "good", "poor"),
    [("size", 112, 30), ("sharpness", 0.2, 0.05), ("yaw", 0, -50), ("pitch", 0, 40), ("score", 1.0, 0.8)],
)
def test_small_blurred_turned_and_doubtful_faces_keep_less(name: str, good: float, poor: float) -> None:
    assert SFACE.quality({name: good}) == SFACE.quality({}) == 1.0
    assert 0.3 < SFACE.quality({name: poor}) < 0.99


def test_the_constants_of_sface_are_those_of_its_photos() -> None:
    one, three = (SFACE.non_match_scores(n) for n in (1, 3))
    assert -0.01 < one.mean < three.mean < 0.01  # the metric takes away what all faces share
    assert 0.35 < SFACE.threshold(1e-4, one) < 0.38
    assert 0.48 < SFACE.threshold(1e-6, one) < SFACE.threshold(1e-6, three) < 0.51


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spread": 0.0}, "spread must be positive"),
        ({"tail_rate": 0.7}, "below one"),
        ({"non_match": float("nan")}, "'non_match' must be a number"),
        ({"genuine": True}, "'genuine' must be a number"),
        ({"stray": "2"}, "'stray' must be a number"),
    ],
)
def test_constants_that_cannot_be_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        replace(SFACE, **change)


def test_missing_and_unknown_constants_are_named() -> None:
    values = SFACE.to_dict()
    assert ScoreCalibration.of(values) == SFACE
    del values["stray"]
    with pytest.raises(InvalidInputError, match=r"colour, stray missing or unknown; needed are blurred, "):
        ScoreCalibration.of(values | {"colour": 1.0})
