"""The world of the stress test (section 5.1): sets of two labelled faces and distractors, and queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError

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
