"""Logistic fits: similarity to probability, of elements, of sets, and of a whole descriptor model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.heads import Logistic, unit

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Calibration:
    """A fitted (w, b) and its balanced accuracy: the share of pairs on the right side of one half."""

    logistic: Logistic
    accuracy: float
    positives: int
    negatives: int


def fit_logistic(positive: NDArray[np.floating], negative: NDArray[np.floating]) -> Calibration:
    """Return the (w, b) of the balanced logistic loss (eq. 2) for genuine and non-matching similarities.

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

    slope, shift = _minimise(z, y, weight)
    w, b = slope / scale, shift - slope * centre / scale
    logistic = Logistic(float(w), float(b))
    right = 0.5 * (np.mean(positive > logistic.threshold) + np.mean(negative <= logistic.threshold))
    return Calibration(logistic, float(right), len(positive), len(negative))


_MIN_SLOPE = 1e-3  # a score must rise with the similarity
_RIDGE = 1e-6  # keeps w finite when the two kinds of pairs do not overlap at all


def _minimise(
    z: NDArray[np.float64], y: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[float, float]:
    """Return slope and shift of the least weighted logistic loss, by Newton's method with halved steps."""
    theta = np.array([1.0, 0.0])
    columns = np.stack([z, np.ones_like(z)])
    free = 2  # parameters: the shift alone once the slope has met its bound

    def loss(theta: NDArray[np.float64]) -> float:
        return float(weight @ np.logaddexp(0.0, -y * (theta @ columns)) + _RIDGE * theta[0] ** 2)

    for _ in range(200):
        wrong = 1.0 / (1.0 + np.exp(np.clip(y * (theta @ columns), -500, 500)))
        gradient = columns @ (-weight * y * wrong) + [2 * _RIDGE * theta[0], 0.0]
        curvature = (columns * (weight * wrong * (1 - wrong))) @ columns.T + np.diag([2 * _RIDGE, 1e-12])
        step = np.zeros(2)
        step[-free:] = np.linalg.solve(curvature[-free:, -free:], gradient[-free:])
        size, before = 1.0, loss(theta)
        while loss(theta - size * step) > before and size > 1e-9:
            size /= 2
        theta = theta - size * step
        if theta[0] < _MIN_SLOPE:
            theta[0], free = _MIN_SLOPE, 1
        elif np.abs(size * step).max() < 1e-10:
            break
    return float(theta[0]), float(theta[1])


PAIRS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Similarities:
    """Sampled similarities of pairs of faces: of one person, and of different people."""

    same: Floats
    different: Floats


def similarities(
    rows: Floats, owner: NDArray[np.int64], rng: np.random.Generator, pairs: int = 100_000
) -> Similarities:
    """Return similarities of random pairs of unit rows; in genuine pairs every person counts the same.

    `owner` says whose face each row is; -1 are unknown people, who are in pairs with known ones only.
    """
    order = np.argsort(owner, kind="stable")
    people, start, counts = np.unique(owner[order], return_index=True, return_counts=True)
    several = np.flatnonzero((counts > 1) & (people >= 0))
    if not len(several):
        raise InvalidInputError("no person has two faces: nothing to compare; label two faces of one person")
    person = several[rng.integers(len(several), size=pairs)]
    first = rng.integers(counts[person])
    second = (first + rng.integers(1, counts[person])) % counts[person]
    i, j = order[start[person] + first], order[start[person] + second]
    same = _dots(rows, i, j)
    i, j = rng.integers(len(rows), size=(2, pairs))
    other = owner[i] != owner[j]
    return Similarities(same, _dots(rows, i[other], j[other]))


def _dots(rows: Floats, i: NDArray[np.int64], j: NDArray[np.int64]) -> Floats:
    """Return the dot product of each pair, some pairs at a time: all wide vectors would fill the memory."""
    parts = [
        np.einsum("ij,ij->i", rows[i[at : at + PAIRS_AT_ONCE]], rows[j[at : at + PAIRS_AT_ONCE]])
        for at in range(0, len(i), PAIRS_AT_ONCE)
    ]
    return np.concatenate(parts)


def calibrate_elements(descriptors: NDArray[np.floating], labels: NDArray[np.str_]) -> Calibration:
    """Fit (w, b) for single descriptors from labelled faces; rows labelled "" match nobody."""
    names, owner = np.unique(labels, return_inverse=True)
    owner = np.where(names[owner] == "", -1, owner)
    pairs = similarities(unit(np.asarray(descriptors, np.float32)), owner, np.random.default_rng(0), 20_000)
    return fit_logistic(pairs.same, pairs.different)


def calibrate_sets(
    queries: NDArray[np.floating], sets: NDArray[np.floating], members: NDArray[np.bool_]
) -> Calibration:
    """Fit (w, b) for queries against set vectors; `members` (queries, sets) says which pairs are true."""
    similarity = queries @ sets.T
    return fit_logistic(similarity[members], similarity[~members])


FALSE_MATCH_RATE = 1e-4
# The score of a single face is one half where SFace's similarity is 0.40, which 3 in 10,000 non-matching
# pairs reach, and as steep for every model as 20 is between SFace's mean non-match (0.10) and genuine pair
# (0.68).
SCORE_RATE, SCORE_STEEPNESS = 3e-4, 11.6
_MIN_FALSE_MATCHES = 10  # a rate that fewer pairs decide is no rate
_MAX_FACES = 20_000
_ROWS = 512


@dataclass(frozen=True)
class MatchRates:
    """How well one threshold divides pairs of faces; in `true_matches` every person counts the same."""

    threshold: float
    false_matches: float
    true_matches: float
    non_match_pairs: int
    genuine_pairs: int


def fit_model_calibration(descriptors: Floats, labels: NDArray[np.str_], seed: int = 0) -> dict[str, Any]:
    """Return the calibration of the model that made these descriptors of labelled faces.

    `threshold` is the similarity that non-matching pairs reach at `false_match_rate`; `w` and `b` are those
    of the score of a single face; `faces` and `people` say what it was fitted to. Rows labelled "" are of
    unknown people, who are nobody else's match.
    """
    pairs = _Pairs(*_sample_rows(descriptors, labels, seed))
    score = pairs.threshold(SCORE_RATE)
    w = SCORE_STEEPNESS / max(pairs.mean_genuine - pairs.mean_non_match, 1e-6)
    logistic = Logistic(round(w, 3), round(-w * score, 3))
    return {
        "threshold": round(pairs.threshold(FALSE_MATCH_RATE), 4),
        "false_match_rate": FALSE_MATCH_RATE,
        "w": logistic.w,
        "b": logistic.b,
        "faces": pairs.faces,
        "people": pairs.people,
    }


def match_rates(descriptors: Floats, labels: NDArray[np.str_], threshold: float) -> MatchRates:
    """Return how many pairs of labelled faces reach a threshold, genuine ones and others."""
    pairs = _Pairs(*_sample_rows(descriptors, labels, 0))
    non_matches = pairs.false_matches(threshold) / pairs.non_matches
    reached = float(np.average(pairs.genuine >= threshold, weights=pairs.weights))
    return MatchRates(threshold, non_matches, reached, pairs.non_matches, len(pairs.genuine))


def _sample_rows(descriptors: Floats, labels: NDArray[np.str_], seed: int) -> tuple[Floats, NDArray[np.str_]]:
    """Return unit rows, at most so many that all their pairs can be looked at."""
    rows = np.random.default_rng(seed).permutation(len(labels))[:_MAX_FACES]
    return unit(np.ascontiguousarray(descriptors[rows], np.float32)), labels[rows]


class _Pairs:
    """All pairs of some faces: the similarities of genuine ones, and how many others reach what.

    Impostor pairs are too many to keep; they are counted in steps of 1 in 100,000.
    """

    _STEPS = 100_000

    def __init__(self, rows: Floats, labels: NDArray[np.str_]) -> None:
        names, self._owner = np.unique(labels, return_inverse=True)
        self._rows, self._known = rows, labels != ""
        counts = np.bincount(self._owner, minlength=len(names))
        self.faces, self.people = len(rows), int((names != "").sum())
        histogram = np.zeros(2 * self._STEPS + 2, np.int64)
        genuine, weights = [np.zeros(0, np.float32)], [np.zeros(0)]
        for first, similarity, later in self._blocks():
            same = later & (self._owner[first : first + _ROWS, None] == self._owner)
            other = later & ~same & (self._known[first : first + _ROWS, None] | self._known)
            same &= self._known
            histogram += np.bincount(self._step(similarity[other]), minlength=len(histogram))
            genuine.append(similarity[same])
            count = counts[self._owner[first + np.nonzero(same)[0]]].astype(np.float64)
            weights.append(2 / (count * (count - 1)))
        self.genuine, self.weights = np.concatenate(genuine), np.concatenate(weights)
        self._reached = np.cumsum(histogram[::-1])[::-1]
        self.non_matches = int(histogram.sum())
        if not len(self.genuine):
            raise InvalidInputError("no person has two labelled faces: calibration needs people who have")
        if self.non_matches * FALSE_MATCH_RATE < _MIN_FALSE_MATCHES:
            raise InvalidInputError(
                f"{self.non_matches:,} pairs of different people are too few to find what one in "
                f"{1 / FALSE_MATCH_RATE:,.0f} reaches: give about 500 labelled faces or more"
            )
        steps = np.arange(len(histogram)) / self._STEPS - 1
        self.mean_non_match = float((steps * histogram).sum() / self.non_matches)
        self.mean_genuine = float(np.average(self.genuine, weights=self.weights))

    def _blocks(self) -> Iterator[tuple[int, Floats, NDArray[np.bool_]]]:
        """Yield similarities of some rows with all, and which of them are of a later row."""
        places = np.arange(len(self._rows))
        for first in range(0, len(self._rows), _ROWS):
            some = self._rows[first : first + _ROWS]
            yield first, some @ self._rows.T, places > places[first : first + _ROWS, None]

    def _step(self, similarity: Floats | float) -> Any:
        steps = np.ceil((np.asarray(similarity, np.float64) + 1) * self._STEPS)
        return np.clip(steps, 0, 2 * self._STEPS + 1).astype(np.int64)  # rounding may lead past 1

    def threshold(self, rate: float) -> float:
        """Return the similarity that non-matching pairs reach at a rate."""
        return float(np.argmax(self._reached <= rate * self.non_matches) / self._STEPS - 1)

    def false_matches(self, threshold: float) -> int:
        """Return how many non-matching pairs reach a threshold."""
        return int(self._reached[int(self._step(threshold))])
