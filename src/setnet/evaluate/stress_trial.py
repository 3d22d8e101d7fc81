"""Sets of chosen sizes, and how well a method finds two people in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.measures import dcg, people_draws
from setnet.heads import ELEMENT_LOGISTIC, Aggregator, Logistic, SetNet, codec, unit

Ints = NDArray[np.int64]
DISTRACTORS = 3


@dataclass(frozen=True)
class StressWorld:
    """Sets over rows of a descriptor array; the data set of F faces per set takes the first F columns.

    Attributes
    ----------
    descriptors
        (n, De) float32.
    faces
        (N, 2 + distractors) rows of ``descriptors``: two labelled faces, then distractors.
    people
        (N, 2) the labelled people of each set.
    queries
        (Q, 2) pairs of people who do appear together in some set.
    examples
        (repeats, Q, 2) rows of ``descriptors``: a query face of each, never a face of any set.
    """

    descriptors: NDArray[np.float32]
    faces: Ints
    people: Ints
    queries: Ints
    examples: Ints

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
    if known.sum() < 3 or len(unknown) < DISTRACTORS:
        raise InvalidInputError(
            f"a stress test needs people with two or more faces and {DISTRACTORS} or more faces of others; "
            f"got {known.sum()} such people and {len(unknown)} other faces"
        )
    in_sets, for_queries = _divide_photos(owner, np.flatnonzero(known), photos, repeats, rng)
    people = _distinct_pairs(np.flatnonzero(known), sets, rng)
    faces = np.empty((sets, 2 + DISTRACTORS), dtype=np.int64)
    for column in range(2):
        faces[:, column] = _one_each(in_sets, people[:, column], rng)
    for row in range(sets):
        faces[row, 2:] = rng.choice(unknown, DISTRACTORS, replace=False, shuffle=False)
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


Floats = NDArray[np.float32]
FACES = (2, 3, 4, 5)
SETS_AT_ONCE = 2048
SAMPLED = 16  # every so many sets enter the sample of similarities


@dataclass(frozen=True, eq=False)
class PairSimilarities:
    """A method's similarities of query faces with all N sets of one size.

    Attributes
    ----------
    pair
        Returns, for two query faces searched for together, a fresh (2, N) array; faces are given by their
        places in `StressTest.examples`.
    sample
        Similarities of all query faces with some sets: nearly all of them of impostors.
    """

    pair: Callable[[int, int], Floats]
    sample: Floats


@dataclass(frozen=True, eq=False)
class StressTest:
    """Measures rankings of a stress world against its ground truth, which is the same for every method."""

    world: StressWorld
    depths: tuple[int, ...] = (10,)

    def described(self, descriptors: Floats) -> StressTest:
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


def set_similarities(
    aggregator: Aggregator, test: StressTest, faces: Sequence[int] = FACES
) -> Iterator[PairSimilarities]:
    """Yield, per number of faces, the similarities with one set vector per set, as an index stores it."""
    queries = aggregator.describe(test.world.descriptors[test.examples])
    encode = _encoder(aggregator, test.world)
    for size in faces:
        yield vector_similarities(queries, _set_vectors(aggregator, test.world, size, encode))


def set_vectors(aggregator: Aggregator, world: StressWorld, size: int) -> Floats:
    """Return the vectors of sets of so many faces, as an index stores them, (N, dim)."""
    return _set_vectors(aggregator, world, size, _encoder(aggregator, world))


def vector_similarities(queries: Floats, sets: Floats) -> PairSimilarities:
    """Return the similarities of the vectors of `StressTest.examples` with those of sets."""
    table = queries @ sets.T
    return PairSimilarities(lambda a, b: table[[a, b]], table[:, ::SAMPLED].T.ravel())


Encode = Callable[[NDArray[np.int64]], NDArray[np.uint8]]  # (sets, size) faces to stored codes


def _set_vectors(aggregator: Aggregator, world: StressWorld, size: int, encode: Encode) -> Floats:
    out = np.empty((len(world.faces), aggregator.dim), dtype=np.float32)
    for start in range(0, len(world.faces), SETS_AT_ONCE):
        codes = encode(world.faces[start : start + SETS_AT_ONCE, :size])
        out[start : start + len(codes)] = codec.decode(codes, aggregator.dim, aggregator.bits)
    return out


def _encoder(aggregator: Aggregator, world: StressWorld) -> Encode:
    """Return what encodes sets; of a few thousand faces in many sets each is lifted once, where it can be."""
    added = aggregator.contributions(world.descriptors) if isinstance(aggregator, SetNet) else None
    if added is not None:
        return lambda members: codec.encode(_summed(added, members), aggregator.bits)

    def encode(members: NDArray[np.int64]) -> NDArray[np.uint8]:
        counts = np.full(len(members), members.shape[1], dtype=np.int64)
        return aggregator.encode(world.descriptors[members.ravel()], counts)

    return encode


def _summed(added: Floats, members: NDArray[np.int64]) -> Floats:
    """Return the unit-norm sum over the members of each set."""
    total = added[members[:, 0]]
    for column in members.T[1:]:
        total += added[column]
    return unit(total)


def element_similarities(
    test: StressTest,
    faces: Sequence[int] = FACES,
    change: Callable[[Floats], Floats] = unit,
    stored: Callable[[Floats], Floats] = lambda rows: rows,
) -> Iterator[PairSimilarities]:
    """Yield the same with every face stored and matched greedily.

    ``change`` may whiten all descriptors, ``stored`` is what is left of them where they are stored.
    """
    world = test.world
    vectors = change(world.descriptors)
    similarity = np.ascontiguousarray(vectors[test.examples] @ stored(vectors).T)
    for size in faces:
        members = np.ascontiguousarray(world.faces[:, :size].T)
        sample = similarity[:, world.faces[::SAMPLED, :size]].max(axis=2).T.ravel()
        yield PairSimilarities(partial(_greedy_pair, similarity, members), sample)


def _greedy_pair(similarity: Floats, members: NDArray[np.int64], a: int, b: int) -> Floats:
    """Return the similarities that two query faces are matched with in every set, (2, N).

    The matches are those of `greedy_matches`: of two query faces the less similar one gives way to the other
    and takes its second best. ``members`` are the rows of each set, (size, N).
    """
    first, second_of_first, which = _two_best(similarity[a][members])
    other, second_of_other, same = _two_best(similarity[b][members])
    both, a_wins = which == same, first >= other
    return np.stack(
        [np.where(both & ~a_wins, second_of_first, first), np.where(both & a_wins, second_of_other, other)]
    )


def _two_best(rows: Floats) -> tuple[Floats, Floats, NDArray[np.int8]]:
    """Return the two highest values of each column, and the row of the highest."""
    best, which = rows[0], np.zeros(rows.shape[1], np.int8)
    second = np.full_like(best, -np.inf)
    for number, row in enumerate(rows[1:], start=1):
        second = np.maximum(second, np.minimum(best, row))
        which[row > best] = number
        best = np.maximum(best, row)
    return best, second, which


@dataclass(frozen=True)
class StressResult:
    """One method's nDCG in percent.

    ``values[f][r][q]`` is that of query q in repeat r, with ``faces[f]`` faces per set; ``draws[f]`` are
    means in resamples of the queried people.
    """

    method: str
    bytes_per_item: int
    logistic: Logistic
    depth: int
    faces: tuple[int, ...]
    values: NDArray[np.float64]
    draws: NDArray[np.float64]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean, per number of faces."""
        return np.asarray(self.values.mean(axis=(1, 2)))

    @property
    def errors(self) -> NDArray[np.float64]:
        """Standard error over people, per number of faces."""
        return np.asarray(self.draws.std(axis=1, ddof=1))


def measured_sets(
    aggregator: Aggregator,
    world: StressWorld,
    *,
    faces: Sequence[int] = FACES,
    depth: int = 10,
    logistic: Logistic | None = None,
) -> StressResult:
    """Run the test for one set vector per set, in the bytes an index would hold."""
    test, score = StressTest(world, (depth,)), logistic or aggregator.logistic
    values = [test.ndcg(one, score)[0] for one in set_similarities(aggregator, test, faces)]
    size = aggregator.bytes_per_item
    return StressResult(aggregator.name, size, score, depth, tuple(faces), *_with_draws(values, test))


def measured_elements(
    world: StressWorld,
    *,
    faces: Sequence[int] = FACES,
    depth: int = 10,
    logistic: Logistic = ELEMENT_LOGISTIC,
    name: str = "descriptor per element",
    bytes_per_face: int | None = None,
    change: Callable[[Floats], Floats] = unit,
    stored: Callable[[Floats], Floats] = lambda rows: rows,
) -> StressResult:
    """Run the test with every face stored, in floats or codes, faces matched greedily and never twice."""
    test = StressTest(world, (depth,))
    values = [test.ndcg(one, logistic)[0] for one in element_similarities(test, faces, change, stored)]
    size = int(np.mean(faces) * (bytes_per_face or codec.row_bytes(world.descriptors.shape[1], 32)))
    return StressResult(name, size, logistic, depth, tuple(faces), *_with_draws(values, test))


def _with_draws(
    values: Sequence[NDArray[np.float64]], test: StressTest
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    queries = test.world.queries
    return np.array(values), np.array([people_draws([one.mean(axis=0)], [queries]) for one in values])


def gap_closed(
    method: StressResult, mean: StressResult, bounds: Sequence[StressResult]
) -> NDArray[np.float64]:
    """Return the share of the gap between mean pooling and the best upper bound closed, in percent.

    NaN where there is no gap.
    """
    best = np.max([bound.means for bound in bounds], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(100.0 * (method.means - mean.means) / (best - mean.means))


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
