"""Fast search through inverted lists: what it reads, what it leaves out, and damage to the lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine.probe import probe_lists
from setnet.engine.query import Query
from setnet.errors import InvalidInputError
from setnet.heads import unit


@pytest.fixture
def world(make_world: Callable[..., Any]) -> Any:
    return make_world(8, 6000, dim=32, identities=300)


@pytest.fixture
def index(world: Any, tmp_path: Path, make_index: Callable[..., SetIndex]) -> Iterator[SetIndex]:
    with make_index(world, tmp_path / "i", head="none") as index:
        index.compact(lists=True)
        yield index


def pair(world: Any, a: int, b: int) -> Any:
    """An element of each of two items, counting those that have any."""
    items = [elements for elements in world.items.values() if len(elements)]
    return np.concatenate([items[a][:1], items[b][:1]])


def test_every_element_is_in_one_list(index: SetIndex) -> None:
    (segment,) = index._reader.snapshot().segments
    rows = segment.array("list_items")
    np.testing.assert_array_equal(np.bincount(rows[rows >= 0], minlength=len(segment)), segment.counts)
    assert len(segment.array("list_half_squares")) > 50
    assert index.check().ok


def test_hits_have_exact_scores_and_say_what_share_of_the_best_they_are(
    level: str, index: SetIndex, world: Any
) -> None:
    query = pair(world, 3, 4)
    exact = {hit.id: hit for hit in index.search(query, k=6000)}
    hits = index.search(query, k=10, mode="fast")
    assert hits.how.endswith("lists for each example")
    assert hits.recall is not None
    assert 0.95 <= hits.recall <= 1
    assert hits[:3].recall == hits.first(2).recall == hits.recall
    assert all(hit == exact[hit.id] for hit in hits)
    assert (index.search(query).how, index.search(query).recall) == ("exact", 1.0)


def test_the_recall_wanted_is_the_recall_found(index: SetIndex, world: Any) -> None:
    queries = [pair(world, i, i + 1) for i in range(0, 120, 2)]
    best = [set(index.search(query, k=40).ids) for query in queries]
    shares = []
    for recall in (0.6, 0.95):
        found = [index.search(query, k=40, mode="fast", recall=recall) for query in queries]
        shares.append(np.mean([len(b & set(hits.ids)) / 40 for b, hits in zip(best, found, strict=True)]))
        assert shares[-1] > recall - 0.07
        assert all(hits.how != "exact" for hits in found)
    assert shares[0] <= shares[1]


@pytest.mark.parametrize("recall", [0.8, 0.95])
def test_of_elements_like_none_of_the_index_as_much_is_found(index: SetIndex, recall: float) -> None:
    """Their best items are all alike, and in lists that are far from them."""
    rng = np.random.default_rng(6)
    queries = [unit(rng.normal(size=(1, 32)).astype(np.float32)) for _ in range(40)]
    best = [set(index.search(query, k=10).ids) for query in queries]
    found = [index.search(query, k=10, mode="fast", recall=recall) for query in queries]
    assert all(hits.recall is not None and hits.recall >= recall for hits in found)
    assert np.mean([len(b & set(hits.ids)) / 10 for b, hits in zip(best, found, strict=True)]) >= recall


def test_where_lists_would_take_longer_everything_is_scored(index: SetIndex, world: Any) -> None:
    """A query of many elements, a k beyond measurements, few open items, a recall nobody can promise."""
    every = np.concatenate([elements[:1] for elements in world.items.values() if len(elements)])
    assert index.search(every[:40], k=10, mode="fast").how == "exact"
    assert index.search(every[:2], k=3000, mode="fast").how == "exact"
    assert index.search(every[:2], k=10, mode="fast", recall=1.0).how == "exact"
    assert index.search(every[:2], k=10, mode="fast", only=True).how == "exact"
    assert index.search(every[:2], k=10, mode="fast", only=True) == index.search(every[:2], k=10, only=True)


def test_an_element_is_found_in_the_list_that_holds_it(tmp_path: Path) -> None:
    """Lists near the origin have short centres: similarity to a centre alone would prefer the long ones."""
    rng = np.random.default_rng(5)
    middle = rng.normal(size=(40, 1, 16)) * np.linspace(0.2, 1.5, 40)[:, None, None]
    rows = (middle + 0.15 * rng.normal(size=(40, 100, 16))).reshape(-1, 16).astype(np.float32)
    names = [str(i) for i in range(len(rows))]
    with SetIndex.create(tmp_path / "i", dim=16, head="none") as index:
        index.add(names, rows, np.ones(len(rows), np.int64))
        index.compact(lists=True)
        snapshot = index._reader.snapshot()
        items = snapshot.segments[0].array("list_items")
        assert np.bincount(items[items >= 0]).tolist() == [1] * len(rows)
        for i in range(0, len(rows), 50):
            query = Query.of(rows[i : i + 1], 16, index.logistic, k=2000)
            found, _ = probe_lists(snapshot.segments[0], query, 1, None)
            assert i in found
            assert len(found) < len(rows) / 2


def test_new_items_deletions_and_conditions_count(index: SetIndex, world: Any) -> None:
    query = pair(world, 20, 21)
    names = [hit.id for hit in index.search(query, k=4)]
    index.delete(names[:1])
    index.add(["new"], query, [2], attributes=[{"year": 2020}])
    hits = index.search(query, k=4, mode="fast")
    assert [hit.id for hit in hits] == ["new", *names[1:]]
    assert [hit.id for hit in index.search(query, k=4, mode="fast", where={"year": 2020})] == ["new"]
    index.compact(lists=False)
    assert not any(segment.listed for segment in index._reader.snapshot().segments)
    assert [hit.id for hit in index.search(query, k=4, mode="fast")] == ["new", *names[1:]]


@pytest.mark.parametrize("recall", [0.0, 1.5, -1])
def test_a_recall_that_is_no_share_is_refused(index: SetIndex, world: Any, recall: float) -> None:
    with pytest.raises(InvalidInputError, match="recall"):
        index.search(pair(world, 1, 2), mode="fast", recall=recall)
