"""The law of a cluster: whatever is asked, however many shards, the answer is that of one index."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from setnet.cluster import ClusterIndex
from setnet.errors import InvalidInputError
from setnet.index import Hit, KnownPair, SetIndex

DIM = 12
MOST = 90  # items
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None  # where no fsync is waited for


def unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@dataclass
class Pair:
    """The same items in one index and in a cluster."""

    one: SetIndex
    cluster: ClusterIndex
    queries: list[NDArray[np.float32]]
    ids: list[str]

    def close(self) -> None:
        self.one.close()
        self.cluster.close()

    def agree(self, query: Any, **options: Any) -> None:
        by_sets = options.get("mode") == "set"
        agree = nearly_same if by_sets else same
        assert agree(self.cluster.search(query, **options), self.one.search(query, **options)), options


def same(found: list[Hit], expected: list[Hit]) -> bool:
    return list(found) == expected


def nearly_same(found: list[Hit], expected: list[Hit]) -> bool:
    """Whether answers by set vectors are the same: vectors made in another batch differ in their last bit."""
    scores = np.array([hit.score for hit in found]), np.array([hit.score for hit in expected])
    near = len(found) == len(expected) and np.allclose(*scores, rtol=0, atol=1e-5)
    return near and [hit.id for hit in found] == [hit.id for hit in expected]


def pair(root: Path, shards: int, seed: int, items: int, *, tags: bool = True, **options: Any) -> Pair:
    rng = np.random.default_rng(seed)
    centres = unit(rng.normal(size=(9, DIM)))
    counts = rng.integers(0, 5, items)
    who = rng.integers(0, len(centres), int(counts.sum()))
    elements = unit(centres[who] + 0.5 * rng.normal(size=(len(who), DIM)) / np.sqrt(DIM))
    ids = [f"item {i}" for i in range(items)]
    attributes = [
        {"year": int(rng.integers(2000, 2010)), "odd": "yes"} if i % 3 else None for i in range(items)
    ]
    centre = np.full(DIM, 0.05)
    one = SetIndex.create(root / "one", dim=DIM, code_centre=centre, **options)
    cluster = ClusterIndex.create(root / "cluster", shards=shards, dim=DIM, code_centre=centre, **options)
    starts = np.concatenate([[0], np.cumsum(counts)])
    cuts = np.sort(rng.integers(0, items + 1, 2)).tolist()
    for a, z in zip([0, *cuts], [*cuts, items], strict=True):
        for index in (one, cluster):
            index.add(ids[a:z], elements[starts[a] : starts[z]], counts[a:z], attributes[a:z])
    gone = [ids[i] for i in rng.permutation(items)[: items // 10].tolist()]
    gallery = {f"name {i}": centres[i : i + 1] for i in range(3)}
    for index in (one, cluster):
        index.delete(gone)
        if tags:
            index.tag(gallery, 0.3)
    cluster.publish()
    return Pair(one, cluster, [unit(centres[:q] + 0.1) for q in (1, 2, 3)], ids)


SEARCHES = st.fixed_dictionaries(
    {
        "k": st.integers(0, 2 * MOST),
        "mode": st.sampled_from(["exact", "fast", "set"]),
        "candidates": st.integers(1, 40),
        "first": st.sampled_from(["codes", "sets"]),
        "at_least": st.integers(0, 2),
        "only": st.booleans(),
        "matching": st.sampled_from(["greedy", "optimal"]),
        "where": st.sampled_from([None, {"year": {">=": 2004}}, {"odd": "yes", "year": [2001, 2003]}]),
    }
)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_number_of_shards_answers_as_one_index(data: st.DataObject) -> None:
    shards, seed = data.draw(st.integers(1, 8)), data.draw(st.integers(0, 999))
    items = data.draw(st.integers(30, MOST))
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        both = pair(Path(folder), shards, seed, items)
        try:
            for _ in range(6):
                options = data.draw(SEARCHES)
                query = both.queries[data.draw(st.integers(0, 2))]
                both.agree(
                    query, without=both.queries[0][:1] if data.draw(st.booleans()) else None, **options
                )
        finally:
            both.close()


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Any:
    made = pair(tmp_path_factory.mktemp("both"), 4, 3, 400)
    yield made
    made.close()


def test_tags_are_those_of_one_index(both: Pair) -> None:
    both.agree(["name 0", "name 1"], mode="tags", k=30)
    both.agree(["name 0", "name 1"], mode="tags", k=30, at_least=1, candidates=25)
    both.agree({"name 0": both.queries[0], "name 2": both.queries[2][2:]}, mode="tags", k=20, candidates=15)


def test_judged_pairs_count_in_every_mode(both: Pair) -> None:
    holders = [item.id for item in both.one.items() if item.elements > 1]
    known = {holders[0]: [KnownPair(0, 0, True)], holders[1]: [KnownPair(0, 0, False)], "none such": []}
    for mode in ("exact", "fast"):
        both.agree(both.queries[1], mode=mode, known=known, k=15, candidates=20)


def test_several_queries_are_answered_at_once(both: Pair) -> None:
    for mode in ("exact", "fast", "set"):
        options: dict[str, Any] = {"k": 25, "mode": mode, "candidates": 60}
        expected = both.one.search_many(both.queries, **options)
        found = both.cluster.search_many(both.queries, **options)
        agree = nearly_same if mode == "set" else same
        assert all(map(agree, found, expected))


def test_several_examples_of_a_person_are_kept_apart(both: Pair) -> None:
    query = [both.queries[2][:2], both.queries[2][2:]]
    for examples in ("aggregate", "mean", "max"):
        both.agree(query, k=20, examples=examples)
    both.agree(query, k=20, mode="set", aggregate_query=True)
    both.agree(query, k=20, mode="fast", aggregate_query=True, candidates=30)


def test_items_are_reranked_and_read_as_in_one_index(both: Pair) -> None:
    ids = [item.id for item in both.one.items()][:50]
    assert both.cluster.rerank(both.queries[1], ids, k=9) == both.one.rerank(both.queries[1], ids, k=9)
    assert len(both.cluster) == len(both.one)
    assert sorted(both.cluster.contents().ids) == sorted(both.one.contents().ids)
    assert np.array_equal(both.cluster.elements(ids[0]), both.one.elements(ids[0]))
    assert (ids[0] in both.cluster, "none such" in both.cluster) == (True, False)
    by_id = {item.id: item for item in both.one.items()}
    assert {item.id: item for item in both.cluster.items()} == by_id
    assert both.cluster.sample(20).shape == (20, DIM)
    stats, expected = both.cluster.stats(), both.one.stats()
    assert (stats.items, stats.elements, stats.tags) == (expected.items, expected.elements, expected.tags)
    assert both.cluster.check().ok


def test_set_vectors_made_by_the_caller(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    elements, vectors = unit(rng.normal(size=(40, DIM))), unit(rng.normal(size=(40, 6)))
    ids = [str(i) for i in range(40)]
    one = SetIndex.create(tmp_path / "one", dim=DIM, set_dim=6)
    cluster = ClusterIndex.create(tmp_path / "cluster", shards=3, dim=DIM, set_dim=6)
    for index in (one, cluster):
        index.add(ids, elements, [1] * 40, set_vectors=vectors)
    cluster.publish()
    assert same(cluster.search(vectors[:2], k=7, mode="set"), one.search(vectors[:2], k=7, mode="set"))
    one.close()
    cluster.close()


def test_a_share_of_k_that_was_too_small_is_made_up_for(tmp_path: Path) -> None:
    """Ids are chosen so that one shard holds all hits: its share of k is not enough."""
    from setnet.cluster.storage.places import shard_of

    ids = [name for name in map(str, range(2000)) if shard_of(name, 4) == 1][:100]
    rows = unit(np.random.default_rng(1).normal(size=(100, DIM)))
    with ClusterIndex.create(tmp_path / "c", shards=4, dim=DIM) as cluster:
        cluster.add(ids, rows, [1] * 100)
        cluster.publish()
        with SetIndex.create(tmp_path / "one", dim=DIM) as one:
            one.add(ids, rows, [1] * 100)
            assert same(cluster.search(rows[:2], k=80), one.search(rows[:2], k=80))


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(shards=4, more=2, seed=1, options={})
@given(
    shards=st.integers(1, 4),
    more=st.integers(1, 3),
    seed=st.integers(0, 1000),
    options=st.sampled_from([{}, {"precision": "float16"}, {"head": "none"}]),
)
def test_a_cluster_grows_to_any_number_of_shards(
    shards: int, more: int, seed: int, options: dict[str, Any]
) -> None:
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as folder:
        both = pair(Path(folder), shards, seed, 60, tags=False, **options)
        modes = ["exact", "fast"] if options.get("head") == "none" else ["exact", "fast", "set"]
        both.cluster.grow(shards + more)
        assert len(both.cluster) == len(both.one)
        assert both.cluster.check().problems == []
        for query in both.queries:
            for mode in modes:
                both.agree(query, k=10, mode=mode)
        both.close()


def test_tags_move_to_a_multiple_of_the_shards_only(tmp_path: Path) -> None:
    both = pair(tmp_path, 2, 5, 30)
    with pytest.raises(InvalidInputError, match="multiple of 2"):
        both.cluster.grow(3)
    both.cluster.delete(both.ids[:1], missing_ok=True)  # it goes on as before
    both.close()
