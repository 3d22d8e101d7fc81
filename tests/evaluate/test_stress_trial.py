"""The stress test: its figures mean what they say, and equal the plain computation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from setnet.engine import greedy_matches
from setnet.engine.kernels.reference import greedy_pairs
from setnet.evaluate.measures import ndcg
from setnet.evaluate.people import LabelledPeople
from setnet.evaluate.ranking_calibration import best_logistic
from setnet.evaluate.representations import EveryElement, SetVectors
from setnet.evaluate.stress_trial import (
    Representation,
    StressTest,
    StressWorld,
    first_ranks,
    measure_ranking,
    stress_world,
)
from setnet.heads import ELEMENT_LOGISTIC, Logistic, Mean, SetNet
from setnet.heads.logistic import SET_LOGISTIC

MEAN = SetVectors(Mean(128))


def means(kept: Representation, test: StressTest, logistic: Logistic) -> list[float]:
    """Return nDCG by number of faces."""
    return [float(np.mean(values)) for values in measure_ranking(kept, [test], logistic).values.values()]


def test_mean_pooling_by_hand(world: StressWorld) -> None:
    score = Logistic(15.0, -6.0)
    values = []
    for query, (first, second) in enumerate(world.examples[0].tolist()):
        sums = world.descriptors[world.faces[:, :3]].sum(axis=1)
        vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
        similarity = vectors @ world.descriptors[[first, second]].T
        total = (1 / (1 + np.exp(-(15.0 * similarity - 6.0)))).sum(axis=1)
        relevance = world.relevance(query)
        values.append(float(ndcg(relevance[np.argsort(-total, kind="stable")[:10]], relevance, 10)))
    measured = measure_ranking(MEAN, [StressTest(world, faces=(3,))], score)
    assert measured.values["ndcg10@3"][0] == pytest.approx(np.mean(values), abs=0.5)


def test_per_element_beats_the_mean_and_the_mean_falls_with_more_faces(world: StressWorld) -> None:
    test = StressTest(world)
    pooled = means(MEAN, test, best_logistic(MEAN, test))
    elements = means(EveryElement(), test, ELEMENT_LOGISTIC)
    assert pooled[0] > pooled[3] + 3
    assert (np.array(elements) >= np.array(pooled) - 0.5).all()


def slow_ndcg(
    world: StressWorld, matched: Callable[[int, int], np.ndarray], logistic: Logistic, depth: int
) -> np.ndarray:
    """Return (repeats, queries) of nDCG by its definition; ``matched`` gives (N, 2) similarities."""
    values = np.empty(world.examples.shape[:2])
    for repeat, query in np.ndindex(values.shape):
        relevance = world.relevance(query)
        total = logistic.probability(matched(*world.examples[repeat, query])).sum(axis=1)
        values[repeat, query] = ndcg(relevance[np.argsort(-total, kind="stable")[:depth]], relevance, depth)
    return values


def slow_sets(world: StressWorld, size: int) -> Callable[[int, int], np.ndarray]:
    sums = world.descriptors[world.faces[:, :size]].astype(np.float64).sum(axis=1)
    vectors = sums / np.linalg.norm(sums, axis=1, keepdims=True)
    return lambda first, second: vectors @ world.descriptors[[first, second]].T


def slow_elements(world: StressWorld, size: int) -> Callable[[int, int], np.ndarray]:
    def matched(first: int, second: int) -> np.ndarray:
        similarity = world.descriptors[[first, second]] @ world.descriptors.T
        rows = np.empty((len(world.faces), 2))
        for number, members in enumerate(world.faces[:, :size]):
            for query, element in greedy_pairs(similarity[:, members].astype(np.float64)):
                rows[number, query] = similarity[query, members[element]]
        return rows

    return matched


@pytest.mark.parametrize("depth", [10, 30])
def test_the_test_is_the_plain_computation(stress_people: LabelledPeople, depth: int) -> None:
    some = stress_people
    world = stress_world(some.descriptors, some.labels, sets=900, queries=8, repeats=2)
    for size in (2, 5):
        test = StressTest(world, (depth,), (size,))
        (fast,) = measure_ranking(MEAN, [test], SET_LOGISTIC).values.values()
        slow = slow_ndcg(world, slow_sets(world, size), SET_LOGISTIC, depth)
        np.testing.assert_allclose(fast, slow.mean(axis=1), atol=0.02)
        (fast,) = measure_ranking(EveryElement(), [test], ELEMENT_LOGISTIC).values.values()
        slow = slow_ndcg(world, slow_elements(world, size), ELEMENT_LOGISTIC, depth)
        np.testing.assert_allclose(fast, slow.mean(axis=1), atol=0.02)


def test_greedy_never_matches_one_face_twice() -> None:
    rng = np.random.default_rng(5)
    faces = rng.standard_normal((4, 128)).astype(np.float32)
    faces /= np.linalg.norm(faces, axis=1, keepdims=True)
    # item 0 holds one face like both queries, item 1 holds one face of each
    both = faces[0] + faces[1]
    rows = np.stack([both / np.linalg.norm(both), faces[2], faces[0], faces[1]]).astype(np.float32)
    queries = faces[:2]
    alone = StressWorld(
        descriptors=np.concatenate([rows, queries]),
        faces=np.array([[0, 1], [2, 3]]),
        people=np.array([[7, 8], [0, 1]]),
        queries=np.array([[0, 1]]),
        examples=np.array([[[4, 5]]]),
    )
    assert means(EveryElement(), StressTest(alone, (1,), (2,)), Logistic(5.0, -1.0)) == [pytest.approx(100.0)]


@pytest.mark.parametrize("size", [2, 3, 5])
def test_matches_of_a_pair_are_greedy_ones_also_where_similarities_are_equal(size: int) -> None:
    rng = np.random.default_rng(size)
    directions = np.eye(4, dtype=np.float32)[rng.integers(4, size=60)]
    faces = rng.integers(40, size=(300, size))
    examples = np.arange(40, 60).reshape(1, 10, 2)
    sets = StressWorld(directions, faces, faces[:, :2], np.zeros((10, 2), np.int64), examples)
    (found,) = EveryElement().similarities(StressTest(sets, faces=(size,)))
    similarity = directions[40:] @ directions.T
    for a, b in ((0, 1), (3, 3), (7, 2)):
        both = similarity[[a, b]][:, faces].transpose(1, 0, 2)
        wanted = np.take_along_axis(both, greedy_matches(both)[..., None], axis=2)[..., 0].T
        np.testing.assert_array_equal(found.pair(a, b), wanted)


def test_a_test_of_other_descriptors_keeps_its_ground_truth(world: StressWorld) -> None:
    test = StressTest(world)
    other = test.with_descriptors(world.descriptors[:, ::-1].copy())
    assert other.relevance is test.relevance
    assert other.world.descriptors[0, 0] == world.descriptors[0, -1]


def test_a_shipped_head_beats_the_mean_on_crowded_sets(world: StressWorld) -> None:
    net, test = SetNet.load("sface-512"), StressTest(world, faces=(5,))
    (mean,) = means(MEAN, test, best_logistic(MEAN, test))
    (lifted,) = means(SetVectors(net), test, net.logistic)
    assert lifted > mean + 3


def test_first_ranks_break_ties_by_position() -> None:
    assert first_ranks(np.array([1.0, 3.0, 3.0, 2.0, 1.0]), 4).tolist() == [1, 2, 3, 0]
