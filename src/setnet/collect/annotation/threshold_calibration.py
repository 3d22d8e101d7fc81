"""Thresholds of equal precision for the descriptor in use: the paper's belong to its own classifier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.collect.annotation.classifier import softmax
from setnet.collect.annotation.portrait_trials import fit_softmax, portrait_trials
from setnet.collect.annotation.rules import AnnotationRules
from setnet.errors import InvalidInputError

LEAST_TRIALS = 50
# Share of faces that are of a person of the list who was not searched for: by the paper's table 2 about
# 21,000 of 546,000 celebrities are a third, fourth or later one in their photo.
BYSTANDERS = 0.04
_QUERY_NAMES = 2
_GRID = np.round(np.arange(0.01, 1.0, 0.01), 2)


@dataclass(frozen=True)
class CalibratedThreshold:
    """A threshold: the one in use with its precision, and the one that has the precision asked for."""

    name: str
    value: float
    precision: float
    suggested: float
    suggested_precision: float


@dataclass(frozen=True)
class RuleCalibration:
    """Suggested rules, each threshold with its precision, and on how many portraits they were measured."""

    rules: AnnotationRules
    thresholds: tuple[CalibratedThreshold, ...]
    portraits: int
    people: int


def calibrate_rules(
    gallery: Mapping[str, NDArray[np.float32]],
    rules: AnnotationRules,
    strangers: float,
    precision: float = 0.99,
) -> RuleCalibration:
    """Return thresholds whose precision is the same for this descriptor and list of names.

    Every portrait is tried twice: with its person in the list, and as a stranger with that name taken out.
    Accepted names are to be right in ``precision`` of the cases, and the best name of a face that is called
    unknown wrong in as many (the paper: "always wrong"). The paper does not say how precise its own
    thresholds were.
    """
    trials = portrait_trials(gallery)
    if len(trials) < LEAST_TRIALS:
        raise InvalidInputError(
            f"{len(trials)} portraits are of people with two or more; to calibrate, {LEAST_TRIALS} are needed"
        )
    sharpness, nobody = fit_softmax(trials, strangers)
    scores = softmax(sharpness * trials.similarities, nobody)
    as_strangers = softmax(sharpness * trials.as_strangers(), nobody)
    top, people = scores.max(axis=1), scores.shape[1]
    is_right = scores.argmax(axis=1) == trials.own
    in_query = _Counts(
        right=(top[is_right], 1 - strangers - BYSTANDERS),
        wrong=[
            (top[~is_right], (1 - strangers - BYSTANDERS) / max(1, people - 1)),
            (as_strangers.max(axis=1), strangers * _QUERY_NAMES / people),
        ],
        trials=len(trials),
    )
    elsewhere = _Counts(
        right=(top[is_right], BYSTANDERS),
        wrong=[(top[~is_right], BYSTANDERS), (as_strangers.max(axis=1), strangers)],
        trials=len(trials),
    )
    wrong_below = [1 - elsewhere.share_right_below(t) for t in _GRID.tolist()]
    accept_query = _first(_GRID, [in_query.precision(t) for t in _GRID.tolist()], precision)
    accept_other = _first(_GRID, [elsewhere.precision(t) for t in _GRID.tolist()], precision)
    low = [t for t, wrong in zip(_GRID.tolist(), wrong_below, strict=True) if wrong >= precision]
    unknown_below = min(max(low, default=0.0), accept_other)
    made = AnnotationRules(accept_query, accept_other, unknown_below, rules.best)

    def row(name: str, measure: object) -> CalibratedThreshold:
        assert callable(measure)
        old, new = float(getattr(rules, name)), float(getattr(made, name))
        return CalibratedThreshold(name, old, float(measure(old)), new, float(measure(new)))

    thresholds = (
        row("accept_query", in_query.precision),
        row("accept_other", elsewhere.precision),
        row("unknown_below", lambda t: 1 - elsewhere.share_right_below(t)),
    )
    return RuleCalibration(made, thresholds, len(trials), len(set(trials.own.tolist())))


@dataclass(frozen=True, eq=False)
class _Counts:
    """Scores of right and of wrong best names, each part with the share of faces it stands for."""

    right: tuple[NDArray[np.float64], float]
    wrong: list[tuple[NDArray[np.float64], float]]
    trials: int

    def precision(self, threshold: float) -> float:
        right = (self.right[0] >= threshold).sum() * self.right[1]
        wrong = sum((scores >= threshold).sum() * weight for scores, weight in self.wrong)
        return float(right / (right + wrong)) if right + wrong else 1.0

    def share_right_below(self, threshold: float) -> float:
        right = (self.right[0] < threshold).sum() * self.right[1]
        wrong = sum((scores < threshold).sum() * weight for scores, weight in self.wrong)
        return float(right / (right + wrong)) if right + wrong else 0.0


def _first(grid: NDArray[np.float64], precisions: list[float], wanted: float) -> float:
    """Return the least threshold from which on the precision stays high enough; the last if there is none."""
    short = [number for number, found in enumerate(precisions) if found < wanted]
    return float(grid[min(short[-1] + 1, len(grid) - 1)]) if short else float(grid[0])
