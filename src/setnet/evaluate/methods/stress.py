"""The stress test of section 5.1: nDCG as the number of faces per set grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.measures import dcg, ndcg
from setnet.evaluate.worlds.stress_world import StressWorld
from setnet.sets import ELEMENT_LOGISTIC, Aggregator, Logistic, codec, unit

__all__ = ["StressResult", "calibrated", "gap_closed", "stress", "stress_elements"]

Floats = NDArray[np.float32]
SETS_AT_ONCE = 2048


@dataclass(frozen=True)
class StressResult:
    """One method's nDCG in percent: ``values[f][r]`` at ``faces[f]`` faces per set in repeat r."""

    method: str
    bytes_per_item: int
    logistic: Logistic
    depth: int
    faces: tuple[int, ...]
    values: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean over repeats, per number of faces."""
        return np.asarray(self.values.mean(axis=1))

    @property
    def errors(self) -> NDArray[np.float64]:
        """Standard error over repeats, per number of faces."""
        repeats = self.values.shape[1]
        return np.asarray(self.values.std(axis=1, ddof=min(1, repeats - 1)) / np.sqrt(repeats))


def stress(
    aggregator: Aggregator,
    world: StressWorld,
    *,
    faces: Sequence[int] = (2, 3, 4, 5),
    depth: int = 10,
    logistic: Logistic | None = None,
) -> StressResult:
    """Run the test for one set vector per set, in the bytes an index would hold."""
    score = logistic or aggregator.logistic
    rows = []
    for similarity, places in _similarities(aggregator, world, faces):
        rows.append(_repeat_scores(world, score.probability(similarity), places, depth))
    return StressResult(
        aggregator.name, aggregator.bytes_per_item, score, depth, tuple(faces), np.array(rows)
    )


def stress_elements(
    world: StressWorld,
    *,
    faces: Sequence[int] = (2, 3, 4, 5),
    depth: int = 10,
    logistic: Logistic = ELEMENT_LOGISTIC,
) -> StressResult:
    """Run the test with every face stored: the upper bound, faces matched greedily and never twice."""
    vectors = unit(world.descriptors)
    examples, places = np.unique(world.examples, return_inverse=True)
    places = places.reshape(world.examples.shape)
    similarity = vectors @ vectors[examples].T
    rows = []
    for count in faces:
        members = world.faces[:, :count]

        def scores(first: int, second: int, members: NDArray[np.int64] = members) -> NDArray[np.float64]:
            matched = _greedy(similarity[members, first], similarity[members, second])
            return np.asarray(logistic.probability(matched).sum(axis=0))

        rows.append(_ndcg_per_repeat(world, places, scores, depth))
    size = int(np.mean(faces) * codec.row_bytes(vectors.shape[1], 32))
    return StressResult("descriptor per element", size, logistic, depth, tuple(faces), np.array(rows))


def gap_closed(method: StressResult, mean: StressResult, elements: StressResult) -> NDArray[np.float64]:
    """Return the share of the gap between mean pooling and descriptor-per-element closed, in percent.

    NaN where there is no gap.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        return 100.0 * (method.means - mean.means) / (elements.means - mean.means)


def calibrated(
    aggregator: Aggregator,
    world: StressWorld,
    *,
    faces: Sequence[int] = (2, 3, 4, 5),
    depth: int = 10,
    relative: bool = False,
) -> Logistic:
    """Return the (w, b) that ranks ``world`` best on average over the numbers of faces.

    ``relative`` averages the logarithm of what is missing to 100 instead: where little is missing, at two
    faces, a tenth of a point then counts as much as a point where a lot is.

    Likelihood alone misjudges (w, b): most pairs are easy, the first ten ranks live in the tail. The search
    is a grid over threshold and slope, in units of the spread of similarities of strangers, refined twice.
    Only sets that some (w, b) could place among the first are ranked; a steep slope ranks by the larger of
    the two similarities and by both being high, a gentle one by their sum.
    """
    tables, sample = [], []
    for similarity, places in _similarities(aggregator, world, faces):
        tables.append(_contenders(world, similarity, places, depth))
        sample.append(similarity[::16].ravel())
    pooled = np.concatenate(sample)
    middle, spread = float(np.median(pooled)), float(pooled.std())
    known: dict[tuple[float, float], float] = {}

    def quality(candidate: tuple[float, float]) -> float:
        if candidate not in known:
            score = _logistic(candidate, middle, spread)
            values = np.array([table.ndcg(score, depth) for table in tables])
            known[candidate] = float(-np.log(100.1 - values).mean() if relative else values.mean())
        return known[candidate]

    best = max(
        ((t, k) for t in (0.0, 1.5, 3.0, 4.5, 6.0, 8.0) for k in (0.1, 0.2, 0.4, 0.8, 1.6)), key=quality
    )
    for step, factor in ((0.7, 1.4), (0.35, 1.2)):
        shifts = [(step * a, factor**b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        best = max(((best[0] + shift, best[1] * times) for shift, times in shifts), key=quality)
    return _logistic(best, middle, spread)


@dataclass(frozen=True)
class _Contenders:
    """Per query the sets worth ranking: similarities (Q, 2, C), relevance (Q, C), ideal DCG (Q,)."""

    similarity: Floats
    relevance: NDArray[np.int64]
    ideal: NDArray[np.float64]

    def ndcg(self, score: Logistic, depth: int) -> float:
        total = score.probability(self.similarity).sum(axis=1)
        order = np.argsort(-total, axis=1, kind="stable")[:, :depth]
        ranked = np.take_along_axis(self.relevance, order, axis=1)
        return float((100.0 * dcg(ranked, depth) / self.ideal).mean())


def _contenders(world: StressWorld, similarity: Floats, places: NDArray[np.int64], depth: int) -> _Contenders:
    columns = np.ascontiguousarray(similarity.T)
    keep = min(15 * depth, columns.shape[1])
    rows: list[tuple[Floats, NDArray[np.int64], float]] = []
    for query in range(places.shape[1]):
        relevance = world.relevance(query)
        ideal = float(dcg(-np.sort(-relevance)[:depth], depth))
        for first, second in np.unique(places[:, query], axis=0):
            pair = columns[[first, second]]
            tops = [
                np.argpartition(-by, keep - 1)[:keep] for by in (*pair, pair.sum(axis=0), pair.min(axis=0))
            ]
            chosen = np.unique(np.concatenate(tops))
            # padded with copies of the worst, which no score can lift among the first
            last = chosen[pair[:, chosen].sum(axis=0).argmin()]
            chosen = np.concatenate([chosen, np.full(4 * keep - len(chosen), last)])
            rows.append((pair[:, chosen], relevance[chosen], ideal))
    similarities, relevances, ideals = zip(*rows, strict=True)
    return _Contenders(np.stack(similarities), np.stack(relevances), np.array(ideals))


def _logistic(candidate: tuple[float, float], middle: float, spread: float) -> Logistic:
    threshold, slope = candidate
    w = slope / spread
    return Logistic(w=w, b=-w * (middle + threshold * spread))


def _similarities(
    aggregator: Aggregator, world: StressWorld, faces: Sequence[int]
) -> Iterator[tuple[Floats, NDArray[np.int64]]]:
    """Yield, per number of faces, set-by-example similarities and where each example's column is."""
    examples, places = np.unique(world.examples, return_inverse=True)
    queries = aggregator.describe(world.descriptors[examples]).T
    for count in faces:
        similarity = np.empty((len(world.faces), len(examples)), dtype=np.float32)
        for start in range(0, len(world.faces), SETS_AT_ONCE):
            members = world.faces[start : start + SETS_AT_ONCE, :count]
            counts = np.full(len(members), count, dtype=np.int64)
            codes = aggregator.encode(world.descriptors[members.ravel()], counts)
            similarity[start : start + len(members)] = (
                codec.decode(codes, aggregator.dim, aggregator.bits) @ queries
            )
        yield similarity, places.reshape(world.examples.shape)


def _repeat_scores(
    world: StressWorld, probability: NDArray[np.floating], places: NDArray[np.int64], depth: int
) -> NDArray[np.float64]:
    columns = np.ascontiguousarray(probability.T)
    return _ndcg_per_repeat(world, places, lambda first, second: columns[first] + columns[second], depth)


def _ndcg_per_repeat(
    world: StressWorld,
    places: NDArray[np.int64],
    scores: Callable[[int, int], NDArray[np.floating]],
    depth: int,
) -> NDArray[np.float64]:
    values = np.empty(places.shape[:2])
    known: dict[tuple[int, int], float] = {}
    for query in range(places.shape[1]):
        relevance = world.relevance(query)
        for repeat in range(len(places)):
            first, second = (int(place) for place in places[repeat, query])
            if (first, second) not in known:
                top = first_ranks(scores(first, second), depth)
                known[first, second] = float(ndcg(relevance[top], relevance, depth))
            values[repeat, query] = known[first, second]
    return np.asarray(values.mean(axis=1))


def first_ranks(scores: NDArray[np.floating], depth: int) -> NDArray[np.int64]:
    """Return the items with the ``depth`` highest scores, best first; ties in favour of the lower item."""
    bar = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    candidates = np.flatnonzero(scores >= bar)
    return candidates[np.argsort(-scores[candidates], kind="stable")][:depth]


def _greedy(first: Floats, second: Floats) -> Floats:
    """Return (2, N): each person's similarity to the face it is matched with, best pair first."""
    rows = np.arange(len(first))
    best = np.stack([first.argmax(axis=1), second.argmax(axis=1)])
    top = np.stack([first[rows, best[0]], second[rows, best[1]]])
    clash = np.flatnonzero(best[0] == best[1])
    loser = (top[0, clash] >= top[1, clash]).astype(np.int64)
    for person, table in enumerate((first, second)):
        losing = clash[loser == person]
        others = table[losing]
        others[np.arange(len(losing)), best[person, losing]] = -np.inf
        top[person, losing] = others.max(axis=1)
    return top
