from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from setnet.errors import InvalidInputError
from setnet.train import calibration as model_calibration
from setnet.train import fit_model_calibration, match_rates
from setnet.train.calibration import calibrate_elements, fit_logistic
from tests.support.learn_people import descriptors


@settings(max_examples=10, deadline=None)
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


def people(
    count: int, faces: int, spread: float, seed: int = 0, dim: int = 16
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, dim)).repeat(faces, axis=0) + spread * rng.normal(
        size=(count * faces, dim)
    )
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32), np.arange(count).repeat(faces).astype(np.str_)


def all_pairs(rows: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return genuine similarities, the weight of each, and non-matching similarities, by a plain loop."""
    genuine, weights, non_matches = [], [], []
    for i, j in itertools.combinations(range(len(rows)), 2):
        similarity = float(rows[i] @ rows[j])
        if labels[i] == labels[j] != "":
            genuine.append(similarity)
            count = int((labels == labels[i]).sum())
            weights.append(2 / (count * (count - 1)))
        elif labels[i] != "" or labels[j] != "":
            non_matches.append(similarity)
    return np.array(genuine), np.array(weights), np.array(non_matches)


def test_the_threshold_is_what_the_stated_share_of_all_non_matching_pairs_reaches() -> None:
    rows, labels = people(250, 2, 0.3)
    labels = np.where(labels == "7", "", labels)
    found = fit_model_calibration(rows, labels)
    _, _, non_matches = all_pairs(rows, labels)
    wanted = np.sort(non_matches)[-int(1e-4 * len(non_matches)) - 1 :]
    assert wanted[0] - 1e-4 <= found["threshold"] <= wanted[-1]
    assert (found["faces"], found["people"], found["false_match_rate"]) == (500, 249, 1e-4)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), threshold=st.floats(-0.5, 0.99))
def test_rates_are_those_of_all_pairs_one_by_one(seed: int, threshold: float) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_calibration, "_MIN_FALSE_MATCHES", 0)
        patch.setattr(model_calibration, "_ROWS", 7)
        rows, labels = people(12, 3, 0.4, seed)
        labels[-4:] = ""
        rates = match_rates(rows, labels, threshold)
    genuine, weights, non_matches = all_pairs(rows, labels)
    assert (rates.genuine_pairs, rates.non_match_pairs) == (len(genuine), len(non_matches))
    assert rates.true_matches == pytest.approx(np.average(genuine >= threshold, weights=weights), abs=1e-9)
    slack = (abs(non_matches - threshold) < 2e-5).mean()
    assert rates.false_matches == pytest.approx((non_matches >= threshold).mean(), abs=slack + 1e-9)


def test_every_person_counts_the_same() -> None:
    rows, labels = people(250, 2, 0.3)
    often, _ = people(1, 40, 3.0, seed=5)  # forty photos of somebody who never looks the same
    rates = match_rates(np.concatenate([rows, often]), np.append(labels, ["x"] * 40), 0.6)
    assert rates.true_matches > 0.95


def test_the_score_is_as_steep_as_the_model_tells_people_apart() -> None:
    near, far = (fit_model_calibration(*people(250, 2, spread)) for spread in (0.9, 0.2))
    assert near["w"] > far["w"] > 0 > near["b"]
    for fitted in (near, far):
        assert 0 < -fitted["b"] / fitted["w"] < fitted["threshold"], "3 in 10,000 reach less than 1 does"


def test_large_files_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_calibration, "_MAX_FACES", 460)
    assert fit_model_calibration(*people(250, 2, 0.3))["faces"] == 460


def test_too_few_faces_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="pairs of different people are too few"):
        fit_model_calibration(*people(40, 2, 0.3))
    with pytest.raises(InvalidInputError, match="no person has two labelled faces"):
        fit_model_calibration(*people(500, 1, 0.3))


def test_the_shipped_numbers_of_sface_fit_its_virtual_people() -> None:
    """People drawn from the statistics of SFace's descriptors: the entry's numbers hold for them too."""
    from setnet.evaluate.people import LFW_LIKE
    from setnet.faces import model_entry
    from setnet.train import VirtualPeople

    model, rng = VirtualPeople.load(LFW_LIKE), np.random.default_rng(0)
    who = np.arange(1500).repeat(2)
    rows = model.faces(rng, model.people(rng, 1500), who)
    rates = match_rates(
        rows, who.astype(np.str_), model_entry("sface", "descriptor").calibration["threshold"]
    )
    assert 1e-5 < rates.false_matches < 1e-3
    assert rates.true_matches > 0.95


@pytest.mark.parametrize(("true", "wrong"), [(0.6, 0.1), (0.75, 0.0), (0.1, 0.6), (0.3, 0.3)])
def test_the_logistic_is_as_good_as_scipys(true: float, wrong: float) -> None:
    rng = np.random.default_rng(0)
    z = np.concatenate([rng.normal(true, 0.1, 300), rng.normal(wrong, 0.1, 3000)])
    y = np.repeat([1.0, -1.0], [300, 3000])
    weight = np.repeat([0.5 / 300, 0.5 / 3000], [300, 3000])
    z = (z - z.mean()) / z.std()

    def loss(theta: np.ndarray) -> float:
        margin = y * (theta[0] * z + theta[1])
        return float(weight @ np.logaddexp(0.0, -margin) + 1e-6 * theta[0] ** 2)

    found = minimize(loss, [1.0, 0.0], bounds=[(1e-3, None), (None, None)], tol=1e-12)
    assert loss(np.array(model_calibration._minimise(z, y, weight))) <= found.fun + 1e-9
