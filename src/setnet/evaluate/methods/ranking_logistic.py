"""Fitting (w, b) by how well it ranks: likelihood alone misjudges, the first ten ranks live in the tail."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.methods.stress_scores import FACES, Judge, Matches, probabilities
from setnet.sets import Logistic

__all__ = ["fit_by_ranking"]

THRESHOLDS = (2.0, 3.0, 4.0, 5.0, 6.5, 8.0)
SLOPES = (0.4, 0.8, 1.6, 3.2)


def fit_by_ranking(matches: Matches, judge: Judge) -> Logistic:
    """Return the (w, b) with the best mean nDCG over the numbers of faces.

    The search is a grid over threshold and slope, in units of the spread of strangers' similarities above
    their median, refined once. Among near-equals (0.05 points) the gentlest slope wins: it leans least on
    the few queries at hand.
    """
    middle, spread = _strangers(matches, judge)
    matched = cache(matches)  # matching does not depend on the candidate

    def at(threshold: float, slope: float) -> Logistic:
        w = slope / spread
        return Logistic(w, -w * (middle + threshold * spread))

    def quality(threshold: float, slope: float) -> float:
        logistic = at(threshold, slope)
        found = []
        for count in FACES:

            def scores(a: int, b: int, count: int = count) -> NDArray[np.float32]:
                both = matched(a, b, count).copy()
                probabilities(both, logistic)
                return np.asarray(both[0] + both[1])

            found.append(np.mean(judge.values(scores)[judge.depths[0]]))
        return float(np.mean(found))

    coarse = {(t, k): quality(t, k) for t in THRESHOLDS for k in SLOPES}
    t, k = _gentle(coarse)
    near = [(t + dt, k * dk) for dt in (-0.5, 0.0, 0.5) for dk in (0.7, 1.0, 1.4)]
    return at(*_gentle(coarse | {pair: quality(*pair) for pair in near if pair not in coarse}))


def _gentle(found: dict[tuple[float, float], float]) -> tuple[float, float]:
    bar = max(found.values()) - 0.05
    return min((pair for pair, value in found.items() if value >= bar), key=lambda pair: pair[1])


def _strangers(matches: Matches, judge: Judge) -> tuple[float, float]:
    count = len(judge.examples)
    some = np.concatenate([matches(a, (a + 1) % count, 3)[:, ::8].ravel() for a in range(0, count, 4)])
    return float(np.median(some)), float(some.std())
