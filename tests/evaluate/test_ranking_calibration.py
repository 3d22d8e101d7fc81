"""A head's (w, b) on a user's own people: chosen by how it ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate import ranking_calibration
from setnet.evaluate.ranking_calibration import _first_in_rows, best_logistic, calibrate_head
from setnet.evaluate.representations import EveryElement, SetVectors
from setnet.evaluate.stress_trial import Representation, StressTest, StressWorld, measure_ranking
from setnet.heads import Logistic, Mean, SetNet
from setnet.train.simulated import VirtualPeople

EYE = np.eye(128, dtype=np.float32)


def people(known: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    model = VirtualPeople(np.zeros(128, np.float32), EYE, 0.9 * EYE)
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(known), each)
    return model.faces(rng, model.people(rng, known), who), np.array([f"p{i}" for i in who])


def test_a_spoilt_score_is_repaired_without_distractors_in_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, fewer in (("SETS", 2000), ("QUERIES", 40), ("REPEATS", 1)):
        monkeypatch.setattr(ranking_calibration, name, fewer)
    net = SetNet.load("sface-128")
    # what likelihood gives: a slope so steep that one certain face outweighs two probable ones
    spoilt = SetNet(net.head.with_logistic(Logistic(60.0, -12.0)))
    fit = calibrate_head(spoilt, *people(60, 4))
    assert fit.after > fit.before + 1
    assert fit.logistic.w < 30


def test_too_few_people_are_counted() -> None:
    with pytest.raises(InvalidInputError, match="9 people have two labelled faces"):
        calibrate_head(SetNet.load("sface-128"), *people(9, 4))


@pytest.fixture(scope="module")
def one_repeat(world: StressWorld) -> StressTest:
    return StressTest(replace(world, examples=world.examples[:1]))


def quality(kept: Representation, test: StressTest, logistic: Logistic) -> float:
    return float(np.mean([*measure_ranking(kept, [test], logistic).values.values()]))


@pytest.mark.parametrize("kept", [SetVectors(Mean(128)), EveryElement()], ids=["mean", "elements"])
def test_the_search_is_as_good_as_a_grid_on_whole_rankings(
    one_repeat: StressTest, kept: Representation
) -> None:
    found = best_logistic(kept, one_repeat)
    grid = [Logistic(w, -w * t) for w in (5.0, 10.0, 20.0) for t in (0.1, 0.3, 0.5)]
    best = max(quality(kept, one_repeat, one) for one in grid)
    assert quality(kept, one_repeat, found) >= best - 0.05


def test_refinement_gains(one_repeat: StressTest, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = SetVectors(Mean(128))
    refined = best_logistic(kept, one_repeat)
    monkeypatch.setattr(ranking_calibration, "REFINEMENTS", ())
    coarse = best_logistic(kept, one_repeat)
    assert quality(kept, one_repeat, refined) >= quality(kept, one_repeat, coarse)
    assert refined != coarse, "the average has room to gain in this world"


@pytest.mark.parametrize("values", [3, 10_000])
def test_the_first_of_each_row_are_those_of_a_stable_sort(values: int) -> None:
    scores = np.random.default_rng(values).integers(values, size=(50, 40)).astype(float)
    wanted = np.argsort(-scores, axis=1, kind="stable")[:, :10]
    np.testing.assert_array_equal(_first_in_rows(scores, 10), wanted)
