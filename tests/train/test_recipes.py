"""The recipes of the shipped heads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from setnet.errors import TrainingError
from setnet.heads import SetNet, shipped_heads, unit
from setnet.heads.layers import Blocks, Product
from setnet.train.recipes import RECIPES, fit_head
from setnet.train.simulated import VirtualPeople

People = tuple[np.ndarray, np.ndarray]


@pytest.fixture(scope="module")
def people() -> People:
    rng = np.random.default_rng(0)
    eye = np.eye(128, dtype=np.float32)
    model = VirtualPeople(np.full(128, 0.3, np.float32), eye, 0.6 * eye)
    who = np.concatenate([np.arange(100).repeat(3), 100 + np.arange(200)])
    return model.faces(rng, model.people(rng, 300), who), np.array([f"p{i}" for i in who])


def test_a_lift_is_products_and_directions_summed_and_rotated(people: People) -> None:
    head = fit_head(RECIPES["lift-128"], *people)
    pairs, direct = head.branches
    assert isinstance(pairs, Product)
    assert isinstance(direct, Product)
    assert pairs.share**2 + direct.share**2 == pytest.approx(1.0)
    faces = people[0][:6]
    assert head.input.mean is not None
    x = unit(faces - head.input.mean)
    products = unit((x @ pairs.factors[0]) * (x @ pairs.factors[1])) * pairs.share
    lifted = np.hstack([products, unit(x @ direct.factors[0]) * direct.share])
    v = np.stack([lifted[:2].sum(0), lifted[2:].sum(0)])
    for layer in head.output:
        assert isinstance(layer, Blocks)
        groups, side, _ = layer.blocks.shape
        v = np.einsum("ngi,gij->njg", v.reshape(2, groups, side), layer.blocks).reshape(2, -1)
    np.testing.assert_allclose(SetNet(head).pool(faces, [2, 4]), unit(v), atol=1e-4)


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_gives_the_same_head_again(name: str, people: People) -> None:
    first, again = (SetNet(fit_head(RECIPES[name], *people)).describe(people[0][:3]) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_a_lift_wider_than_its_products_is_refused(people: People) -> None:
    with pytest.raises(TrainingError, match="128 dimensions cannot have 8320"):
        fit_head(replace(RECIPES["lift-128"], dim=8320), *people)


def test_every_shipped_head_has_a_recipe() -> None:
    for head in shipped_heads():
        recipe = RECIPES[head.name.replace("sface", "lift")]
        assert (head.dim, head.bits) == (recipe.dim, recipe.bits)


def test_faces_of_unknown_people_are_left_out(people: People) -> None:
    faces, labels = people
    more = np.concatenate([faces, -faces[:5]]), np.concatenate([labels, [""] * 5])
    heads = [SetNet(fit_head(RECIPES["lift-128"], *some)) for some in (people, more)]
    first, again = (head.describe(faces[:3]) for head in heads)
    np.testing.assert_array_equal(first, again)
