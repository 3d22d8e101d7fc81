"""The script behind the shipped heads: its networks and the run time compute the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from setnet.learn.data.virtual_people import VirtualPeople
from setnet.learn.export.head_recipes import RECIPES, Lift, Recipe, TrainingPeople, Vlad, train_head
from setnet.sets import SetNet


@pytest.fixture(scope="module")
def people() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    eye = np.eye(128, dtype=np.float32)
    model = VirtualPeople(np.full(128, 0.3, np.float32), eye, 0.6 * eye)
    who = np.concatenate([np.arange(100).repeat(3), 100 + np.arange(200)])
    return model.faces(rng, model.people(rng, 300), who), np.array([f"p{i}" for i in who])


@pytest.mark.parametrize("kind", [Lift, Vlad])
def test_network_and_head_agree(kind: type, people: tuple[np.ndarray, np.ndarray]) -> None:
    recipe = Recipe("t", kind.__name__.lower(), 256 if kind is Lift else 128, 32, "test")
    net = kind(TrainingPeople(*people, seed=0), recipe)
    faces = people[0][:6]
    with torch.no_grad():
        lifted = net.lift(torch.from_numpy(faces))
        theirs = net.finish(torch.stack([lifted[:2].sum(0), lifted[2:].sum(0)])).numpy()
    ours = SetNet(net.head(recipe, {})).pool(faces, [2, 4])
    np.testing.assert_allclose(ours, theirs, atol=1e-4)


def test_training_is_reproducible(people: tuple[np.ndarray, np.ndarray]) -> None:
    recipe = Recipe("t", "vlad", 128, 32, "test", steps=4, sets_per_batch=32)
    first, again = (SetNet(train_head(recipe, *people)).describe(people[0][:3]) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_every_shipped_head_has_a_recipe() -> None:
    for name, recipe in RECIPES.items():
        net = SetNet.load(name)
        assert (net.dim, net.bits) == (recipe.dim, recipe.bits)
