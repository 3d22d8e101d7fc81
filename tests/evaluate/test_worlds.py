"""The simulated Celebrity Together and worlds of real descriptors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.evaluate.people import LFW_LIKE, virtual_split
from setnet.evaluate.worlds import (
    CELEBRITIES_PER_IMAGE,
    SimulatedWorld,
    StoredWorld,
    World,
    composed_world,
    make_plan,
)
from setnet.train.simulated import VirtualPeople
from studies.fit import sampled

MODEL = VirtualPeople.load(LFW_LIKE)


def check_world(world: World, of_two: int = 10, of_three: int = 5) -> None:
    chunks = list(world.chunks())
    assert sum(len(chunk.counts) for chunk in chunks) == world.size
    assert sum(len(chunk.elements) for chunk in chunks) == world.faces
    lengths = np.concatenate([np.linalg.norm(chunk.elements, axis=1) for chunk in chunks])
    np.testing.assert_allclose(lengths, 1.0, atol=1e-4)
    for query in world.queries(of_two, of_three):
        assert max(world.truth.relevance(query).values()) == len(query), "no item is a full match"


def test_the_full_plan_has_the_papers_counts() -> None:
    plan = make_plan(np.random.default_rng(0))
    assert len(plan.faces) == 549_000
    assert plan.faces.sum() == 1_546_000
    assert plan.identities == 2622
    together = plan.celebrities > 0
    assert together.sum() == 193_000
    for number, images in CELEBRITIES_PER_IMAGE.items():
        which = plan.celebrities >= number if number == 6 else plan.celebrities == number
        assert which.sum() == images
    assert (plan.celebrities <= plan.faces).all()
    share = np.array([(plan.faces == size).mean() for size in (2, 3, 4, 5)])
    np.testing.assert_allclose(share, np.array([113, 43, 19, 9]) / 194, atol=1e-4)


@settings(deadline=None, max_examples=10)
@given(scale=st.floats(0.0005, 0.02), seed=st.integers(0, 5))
def test_smaller_plans_keep_the_shape(scale: float, seed: int) -> None:
    plan = make_plan(np.random.default_rng(seed), scale)
    assert len(plan.faces) == round(194_000 * scale) + round(355_000 * scale)
    assert (plan.celebrities <= plan.faces).all()
    assert plan.faces.min() >= 2


def test_simulated_world_is_whole_and_the_same_for_the_same_seed() -> None:
    one, other = (SimulatedWorld(MODEL, seed=3, scale=0.004) for _ in range(2))
    check_world(one)
    for a, b in zip(one.chunks(), other.chunks(), strict=True):
        np.testing.assert_array_equal(a.elements, b.elements)
    np.testing.assert_array_equal(one.examples(2, 1), other.examples(2, 1))
    assert not np.array_equal(one.examples(2, 1), one.examples(3, 1))
    assert not np.array_equal(one.owner, SimulatedWorld(MODEL, seed=4, scale=0.004).owner)


def test_a_stored_world_is_the_same_world(tmp_path: Path) -> None:
    world = SimulatedWorld(MODEL, scale=0.003)
    stored = StoredWorld(world, tmp_path / "elements")
    made = np.concatenate([chunk.elements for chunk in world.chunks()])
    np.testing.assert_array_equal(np.concatenate([chunk.elements for chunk in stored.chunks()]), made)
    check_world(stored)


def test_virtual_people_resemble_lfws_as_the_shipped_fit_says() -> None:
    drawn = sampled(MODEL, seed=5)
    # LFW's test half, every person weighing the same: 0.646 +- 0.122 and 0.001 +- 0.092
    assert drawn.same.mean() == pytest.approx(0.646, abs=0.03)
    assert drawn.same.std() == pytest.approx(0.122, abs=0.02)
    assert drawn.different.mean() == pytest.approx(0.001, abs=0.02)
    assert drawn.different.std() == pytest.approx(0.092, abs=0.015)


def test_difficulty_pulls_one_persons_faces_apart() -> None:
    means = [sampled(MODEL.harder(d), 0, people=300).same.mean() for d in (0.7, 1.0, 1.7)]
    assert means[0] > means[1] > means[2]
    with pytest.raises(InvalidInputError, match="positive"):
        MODEL.harder(0.0)


def test_query_faces_of_composed_worlds_are_in_no_item() -> None:
    people = virtual_split(1.0, seed=2, people=40).test
    world = composed_world(people, "some", items=600)
    check_world(world)
    inside = set(world.items[world.owner >= 0].tolist())
    assert all(inside.isdisjoint(rows.tolist()) for rows in world.query_rows)
