"""Fitting the score's (w, b) by how well it ranks sets of people who are not in the test.

Likelihood alone chooses badly: most pairs are easy, and the first ten ranks are decided by the few hard ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.measures import dcg
from setnet.evaluate.representations import SetVectors
from setnet.evaluate.stress_trial import (
    PairSimilarities,
    Representation,
    StressTest,
    measure_ranking,
    stress_world,
)
from setnet.heads import Logistic, SetNet

Floats = NDArray[np.float32]
# The search: thresholds and slopes in units of the spread of non-matches' similarities, then finer steps.
THRESHOLDS = (0.0, 1.5, 3.0, 4.5, 6.0, 8.0)
SLOPES = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2)
REFINEMENTS = ((0.7, 1.4), (0.35, 1.2))
MIN_PEOPLE = 10
MIN_DISTRACTORS = 20
SETS, QUERIES, REPEATS = 6000, 80, 2


@dataclass(frozen=True)
class HeadCalibration:
    """A head's best (w, b), and its nDCG@10 in percent, over 2 to 5 faces, before and after."""

    logistic: Logistic
    before: float
    after: float


def calibrate_head(
    net: SetNet, descriptors: NDArray[np.float32], labels: NDArray[np.str_], seed: int = 0
) -> HeadCalibration:
    """Fit a head's (w, b) on random sets of labelled faces, queried by other faces of the same people.

    People of one face and unknown people are the distractors; where there are hardly any, every fifth person
    is made one.
    """
    names, photos = np.unique(labels, return_counts=True)
    if (known := int(((photos >= 2) & (names != "")).sum())) < MIN_PEOPLE:
        raise InvalidInputError(
            f"{known} people have two labelled faces or more: calibrating a head needs {MIN_PEOPLE}"
        )
    world = stress_world(
        descriptors, with_distractors(labels, seed), sets=SETS, queries=QUERIES, repeats=REPEATS, seed=seed
    )
    test = StressTest(world)
    logistic = best_logistic(SetVectors(net), test)
    before, after = (
        float(np.mean([*measure_ranking(SetVectors(net), [test], one).values.values()]))
        for one in (net.logistic, logistic)
    )
    return HeadCalibration(logistic, before, after)


def best_logistic(kept: Representation, test: StressTest) -> Logistic:
    """Return the (w, b) that ranks best, over all numbers of faces: of a grid and of its neighbourhood."""
    tables, samples = [], []
    for one in kept.similarities(test):
        tables.append(_contenders(one, test))
        samples.append(one.sample)
    pooled = np.concatenate(samples)
    middle, spread = float(np.median(pooled)), float(pooled.std())

    def logistic(threshold: float, slope: float) -> Logistic:
        w = slope / spread
        return Logistic(w=w, b=-w * (middle + threshold * spread))

    @cache
    def quality(candidate: tuple[float, float]) -> float:
        return float(np.mean([table.ndcg(logistic(*candidate), test.depths[0]) for table in tables]))

    best = max(((threshold, slope) for threshold in THRESHOLDS for slope in SLOPES), key=quality)
    for step, factor in REFINEMENTS:
        shifts = [(step * a, factor**b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        best = max(((best[0] + shift, best[1] * times) for shift, times in shifts), key=quality)
    return logistic(*best)


@dataclass(frozen=True)
class _Contenders:
    """Per query the sets worth ranking: similarities (Q, 2, C), relevance (Q, C), ideal DCG (Q,)."""

    similarity: Floats
    relevance: NDArray[np.uint8]
    ideal: NDArray[np.float64]

    def ndcg(self, score: Logistic, depth: int) -> float:
        total = score.probability(self.similarity).sum(axis=1)
        order = _first_in_rows(total, depth)
        ranked = np.take_along_axis(self.relevance, order, axis=1)
        return float((100.0 * dcg(ranked, depth) / self.ideal).mean())


def _contenders(similarities: PairSimilarities, test: StressTest) -> _Contenders:
    """Keep only sets that some (w, b) could place among the first.

    A steep slope ranks by the larger of the two similarities and by both being high, a gentle one by their
    sum.
    """
    keep = min(15 * test.depths[0], len(test.world.faces))
    rows: list[tuple[Floats, NDArray[np.uint8], float]] = []
    for query, relevance in enumerate(test.relevance):
        for first, second in np.unique(test.places[:, query], axis=0):
            pair = similarities.pair(first, second)
            tops = [
                np.argpartition(-by, keep - 1)[:keep] for by in (*pair, pair.sum(axis=0), pair.min(axis=0))
            ]
            chosen = np.unique(np.concatenate(tops))
            rows.append((pair[:, chosen], relevance[chosen], float(test.ideal[query, 0])))
    kept, relevances, ideals = zip(*rows, strict=True)
    width = max(map(len, relevances))
    # padded with copies of the worst, which no score can lift among the first
    places = [_pad_places(pair.sum(axis=0).argmin(), pair.shape[1], width) for pair in kept]
    return _Contenders(
        np.stack([pair[:, place] for pair, place in zip(kept, places, strict=True)]),
        np.stack([relevance[place] for relevance, place in zip(relevances, places, strict=True)]),
        np.array(ideals),
    )


def _pad_places(last: np.intp, count: int, width: int) -> NDArray[np.int64]:
    """Return the places of `count` columns, then `last` again up to `width`."""
    return np.concatenate([np.arange(count), np.full(width - count, last)])


def _first_in_rows(scores: NDArray[np.float64], depth: int) -> NDArray[np.int64]:
    """Return, per row, the positions of the ``depth`` highest scores, best first, ties to the lower."""
    depth = min(depth, scores.shape[1])
    bar = np.partition(scores, scores.shape[1] - depth, axis=1)[:, [scores.shape[1] - depth]]
    reached = scores >= bar
    if int(reached.sum()) > depth * len(scores):  # ties at the bar
        return np.argsort(-scores, axis=1, kind="stable")[:, :depth]
    first = np.nonzero(reached)[1].reshape(-1, depth)
    order = np.argsort(-np.take_along_axis(scores, first, axis=1), axis=1, kind="stable")
    return np.take_along_axis(first, order, axis=1)


def with_distractors(
    labels: NDArray[np.str_], seed: int, min_faces: int = MIN_DISTRACTORS
) -> NDArray[np.str_]:
    """Return the labels; with fewer than `min_faces` faces of others, every fifth person's are made such."""
    names, owner, photos = np.unique(labels, return_inverse=True, return_counts=True)
    known = np.flatnonzero((photos >= 2) & (names != ""))
    if np.isin(owner, known, invert=True).sum() >= min_faces:
        return labels
    aside = np.random.default_rng(seed).permutation(known)[: max(2, len(known) // 5)]
    return np.where(np.isin(owner, aside), "", labels)
