"""The stress test (section 5.1): sets of chosen sizes, and how well two people are found in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.measures import Measured, dcg, people_draws
from setnet.heads import Logistic

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
FACES = (2, 3, 4, 5)  # of a set
DISTRACTORS = 3


@dataclass(frozen=True)
class StressWorld:
    """Sets over rows of a descriptor array; the data set of F faces per set takes the first F columns."""

    descriptors: NDArray[np.float32]  # (n, De) float32
    faces: Ints  # (N, 2 + distractors) rows of ``descriptors``: two labelled faces, then distractors
    people: Ints  # (N, 2) the labelled people of each set
    queries: Ints  # (Q, 2) pairs of people who do appear together in some set
    examples: Ints  # (repeats, Q, 2) rows of ``descriptors``: a query face of each, never a face of any set

    def relevance(self, query: int) -> Ints:
        """Return how many of the query's people each set holds: the same for any number of distractors."""
        held: Ints = np.isin(self.people, self.queries[query]).sum(axis=1)
        return held


def stress_world(
    descriptors: NDArray[np.float32],
    labels: NDArray[np.str_],
    *,
    sets: int = 64_000,
    queries: int = 100,
    repeats: int = 10,
    seed: int = 0,
    distractors: int = DISTRACTORS,
) -> StressWorld:
    """Synthesise the stress test's sets and queries from labelled descriptors.

    People of two or more photos are labelled; people of one photo and unknown people (empty label) are the
    distractors. Of a person with n >= 3 photos, n // 2 (at most ``repeats``) are kept for queries and enter
    no set; only such people are queried.
    """
    rng = np.random.default_rng(seed)
    names, owner, photos = np.unique(labels, return_inverse=True, return_counts=True)
    known = (photos >= 2) & (names != "")
    unknown = np.flatnonzero(~known[owner])
    if known.sum() < 3 or len(unknown) < distractors:
        raise InvalidInputError(
            f"a stress test needs people with two or more faces and {distractors} or more faces of others; "
            f"got {known.sum()} such people and {len(unknown)} other faces"
        )
    in_sets, for_queries = _divide_photos(owner, np.flatnonzero(known), photos, repeats, rng)
    people = _distinct_pairs(np.flatnonzero(known), sets, rng)
    faces = np.empty((sets, 2 + distractors), dtype=np.int64)
    for column in range(2):
        faces[:, column] = _one_each(in_sets, people[:, column], rng)
    for row in range(sets):
        faces[row, 2:] = rng.choice(unknown, distractors, replace=False, shuffle=False)
    pairs = np.unique(np.sort(people, axis=1), axis=0)
    pairs = pairs[np.isin(pairs, list(for_queries)).all(axis=1)]
    if not len(pairs):
        raise InvalidInputError("no set holds two people with three or more faces each: nothing to query")
    chosen = pairs[rng.choice(len(pairs), min(queries, len(pairs)), replace=False)]
    examples = np.stack([_turn(for_queries, chosen, repeat) for repeat in range(repeats)])
    return StressWorld(descriptors, faces, people, chosen, examples)


def _divide_photos(
    owner: Ints, people: Ints, photos: Ints, repeats: int, rng: np.random.Generator
) -> tuple[dict[int, Ints], dict[int, Ints]]:
    """Return each person's faces for sets, and for people of three or more photos those for queries."""
    order = np.argsort(owner, kind="stable")
    starts = np.concatenate([[0], np.cumsum(photos)])
    in_sets: dict[int, Ints] = {}
    for_queries: dict[int, Ints] = {}
    for person in people:
        own = rng.permutation(order[starts[person] : starts[person + 1]])
        kept = min(len(own) // 2, repeats) if len(own) >= 3 else 0
        in_sets[int(person)] = own[kept:]
        if kept:
            for_queries[int(person)] = own[:kept]
    return in_sets, for_queries


def _distinct_pairs(people: Ints, count: int, rng: np.random.Generator) -> Ints:
    first = rng.integers(len(people), size=count)
    second = (first + rng.integers(1, len(people), size=count)) % len(people)
    return people[np.stack([first, second], axis=1)]


def _one_each(faces: dict[int, Ints], people: Ints, rng: np.random.Generator) -> Ints:
    draws = rng.random(len(people))
    return np.array([faces[p][int(u * len(faces[p]))] for p, u in zip(people.tolist(), draws, strict=True)])


def _turn(faces: dict[int, Ints], pairs: Ints, repeat: int) -> Ints:
    return np.array([[faces[p][repeat % len(faces[p])] for p in pair] for pair in pairs.tolist()])


@dataclass(frozen=True, eq=False)
class PairSimilarities:
    """A method's similarities of query faces with all N sets of one size."""

    # returns, for two query faces searched for together, a fresh (2, N) array; faces are given by their
    # places in `StressTest.examples`
    pair: Callable[[int, int], Floats]
    sample: Floats  # similarities of all query faces with some sets: nearly all of them of non-matches


@dataclass(frozen=True, eq=False)
class StressTest:
    """Measures rankings of a stress world against its ground truth, which is the same for every method."""

    world: StressWorld
    depths: tuple[int, ...] = (10,)
    faces: tuple[int, ...] = FACES

    def with_descriptors(self, descriptors: Floats) -> StressTest:
        """Return the same test of other descriptors, with what is known of the ground truth."""
        other = replace(self, world=replace(self.world, descriptors=descriptors))
        for known in ("examples", "places", "relevance", "ideal"):
            other.__dict__[known] = getattr(self, known)
        return other

    @cached_property
    def examples(self) -> NDArray[np.int64]:
        """Rows of all query faces, each once."""
        return np.unique(self.world.examples)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """(repeats, Q, 2) places of the query faces in `examples`."""
        return np.searchsorted(self.examples, self.world.examples)

    @cached_property
    def relevance(self) -> list[NDArray[np.uint8]]:
        """Per query, how many of its people each set holds."""
        return [self.world.relevance(query).astype(np.uint8) for query in range(len(self.world.queries))]

    @cached_property
    def ideal(self) -> NDArray[np.float64]:
        """(Q, depths) DCG of the best ranking."""
        best = [np.repeat([2, 1], [(one == 2).sum(), (one == 1).sum()]) for one in self.relevance]
        return np.array([[float(dcg(ranked, depth)) for depth in self.depths] for ranked in best])

    def ndcg(self, similarities: PairSimilarities, logistic: Logistic) -> NDArray[np.float64]:
        """Return (depths, repeats, queries): nDCG in percent."""
        values = np.empty((len(self.depths), *self.places.shape[:2]))
        known: dict[tuple[int, int], NDArray[np.float64]] = {}
        for query in range(self.places.shape[1]):
            for repeat, (first, second) in enumerate(self.places[:, query].tolist()):
                if (first, second) not in known:
                    probability = probability_in_place(similarities.pair(first, second), logistic)
                    known[first, second] = self._ndcg(query, probability[0] + probability[1])
                values[:, repeat, query] = known[first, second]
        return values

    def _ndcg(self, query: int, scores: Floats) -> NDArray[np.float64]:
        ranked = self.relevance[query][first_ranks(scores, min(max(self.depths), len(scores)))]
        gains = np.array([float(dcg(ranked, depth)) for depth in self.depths])
        return np.asarray(100.0 * gains / self.ideal[query])


class Representation(Protocol):
    """What is kept of a set."""

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities of query faces with all sets, by number of faces."""


def ndcg_name(depth: int, elements: int, test: str = "") -> str:
    """Return the name of a measure: nDCG of a test (the main one is "") with so many elements to a set.

    >>> ndcg_name(10, 2), ndcg_name(30, 5, "held-out typefaces")
    ('ndcg10@2', 'ndcg30@5 held-out typefaces')
    """
    return f"ndcg{depth}@{elements} {test}".rstrip()


def measure_ranking(kept: Representation, tests: Sequence[StressTest], logistic: Logistic) -> Measured:
    """Return nDCG at every depth and number of faces: a value per world and repeat, errors over people."""
    found = [[test.ndcg(one, logistic) for one in kept.similarities(test)] for test in tests]
    queries = [test.world.queries for test in tests]
    values, draws = {}, {}
    for at, count in enumerate(tests[0].faces):
        for place, depth in enumerate(tests[0].depths):
            numbers = [one[at][place] for one in found]
            name = ndcg_name(depth, count)
            values[name] = np.concatenate([one.mean(axis=1) for one in numbers]).tolist()
            draws[name] = people_draws([one.mean(axis=0) for one in numbers], queries).round(4).tolist()
    return Measured(values, draws)


def first_ranks(scores: NDArray[np.floating], depth: int) -> NDArray[np.int64]:
    """Return the items with the ``depth`` highest scores, best first; ties in favour of the lower item."""
    bar = np.partition(scores, len(scores) - depth)[len(scores) - depth]
    candidates = np.flatnonzero(scores >= bar)
    return candidates[np.argsort(-scores[candidates], kind="stable")][:depth]


def probability_in_place(similarity: Floats, logistic: Logistic) -> Floats:
    """Turn similarities into probabilities, in place and in float32: there are millions of them."""
    similarity *= np.float32(-logistic.w)
    similarity -= np.float32(logistic.b)
    np.minimum(similarity, np.float32(80.0), out=similarity)
    np.exp(similarity, out=similarity)
    similarity += np.float32(1.0)
    return np.reciprocal(similarity, out=similarity)
