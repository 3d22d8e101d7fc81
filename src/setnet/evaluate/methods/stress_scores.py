"""nDCG at several depths of one method on a stress world, fast: the same numbers as `stress`.

The truth is the same for every method and repeat, so ideal gains are computed once per query; scores are
summed and ranked one pair of examples at a time, so that no large table of probabilities exists.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.measures import dcg
from setnet.evaluate.methods.stress import first_ranks
from setnet.evaluate.worlds.stress_world import StressWorld
from setnet.sets import Aggregator, Logistic, codec, unit

__all__ = [
    "FACES",
    "Judge",
    "Matches",
    "element_matches",
    "element_values",
    "probabilities",
    "set_matches",
    "set_values",
]

Floats = NDArray[np.float32]
SETS_AT_ONCE = 4096
FACES = (2, 3, 4, 5)
Matches = Callable[[int, int, int], Floats]


@dataclass(frozen=True, eq=False)
class Judge:
    """Knows the truth of a stress world and judges scores against it."""

    world: StressWorld
    depths: tuple[int, ...] = (10, 30)

    @cached_property
    def _relevance(self) -> list[NDArray[np.uint8]]:
        return [self.world.relevance(q).astype(np.uint8) for q in range(len(self.world.queries))]

    @cached_property
    def _ideal(self) -> list[dict[int, float]]:
        ideal = []
        for relevance in self._relevance:
            best = np.repeat([2, 1], [(relevance == 2).sum(), (relevance == 1).sum()])
            ideal.append({depth: float(dcg(best, depth)) for depth in self.depths})
        return ideal

    @cached_property
    def examples(self) -> NDArray[np.int64]:
        """Rows of all example faces, each once."""
        return np.unique(self.world.examples)

    def values(self, scores: Callable[[int, int], NDArray[np.floating]]) -> dict[int, list[float]]:
        """Return, per depth, the mean nDCG of each repeat; ``scores`` takes two places in `examples`."""
        places = np.searchsorted(self.examples, self.world.examples)
        found = np.empty((len(self.depths), *places.shape[:2]))
        known: dict[tuple[int, int], list[float]] = {}
        for query in range(places.shape[1]):
            for repeat in range(len(places)):
                pair = (int(places[repeat, query, 0]), int(places[repeat, query, 1]))
                if pair not in known:
                    known[pair] = self._ndcg(query, scores(*pair))
                found[:, repeat, query] = known[pair]
        means = found.mean(axis=2)
        return {depth: means[i].tolist() for i, depth in enumerate(self.depths)}

    def _ndcg(self, query: int, scores: NDArray[np.floating]) -> list[float]:
        top = first_ranks(scores, min(max(self.depths), len(scores)))
        ranked = self._relevance[query][top]
        return [100.0 * float(dcg(ranked, depth)) / self._ideal[query][depth] for depth in self.depths]


def set_values(
    aggregator: Aggregator, logistic: Logistic, judge: Judge, faces: Sequence[int] = FACES
) -> dict[int, dict[int, list[float]]]:
    """Return per number of faces and depth the nDCG of each repeat, for one set vector per set."""
    values = {}
    for count in faces:
        table = _set_similarities(aggregator, judge, count)
        probabilities(table, logistic)
        values[count] = judge.values(lambda a, b, p=table: p[a] + p[b])  # type: ignore[misc]
    return values


def element_values(
    logistic: Logistic, judge: Judge, faces: Sequence[int] = FACES, change: Callable[[Floats], Floats] = unit
) -> dict[int, dict[int, list[float]]]:
    """Return the same with every face stored, matched greedily; ``change`` may whiten the descriptors."""
    matched = element_matches(judge, change)
    values = {}
    for count in faces:

        def scores(a: int, b: int, count: int = count) -> Floats:
            both = matched(a, b, count)
            probabilities(both, logistic)
            return np.asarray(both[0] + both[1])

        values[count] = judge.values(scores)
    return values


def set_matches(aggregator: Aggregator, judge: Judge, faces: Sequence[int] = FACES) -> Matches:
    """Return the function that gives (2, N) similarities of two examples with all sets of so many faces."""
    tables = {count: _set_similarities(aggregator, judge, count) for count in faces}
    return lambda a, b, count: tables[count][[a, b]]


def element_matches(judge: Judge, change: Callable[[Floats], Floats] = unit) -> Matches:
    """Return the same for sets of which every face is stored."""
    world = judge.world
    vectors = change(world.descriptors)
    similarity = np.ascontiguousarray(vectors[judge.examples] @ vectors.T)
    columns = [np.ascontiguousarray(world.faces[:, column]) for column in range(world.faces.shape[1])]

    def matched(a: int, b: int, count: int) -> Floats:
        first, second = (np.stack([similarity[e][c] for c in columns[:count]]) for e in (a, b))
        return np.stack(_greedy(first, second))

    return matched


def probabilities(similarity: Floats, logistic: Logistic) -> None:
    """Turn similarities into probabilities where they stand."""
    similarity *= np.float32(-logistic.w)
    similarity -= np.float32(logistic.b)
    np.minimum(similarity, np.float32(80.0), out=similarity)
    np.exp(similarity, out=similarity)
    similarity += np.float32(1.0)
    np.reciprocal(similarity, out=similarity)


def _set_similarities(aggregator: Aggregator, judge: Judge, count: int) -> Floats:
    world = judge.world
    queries = np.ascontiguousarray(aggregator.describe(world.descriptors[judge.examples]).T)
    similarity = np.empty((len(judge.examples), len(world.faces)), dtype=np.float32)
    for start in range(0, len(world.faces), SETS_AT_ONCE):
        members = world.faces[start : start + SETS_AT_ONCE, :count]
        counts = np.full(len(members), count, dtype=np.int64)
        codes = aggregator.encode(world.descriptors[members.ravel()], counts)
        vectors = codec.decode(codes, aggregator.dim, aggregator.bits)
        similarity[:, start : start + len(members)] = (vectors @ queries).T
    return similarity


def _greedy(first: Floats, second: Floats) -> tuple[Floats, Floats]:
    """Return each person's similarity to the face it is matched with; (faces, N) tables, best pair first."""
    best = first.argmax(axis=0), second.argmax(axis=0)
    top = first.max(axis=0), second.max(axis=0)
    clash = best[0] == best[1]
    for person, table in enumerate((first, second)):
        mine = top[0] >= top[1] if person == 1 else top[0] < top[1]
        losing = np.flatnonzero(clash & mine)
        others = table[:, losing]
        others[best[person][losing], np.arange(len(losing))] = -np.inf
        top[person][losing] = others.max(axis=0)
    return top
