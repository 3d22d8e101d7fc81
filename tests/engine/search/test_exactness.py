"""Exactness is a law: codes may skip work, never change an answer."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.engine import scan
from setnet.engine import segment as segment_writer
from setnet.engine.kernels import backend
from setnet.engine.scan import Scan


@pytest.fixture(autouse=True)
def _code_small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    # let even tiny segments take the quantised path
    monkeypatch.setattr(segment_writer, "SMALLEST_CODED", 1)


def adversarial(rng: np.random.Generator, kind: str, n: int, dim: int) -> Any:
    """Vectors that quantisation could stumble over."""
    if kind == "unit":
        rows = rng.normal(size=(n, dim))
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
    if kind == "duplicates":
        few = rng.normal(size=(3, dim)) / np.sqrt(dim)
        return few[rng.integers(0, 3, n)]
    if kind == "tiny":
        return rng.normal(size=(n, dim)) * 1e-20
    if kind == "unnormalised":
        return rng.normal(size=(n, dim)) * 10.0 ** rng.uniform(-3, 1, (n, 1))
    if kind == "spiky":
        rows = rng.normal(size=(n, dim)) * 0.01
        rows[np.arange(n), rng.integers(0, dim, n)] = 1.0
        return rows
    if kind == "signs":
        return rng.choice([-1.0, 1.0], size=(n, dim)) / np.sqrt(dim)
    return -np.abs(rng.normal(size=(n, dim))) / np.sqrt(dim)


def read_in(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let even tiny indexes be sampled, and fix what follows: five bits, all nine, or nine after five."""
    monkeypatch.setattr(scan, "LEAST_SAMPLE", 16)
    monkeypatch.setattr(scan, "CROWDED", {"five bits": 1.0, "by the sample": 1 / 32}.get(way, -1.0))
    if way == "nine after five":
        sampled = Scan._is_crowded
        monkeypatch.setattr(Scan, "_is_crowded", lambda *given: bool(sampled(*given) and False))


WAYS = ["five bits", "by the sample", "nine after five", "nine bits"]
KINDS = ["unit", "duplicates", "tiny", "unnormalised", "spiky", "signs", "negative"]


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**31),
    dim=st.sampled_from([1, 2, 3, 5, 16, 63, 128, 257, 1024]),
    size=st.integers(1, 32),
    k=st.sampled_from([0, 1, 7, 40, 10_000]),
    kind=st.sampled_from(KINDS),
    precision=st.sampled_from(["float32", "float16"]),
    w=st.sampled_from([0.5, 20.0, 5000.0]),
    way=st.sampled_from(WAYS),
)
def test_exact_search_equals_the_plain_computation(
    tmp_path_factory: pytest.TempPathFactory,
    empty_world: Callable[[int], Any],
    seed: int,
    dim: int,
    size: int,
    k: int,
    kind: str,
    precision: str,
    w: float,
    way: str,
) -> None:
    rng = np.random.default_rng(seed)
    if precision == "float16" and kind == "tiny":
        kind = "unit"
    world = empty_world(dim)
    counts = rng.integers(0, 6, 150)
    counts[:2] = [40, 1]
    rows = adversarial(rng, kind, counts.sum(), dim).astype(precision)
    rows[~rows.any(axis=1)] = 1.0
    for i, part in enumerate(np.split(rows, np.cumsum(counts)[:-1])):
        world.items[f"item {i}"] = part.astype(np.float32)
    query = adversarial(rng, kind if kind != "tiny" else "unit", size, dim).astype(np.float32)
    if kind == "unit":
        query[0] = rows[-1]
    law = tmp_path_factory.mktemp("law") / "i"
    with (
        pytest.MonkeyPatch.context() as monkeypatch,
        SetIndex.create(law, dim, precision=precision, logistic=(w, -0.4 * w)) as index,
    ):
        read_in(way, monkeypatch)
        world.logistic = index.logistic
        index.add(list(world.items), *world.stack(list(world.items)))
        for level in backend.kernels.levels():
            backend.use(level)
            world.agrees(index.search(query, k=k, threads=1), query, k)
        gone = [f"item {i}" for i in rng.choice(150, 30, replace=False)]
        index.delete(gone)
        for name in gone:
            del world.items[name]
        world.agrees(index.search(query, k=k), query, k)


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_reading_is_taken_and_exact(
    way: str, tmp_path: Path, empty_world: Callable[[int], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    world = empty_world(24)
    for i, part in enumerate(np.split(adversarial(rng, "unit", 2400, 24).astype(np.float32), 1200)):
        world.items[str(i)] = part
    read: list[tuple[str, int]] = []
    bound = Scan._bound

    def noted(self: Any, kind: Any, queries: Any, bounds: Any, blocks: list[Any], **least: bool) -> None:
        read.append((kind, sum(map(len, blocks))))
        bound(self, kind, queries, bounds, blocks, **least)

    read_in(way, monkeypatch)
    monkeypatch.setattr(Scan, "_bound", noted)
    with SetIndex.create(tmp_path / "i", 24) as index:
        index.add(list(world.items), *world.stack(list(world.items)))
        for query in (world.items["700"], adversarial(rng, "unit", 3, 24).astype(np.float32)):
            read.clear()
            world.agrees(index.search(query, k=10, threads=1), query, 10)
            kinds, blocks = [kind for kind, _ in read], dict(read)
            assert kinds[0] == "coarse", "the sample"
            if way == "five bits":
                assert kinds == ["coarse", "coarse"]
                assert sum(count for _, count in read) == 75, "each block once"
            elif way == "nine bits":
                assert kinds == ["coarse", "fine"]
                assert read[0][1] < blocks["fine"] == 75
            elif way == "nine after five":
                assert kinds == ["coarse", "coarse", "fine"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "conditions",
    [
        {"at_least": 1},
        {"at_least": 2},
        {"only": True},
        {"where": {"kind": "even"}},
        {"at_least": 3, "k": 1100},
    ],
)
def test_conditions_are_met_in_each_way_of_reading(
    way: str, conditions: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(9)
    rows = adversarial(rng, "unit", 2400, 24).astype(np.float32)
    kinds = [{"kind": "even" if i % 2 == 0 else "odd"} for i in range(1200)]
    with SetIndex.create(tmp_path / "i", 24, logistic=(20.0, -10.0)) as index:
        index.add([str(i) for i in range(1200)], rows, [2] * 1200, attributes=kinds)
        index.delete([str(i) for i in range(0, 1200, 7)])
        for query in (rows[40:43], adversarial(rng, "unit", 3, 24).astype(np.float32)):
            monkeypatch.setattr(scan, "LEAST_SAMPLE", 10**9)
            plain = index.search(query, **{"k": 10} | conditions)
            read_in(way, monkeypatch)
            assert index.search(query, **{"k": 10} | conditions) == plain


def test_items_of_a_thousand_elements_and_of_one(
    level: str, tmp_path: Path, empty_world: Callable[[int], Any]
) -> None:
    rng = np.random.default_rng(4)
    world = empty_world(32)
    for i, n in enumerate([1000, 1, 999, 33, 32, 31, 17, 16, 1, 1]):
        rows = rng.normal(size=(n, 32))
        world.items[str(i)] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    query = np.stack([world.items["0"][777], world.items["3"][32], world.items["1"][0]])
    with SetIndex.create(tmp_path / "i", 32) as index:
        index.add(list(world.items), *world.stack(list(world.items)))
        hits = index.search(query, k=4)
        world.agrees(hits, query, 4)
        found = {hit.id: [m.element for m in hit.matches if m.similarity > 0.99] for hit in hits}
        assert found["0"] == [777]
        assert found["3"] == [32]


def test_equal_scores_go_by_insertion_also_after_a_replacement(level: str, tmp_path: Path) -> None:
    row = np.ones((1, 8), np.float32) / np.sqrt(8)
    with SetIndex.create(tmp_path / "i", 8) as index:
        index.add([str(i) for i in range(40)], np.repeat(row, 40, axis=0), [1] * 40)
        index.add(["3"], row, [1])
        assert [hit.id for hit in index.search(row, k=6)] == ["0", "1", "2", "3", "4", "5"]


def test_saturated_scores_go_by_the_sum_of_similarities(level: str, tmp_path: Path) -> None:
    rows = np.array([[0.6, 0], [0.9, 0], [0.7, 0]], np.float32)
    with SetIndex.create(tmp_path / "i", 2, logistic=(5000.0, -500.0)) as index:
        index.add(["a", "b", "c"], rows, [1, 1, 1])
        hits = index.search(np.array([[1, 0]], np.float32), k=3)
    assert [hit.score for hit in hits] == [1.0, 1.0, 1.0]
    assert [hit.id for hit in hits] == ["b", "c", "a"]


def test_threads_do_not_change_the_answer(
    tmp_path: Path,
    make_world: Callable[..., Any],
    make_index: Callable[..., SetIndex],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from setnet.engine import scan

    monkeypatch.setattr(scan, "TASK", 4096)
    world = make_world(5, 900, dim=24)
    query = np.concatenate([world.items["item 1"][:1], world.items["item 2"][:1]])
    with make_index(world, tmp_path / "i") as index:
        alone = index.search(query, k=50, threads=1)
        assert index.search(query, k=50, threads=2) == alone
        world.agrees(alone, query, 50)


def test_many_queries_get_the_answers_of_single_calls(
    level: str, tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(6, 700)
    rng = np.random.default_rng(0)
    queries = [rng.normal(size=(q, 16)).astype(np.float32) for q in (1, 2, 3, 2, 1, 5, 2, 2, 1, 4, 2)]
    with make_index(world, tmp_path / "i") as index:
        for mode in ("exact", "set", "fast"):
            assert index.search_many(queries, k=9, mode=mode) == [
                index.search(q, k=9, mode=mode) for q in queries
            ]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_the_law_at_full_size(tmp_path: Path) -> None:
    """549,000 items against a blocked float32 computation, with refereed near-ties."""
    items = int(os.environ.get("SETNET_LAW_ITEMS", "549000"))
    rng = np.random.default_rng(11)
    identities = rng.normal(size=(30000, 128)).astype(np.float32)
    identities /= np.linalg.norm(identities, axis=1, keepdims=True)
    counts = rng.choice([2, 3, 4, 5, 7], items, p=[0.58, 0.22, 0.10, 0.05, 0.05])
    who = rng.integers(0, 30000, counts.sum())
    elements = np.empty((len(who), 128), np.float32)
    for at in range(0, len(who), 50000):
        part = identities[who[at : at + 50000]]
        part = part + rng.normal(size=part.shape).astype(np.float32) * np.float32(0.75 / np.sqrt(128))
        elements[at : at + 50000] = part / np.linalg.norm(part, axis=1, keepdims=True)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    with SetIndex.create(tmp_path / "i", 128) as index:
        for at in range(0, items, 50000):
            last = min(at + 50000, items)
            names = [str(i) for i in range(at, last)]
            index.add(names, elements[offsets[at] : offsets[last]], counts[at:last])
        for size in (1, 2, 3, 5):
            query = elements[rng.integers(0, len(elements), size)]
            sims = (elements @ query.T).astype(np.float32)
            scores = np.array([_score(sims[a:z].T, index) for a, z in itertools.pairwise(offsets)])
            order = np.argsort(-scores, kind="stable")
            hits = index.search(query, k=100)
            for rank, hit in enumerate(hits):
                assert abs(scores[int(hit.id)] - scores[order[rank]]) < 1e-5


def _score(sims: NDArray[np.float32], index: SetIndex) -> float:
    from setnet.engine.kernels.reference import greedy_pairs

    pairs = greedy_pairs(sims.astype(np.float64))
    return float(index.logistic.probability([sims[p, e] for p, e in pairs]).sum())
