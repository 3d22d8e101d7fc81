"""Fast search by one-bit codes of elements: which items are candidates; set vectors are not needed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.heads.bit_codes import BitCodec


def estimated(index: SetIndex, world: Any, query: NDArray[Any]) -> dict[str, float]:
    """Return the score of every item by the codec's own estimates."""
    found = {}
    for segment in index._reader.snapshot().segments:
        codec = BitCodec(segment.array("bit_centre"))
        for row, name in enumerate(segment.ids_of(np.arange(len(segment)))):
            elements = world.items[name]
            if len(elements):
                best = codec.estimates(*codec.encode(elements), query).max(axis=0)
                found[name] = float(index.logistic.probability(best).sum())
            assert segment.counts[row] == len(elements)
    return found


def test_candidates_are_the_items_of_the_highest_estimates(
    level: str, tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(4, 1200, dim=70)
    query = np.concatenate([world.items["item 7"][:1], world.items["item 9"][:1]])
    with make_index(world, tmp_path / "i") as index:
        hits = index.search(query, k=20, mode="fast", candidates=60)
        estimates = estimated(index, world, query)
    cut = sorted(estimates.values())[-60]
    near = 0.02  # the tables of the scan are rounded
    scores = {name: score for score, name in world.ranking(query)}
    assert all(estimates[hit.id] >= cut - near for hit in hits)
    sure = [name for name, value in estimates.items() if value >= cut + near]
    assert len(sure) > 10
    missed = [name for name in sure if scores[name] > hits[-1].score + 1e-5]
    assert set(missed) <= {hit.id for hit in hits}
    for hit in hits:
        assert hit.score == pytest.approx(scores[hit.id], abs=1e-6)


def test_an_index_without_set_vectors_has_a_fast_mode(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(5, 2000, dim=64)
    query = np.concatenate([world.items[f"item {i}"][:1] for i in (11, 12)])
    with make_index(world, tmp_path / "i", batch=700, head="none") as index:
        assert index.search(query, k=10, mode="fast", candidates=200) == index.search(query, k=10)
