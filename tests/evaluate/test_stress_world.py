"""The world of the stress test keeps its promises."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.people import LabelledPeople
from setnet.evaluate.stress_trial import StressWorld, stress_world


def test_the_world_keeps_the_papers_promises(world: StressWorld, stress_people: LabelledPeople) -> None:
    labels = stress_people.labels
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


def test_the_same_seed_gives_the_same_world(world: StressWorld, stress_people: LabelledPeople) -> None:
    again = stress_world(
        stress_people.descriptors, stress_people.labels, sets=3000, queries=30, repeats=3, seed=1
    )
    np.testing.assert_array_equal(world.faces, again.faces)
    np.testing.assert_array_equal(world.examples, again.examples)


def test_labels_that_cannot_make_a_world_are_refused() -> None:
    rows = np.eye(4, dtype=np.float32)
    with pytest.raises(InvalidInputError, match="two or more faces"):
        stress_world(rows, np.array(["a", "b", "c", "d"]), sets=10)
    rows = np.random.default_rng(0).standard_normal((12, 4)).astype(np.float32)
    labels = np.array(["a", "a", "b", "b", "c", "c", "", "", "", "", "", ""])
    with pytest.raises(InvalidInputError, match="nothing to query"):
        stress_world(rows, labels, sets=10)
