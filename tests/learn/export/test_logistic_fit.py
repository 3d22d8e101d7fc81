from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learn_people import descriptors
from setnet.errors import InvalidInputError
from setnet.learn.export.logistic_fit import calibrate_elements, fit_logistic


@settings(max_examples=20, deadline=None)
@given(st.floats(2, 30), st.floats(-0.3, 0.3))
def test_it_finds_the_logistic_that_made_the_labels(w: float, threshold: float) -> None:
    rng = np.random.default_rng(0)
    s = rng.uniform(-1, 1, 20_000)
    match = rng.random(len(s)) < 1 / (1 + np.exp(-w * (s - threshold)))
    fit = fit_logistic(s[match], s[~match])
    # Balancing moves b by the log ratio of the two counts; the slope stays.
    assert fit.logistic.w == pytest.approx(w, rel=0.15)


def test_balance_does_not_depend_on_how_many_wrong_pairs_there_are() -> None:
    rng = np.random.default_rng(0)
    true, wrong = rng.normal(0.6, 0.1, 500), rng.normal(0.1, 0.1, 500)
    once, often = fit_logistic(true, wrong), fit_logistic(true, np.tile(wrong, 20))
    assert once.logistic.threshold == pytest.approx(often.logistic.threshold, abs=1e-3)
    assert 0.3 < once.logistic.threshold < 0.4
    assert once.accuracy > 0.95


def test_pairs_that_never_overlap_give_a_finite_slope() -> None:
    fit = fit_logistic(np.array([0.9, 0.8]), np.array([0.1, 0.0]))
    assert np.isfinite(fit.logistic.w)
    assert 0.1 < fit.logistic.threshold < 0.8


def test_elements_are_calibrated_on_labelled_faces() -> None:
    rows, labels = descriptors(40, 4)
    labels = np.where(labels == "39", "", labels)
    assert calibrate_elements(rows, labels).accuracy > 0.98


def test_unlabelled_faces_cannot_calibrate() -> None:
    rows, labels = descriptors(5, 1)
    with pytest.raises(InvalidInputError, match="no person has two"):
        calibrate_elements(rows, labels)
    with pytest.raises(InvalidInputError, match="pairs of one person"):
        fit_logistic(np.array([]), np.array([0.1]))
