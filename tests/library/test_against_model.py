"""Changes in random order leave a library as they leave a model of it in plain Python."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError
from setnet.library import Library
from tests.support import library_model
from tests.support.library_model import Model, NotPossibleError


def walk(folder: Path, seed: int, changes: int) -> None:
    """Make random changes; compare what is stored after each, and what a random search finds."""
    chance, model = random.Random(seed), Model()
    made: list[library_model.Change] = []
    with Library.create(folder) as library:
        for _ in range(changes):
            change = library_model.propose(model, chance)
            made = [*made[-15:], change]
            try:
                model = library_model.apply(model, change)
            except NotPossibleError:
                with pytest.raises(InvalidInputError):
                    library_model.perform(library, change)
            else:
                library_model.perform(library, change)
            try:
                assert library_model.observe(library) == model.holds()
                library_model.compare_search(library, model, chance)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, after {made}") from error
        assert library.check() == []


@pytest.mark.parametrize("seed", [1, 2])
def test_every_change_and_condition_agrees_with_the_model(tmp_path: Path, seed: int) -> None:
    walk(tmp_path / "library", seed, 60)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3, 53))
def test_every_change_and_condition_agrees_with_the_model_for_long(tmp_path: Path, seed: int) -> None:
    walk(tmp_path / "library", seed, 2000)
