"""A centre of the codes that is the index's own: estimates no longer depend on how items were stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.errors import InvalidInputError
from setnet.index import SearchOptions


def test_indexes_with_one_centre_take_the_same_candidates(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(4, 600)
    centre = np.full(world.dim, 0.1)
    query = np.concatenate([world.items["item 7"][:1], world.items["item 9"][:1]])
    options = SearchOptions(k=5, candidates=40)
    with (
        make_index(world, tmp_path / "whole", batch=600, code_centre=centre) as whole,
        make_index(world, tmp_path / "parts", batch=37, code_centre=centre) as parts,
    ):
        found = [index.candidates(query, options) for index in (whole, parts)]
        assert found[0].count == found[1].count == sum(len(e) > 0 for e in world.items.values())
        by_number = [dict(zip(c.items.tolist(), c.estimates.tolist(), strict=True)) for c in found]
        assert len(by_number[0]) == 40
        assert by_number[0] == by_number[1]
        hits = [index.search(query, k=5, mode="fast", candidates=40) for index in (whole, parts)]
        assert hits[0] == hits[1]


def test_the_centre_is_kept(tmp_path: Path) -> None:
    SetIndex.create(tmp_path / "i", dim=2, code_centre=[0.5, 0.25]).close()
    with SetIndex.open(tmp_path / "i") as index:
        assert index.shape.code_centre == (0.5, 0.25)


@pytest.mark.parametrize("centre", [[1.0], [[1.0, 2.0]], [np.nan, 1.0], "no", []])
def test_a_centre_that_cannot_be_is_refused(tmp_path: Path, centre: Any) -> None:
    with pytest.raises(InvalidInputError, match="code_centre"):
        SetIndex.create(tmp_path / "i", dim=2, code_centre=centre)
    assert not (tmp_path / "i").exists()
