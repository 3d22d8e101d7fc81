"""Fitting the logistic score (w, b): of elements and of a network, by likelihood."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from setnet.errors import InvalidInputError
from setnet.heads import Logistic


@dataclass(frozen=True)
class Calibration:
    """A fitted (w, b) and its balanced accuracy: the share of pairs on the right side of one half."""

    logistic: Logistic
    accuracy: float
    positives: int
    negatives: int


def fit_logistic(positive: NDArray[np.floating], negative: NDArray[np.floating]) -> Calibration:
    """Return the (w, b) of the balanced logistic loss (eq. 2) for genuine and impostor similarities.

    >>> fit = fit_logistic(np.array([0.7, 0.6, 0.3]), np.array([0.1, 0.0, 0.35]))
    >>> 0.2 < fit.logistic.threshold < 0.5
    True
    """
    if not len(positive) or not len(negative):
        raise InvalidInputError(
            "calibration needs pairs of one person and pairs of different people: add labelled faces"
        )
    s = np.concatenate([positive, negative]).astype(np.float64)
    y = np.concatenate([np.ones(len(positive)), -np.ones(len(negative))])
    weight = np.where(y > 0, 0.5 / len(positive), 0.5 / len(negative))
    centre, scale = float(s.mean()), float(s.std()) or 1.0
    z = (s - centre) / scale

    def loss(theta: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        margin = y * (theta[0] * z + theta[1])
        slope = -weight * y / (1.0 + np.exp(np.clip(margin, -500, 500)))
        # The small ridge keeps w finite when the two kinds of pairs do not overlap at all.
        value = float((weight * np.logaddexp(0.0, -margin)).sum() + 1e-6 * theta[0] ** 2)
        return value, np.array([(slope * z).sum() + 2e-6 * theta[0], slope.sum()])

    found = minimize(
        loss, np.array([1.0, 0.0]), jac=True, method="L-BFGS-B", bounds=[(1e-3, None), (None, None)]
    )
    w, b = found.x[0] / scale, found.x[1] - found.x[0] * centre / scale
    logistic = Logistic(float(w), float(b))
    right = 0.5 * (np.mean(positive > logistic.threshold) + np.mean(negative <= logistic.threshold))
    return Calibration(logistic, float(right), len(positive), len(negative))


def calibrate_elements(
    descriptors: NDArray[np.floating], labels: NDArray[np.str_], seed: int = 0, pairs: int = 20000
) -> Calibration:
    """Fit (w, b) for single descriptors from labelled faces; rows labelled "" match nobody."""
    rows = descriptors / np.maximum(np.linalg.norm(descriptors, axis=1, keepdims=True), 1e-12)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(labels))
    same = [
        (i, j)
        for person in np.unique(labels[labels != ""])
        for members in [order[labels[order] == person][:20]]
        for k, i in enumerate(members)
        for j in members[k + 1 :]
    ]
    if not same:
        raise InvalidInputError(
            "no person has two labelled faces: calibration needs at least one such person"
        )
    left, right = np.array(same)[rng.permutation(len(same))[:pairs]].T
    i, j = rng.integers(len(labels), size=(2, pairs))
    other = (labels[i] != labels[j]) & ((labels[i] != "") | (labels[j] != ""))
    positive = np.einsum("ij,ij->i", rows[left], rows[right])
    negative = np.einsum("ij,ij->i", rows[i[other]], rows[j[other]])
    return fit_logistic(positive, negative)


def calibrate_sets(
    queries: NDArray[np.floating], sets: NDArray[np.floating], members: NDArray[np.bool_]
) -> Calibration:
    """Fit (w, b) for queries against set vectors; `members` (queries, sets) says which pairs are true."""
    similarity = queries @ sets.T
    return fit_logistic(similarity[members], similarity[~members])
