"""Fast search through inverted lists: what it reads, what it leaves out, and damage to the lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import SearchOptions, probe
from setnet.errors import InvalidInputError


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
    slots = segment.array("list_lanes")
    rows = segment.lane_rows[slots[slots >= 0]]
    np.testing.assert_array_equal(np.bincount(rows, minlength=len(segment)), segment.counts)
    assert index.check().ok


def test_with_all_lists_it_finds_what_the_codes_of_all_elements_find(
    level: str, index: SetIndex, world: Any
) -> None:
    for a, b in ((3, 4), (10, 2000)):
        query = pair(world, a, b)
        several: list[SearchOptions] = [{}, {"at_least": 2}, {"candidates": 400}]
        for options in several:
            hits = [
                index.search(query, k=10, mode="fast", **options | SearchOptions(probes=probes))
                for probes in (0, 4096)
            ]
            assert hits[0] == hits[1]


def test_a_few_lists_hold_the_items_that_matter(index: SetIndex, world: Any) -> None:
    found = []
    for i in range(0, 60, 2):
        query = pair(world, i, i + 1)
        best = {hit.id for hit in index.search(query, k=5)}
        found.append(len(best & {hit.id for hit in index.search(query, k=5, mode="fast")}) / 5)
    assert np.mean(found) > 0.95


def test_an_element_is_found_in_the_list_that_holds_it(tmp_path: Path) -> None:
    """Lists near the origin have short centres: similarity to a centre alone would prefer the long ones."""
    rng = np.random.default_rng(5)
    middle = rng.normal(size=(40, 1, 16)) * np.linspace(0.2, 1.5, 40)[:, None, None]
    rows = (middle + 0.15 * rng.normal(size=(40, 100, 16))).reshape(-1, 16).astype(np.float32)
    names = [str(i) for i in range(len(rows))]
    with SetIndex.create(tmp_path / "i", dim=16, head="none") as index:
        index.add(names, rows, np.ones(len(rows), np.int64))
        index.compact(lists=True)
        some = range(0, len(rows), 50)
        found = [index.search(rows[i : i + 1], k=4000, mode="fast", probes=1) for i in some]
    assert all(str(i) in {hit.id for hit in hits} for i, hits in zip(some, found, strict=True))


def test_few_lists_are_few_elements(index: SetIndex, world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    read = []

    def scan(snapshot: Any, segment: Any, query: Any, blocks: Any) -> Any:
        read.append(len(blocks) * 16)
        return plain(snapshot, segment, query, blocks)

    plain = probe.read_lists
    monkeypatch.setattr(probe, "read_lists", scan)
    index.search(pair(world, 1, 2), k=5, mode="fast", probes=2)
    lists = len(index._reader.snapshot().segments[0].array("list_centres"))
    largest = np.diff(index._reader.snapshot().segments[0].array("list_start")).max() * 16
    assert len(read) == 1
    assert read[0] <= 2 * 2 * largest
    assert lists > 50


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


def test_a_number_of_probes_that_is_none_is_refused(index: SetIndex, world: Any) -> None:
    with pytest.raises(InvalidInputError, match="probes"):
        index.search(pair(world, 1, 2), mode="fast", probes=-1)
