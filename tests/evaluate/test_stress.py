"""The stress test: what its world promises, and that its figures mean what they say."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.measures import ndcg
from setnet.evaluate.methods.stress import calibrated, first_ranks, gap_closed, stress, stress_elements
from setnet.evaluate.worlds.stress_world import StressWorld, stress_world
from setnet.learn.data.virtual_people import VirtualPeople
from setnet.sets import Mean, SetNet
from setnet.sets.logistic import Logistic


def people(noise: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    eye = np.eye(128, dtype=np.float32)
    model = VirtualPeople(np.zeros(128, np.float32), eye, noise * eye)
    who = np.concatenate([np.repeat(np.arange(60), 5), 60 + np.arange(20).repeat(2), 80 + np.arange(200)])
    return model.faces(rng, model.people(rng, 280), who), np.array([f"p{i:03}" for i in who])


@pytest.fixture(scope="module")
def world() -> StressWorld:
    return stress_world(*people(), sets=3000, queries=30, repeats=3, seed=1)


def test_the_world_keeps_the_papers_promises(world: StressWorld) -> None:
    labels = people()[1]
    assert world.faces.shape == (3000, 5)
    assert (world.people[:, 0] != world.people[:, 1]).all()
    assert not np.isin(world.examples, world.faces).any()
    singles = np.flatnonzero(np.array([int(label[1:]) >= 80 for label in labels]))
    assert np.isin(world.faces[:, 2:], singles).all()
    assert all(len(set(row)) == 5 for row in world.faces.tolist())
    for query in range(30):
        assert world.relevance(query).max() == 2
    names = np.unique(labels)
    np.testing.assert_array_equal(labels[world.examples], names[np.broadcast_to(world.queries, (3, 30, 2))])
    np.testing.assert_array_equal(labels[world.faces[:, :2]], names[world.people])


def test_repeats_use_other_query_faces(world: StressWorld) -> None:
    assert (world.examples[0] != world.examples[1]).all()


def test_the_same_seed_gives_the_same_world(world: StressWorld) -> None:
    again = stress_world(*people(), sets=3000, queries=30, repeats=3, seed=1)
    np.testing.assert_array_equal(world.faces, again.faces)
    np.testing.assert_array_equal(world.examples, again.examples)


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
    result = stress(Mean(128), world, faces=(3,), logistic=score)
    assert result.values[0, 0] == pytest.approx(np.mean(values), abs=0.5)


def test_per_element_beats_the_mean_and_the_mean_falls_with_more_faces(world: StressWorld) -> None:
    mean = stress(Mean(128), world, logistic=calibrated(Mean(128), world))
    elements = stress_elements(world)
    assert mean.means[0] > mean.means[3] + 3
    assert (elements.means >= mean.means - 0.5).all()
    closed = gap_closed(elements, mean, elements)
    np.testing.assert_allclose(closed[1:], 100.0)
    np.testing.assert_allclose(gap_closed(mean, mean, elements)[1:], 0.0)


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
    result = stress_elements(alone, faces=(2,), depth=1, logistic=Logistic(5.0, -1.0))
    assert result.values[0, 0] == pytest.approx(100.0)


def test_a_shipped_head_beats_the_mean_on_crowded_sets(world: StressWorld) -> None:
    net = SetNet.load("sface-512")
    mean = stress(Mean(128), world, faces=(5,), logistic=calibrated(Mean(128), world, faces=(5,)))
    assert stress(net, world, faces=(5,)).means[0] > mean.means[0] + 3


def test_first_ranks_break_ties_by_position() -> None:
    assert first_ranks(np.array([1.0, 3.0, 3.0, 2.0, 1.0]), 4).tolist() == [1, 2, 3, 0]


def test_labels_that_cannot_make_a_world_are_refused() -> None:
    rows = np.eye(4, dtype=np.float32)
    with pytest.raises(InvalidInputError, match="two or more faces"):
        stress_world(rows, np.array(["a", "b", "c", "d"]), sets=10)
    rows = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
    labels = np.array(["a", "a", "b", "b", "c", "c", "", "", "", "", "", ""])
    with pytest.raises(InvalidInputError, match="nothing to query"):
        stress_world(rows, labels, sets=10)
