"""Answers as arrays: the hits of a search, and no item scored that cannot match."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine.rank import score_elements
from setnet.engine.results import RankedItems

N, DIM = 3000, 32


def unit(rows: Any) -> Any:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True), np.float32)


QUERY = unit(np.random.default_rng(1).normal(size=(2, DIM)))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SetIndex]:
    """Items of two random elements; every hundredth has one that the query asks for, or both."""
    rng = np.random.default_rng(0)
    elements = unit(rng.normal(size=(N, 2, DIM)))
    elements[::100, 0] = unit(QUERY[0] + 0.1 * elements[::100, 0])
    elements[::500, 1] = QUERY[1]
    with SetIndex.create(tmp_path_factory.mktemp("ranked") / "i", DIM, head="mean") as made:
        made.add([f"i{n}" for n in range(N)], elements.reshape(-1, DIM), [2] * N)
        yield made


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many items each second look scored."""
    seen: list[int] = []

    def counted(snapshot: Any, rows: Any, *more: Any) -> Any:
        seen.append(sum(len(which) for _, which in rows))
        return score_elements(snapshot, rows, *more)

    monkeypatch.setattr("setnet.engine.rank.score_elements", counted)
    return seen


@pytest.mark.parametrize("mode", ["exact", "fast", "set"])
def test_they_are_the_hits_of_a_search(index: SetIndex, mode: Any) -> None:
    items = index.search(QUERY, 40, mode)
    hits = list(items)
    assert items.hits() == hits
    assert items.hits(5, 9) == hits[5:9]
    assert items.take(slice(3, 8)).hits() == hits[3:8]
    assert items.take(np.array([7, 2])).hits() == [hits[7], hits[2]]
    assert items.first(6).hits() == hits[:6]
    assert items.first(6).scores.base is None
    assert items.first(99) is items
    threshold = index.logistic.threshold
    matched = [sum(match.similarity >= threshold for match in hit.matches) for hit in hits]
    assert items.matched.tolist() == matched
    assert len(items) == 40


def test_all_items_with_a_match_are_found_without_scoring_the_others(
    index: SetIndex, scored: list[int]
) -> None:
    items = index.search(QUERY, N, at_least=1)
    looked_at = sum(scored)
    everything = index.search(QUERY, N)
    assert sum(scored) - looked_at == N
    keep = np.flatnonzero(everything.matched >= 1)
    assert items.hits() == everything.take(keep).hits()
    assert N // 100 <= len(items) <= looked_at < N // 2
    assert (items.matched == 2).sum() == (everything.matched == 2).sum() >= N // 500


def test_followed_by_adds_what_is_new(index: SetIndex) -> None:
    first = index.search(QUERY, 5)
    more = index.search(QUERY, 12)
    assert first.followed_by(more).hits() == more.hits()
    swapped = more.take(np.arange(11, -1, -1))
    both = swapped.take(slice(4)).followed_by(first)
    assert both.ids == [*swapped.ids[:4], *first.ids]
    nobody = RankedItems.none(2)
    assert nobody.hits() == []
    assert nobody.followed_by(first).hits() == first.hits()
    assert more.nbytes > first.nbytes > nobody.nbytes == 0


@pytest.mark.parametrize("items", [0, 1, 3])
def test_a_small_index_is_searched_with_any_k(tmp_path: Path, items: int) -> None:
    with SetIndex.create(tmp_path / "i", DIM, head="mean") as small:
        small.add([str(n) for n in range(items)], QUERY[:1].repeat(items, axis=0), [1] * items)
        for k in (1, 2, 1000):
            found = small.search(QUERY, k, at_least=1)
            assert found.matched.tolist() == [1] * min(items, k)


def test_hits_are_a_sequence_that_makes_objects_when_asked(index: SetIndex) -> None:
    hits = index.search(QUERY, 40)
    objects = list(hits)
    assert (len(hits), hits[0], hits[-1]) == (len(objects), objects[0], objects[-1])
    assert list(hits[2:5]) == objects[2:5]
    assert hits == objects
    assert hits != objects[:-1]
    assert objects[3] in hits
    assert repr(hits[:1]) == repr(objects[:1])
    assert not hits[:0]
    with pytest.raises(IndexError):
        hits[len(objects)]
