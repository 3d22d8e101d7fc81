from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.identify import roc
from setnet.evaluate.measures import match_rate_draws
from setnet.evaluate.people import LabelledPeople
from setnet.train.calibration import similarities
from studies import adaptation
from studies.adaptation import true_match_rates


def made(people: int, faces: int, spread: float, seed: int = 0) -> LabelledPeople:
    rng = np.random.default_rng(seed)
    rows = np.repeat(rng.standard_normal((people, 16)), faces, axis=0)
    rows = rows + spread * rng.standard_normal(rows.shape)
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return LabelledPeople(unit, np.repeat([f"p{i:03}" for i in range(people)], faces))


def test_all_pairs_agree_with_sampled_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    people = made(80, 4, 0.7)
    rates = (0.1, 0.01)
    exact = true_match_rates(people, rates)
    assert exact.shape == (2, 80)
    owner = np.unique(people.labels, return_inverse=True)[1]
    pairs = similarities(people.descriptors, owner, np.random.default_rng(0))
    np.testing.assert_allclose(exact.mean(axis=1), roc(pairs.same, pairs.different, rates), atol=1.5)
    monkeypatch.setattr(adaptation, "ROWS_AT_ONCE", 7)
    np.testing.assert_array_equal(true_match_rates(people, rates), exact, "pieces are the whole")


def test_faces_of_unknown_people_are_nobodys_pair() -> None:
    rows = np.eye(4, dtype=np.float32)[[0, 0, 1, 1]]
    known = LabelledPeople(rows, np.array(["a", "a", "", ""]))
    assert true_match_rates(known, [0.5]).tolist() == [[100.0]]
    with pytest.raises(InvalidInputError, match="two faces of one person"):
        true_match_rates(LabelledPeople(rows[1:], np.array(["a", "b", "c"])), [0.5])


def test_resamples_of_people_tell_how_far_the_rate_would_move() -> None:
    rates = true_match_rates(made(60, 3, 0.8), [0.01])
    draws = match_rate_draws(rates)
    assert draws[0].mean() == pytest.approx(rates.mean(), abs=1.0)
    assert draws[0].std() == pytest.approx(rates.std() / 60**0.5, rel=0.25)
