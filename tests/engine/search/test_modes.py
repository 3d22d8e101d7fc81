"""Set and fast search, conditions, examples: what each mode promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.engine import Hit
from setnet.engine.kernels.reference import greedy_pairs
from setnet.errors import InvalidInputError
from setnet.heads import codec
from setnet.heads.aggregator import Mean
from setnet.heads.logistic import Logistic


def unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.mark.parametrize("bits", [32, 16, 8, 4, 1])
@pytest.mark.parametrize("dim", [5, 64])
def test_set_mode_ranks_by_the_stored_set_vectors(level: str, tmp_path: Path, bits: int, dim: int) -> None:
    rng = np.random.default_rng(bits + dim)
    n = 800
    vectors = rng.normal(size=(n, 48)).astype(np.float32) * rng.uniform(0.5, 2, (n, 1)).astype(np.float32)
    query = unit(rng.normal(size=(3, 48)))
    with SetIndex.create(tmp_path / "i", dim, set_dim=48, set_bits=bits, set_logistic=(4.0, -2.0)) as index:
        names = [str(i) for i in range(n)]
        index.add(names, rng.normal(size=(n, dim)), [1] * n, set_vectors=vectors)
        index.delete(["5"])
        hits = index.search(query, k=30, mode="set")
        index.add(["x"], rng.normal(size=(1, dim)), [1], set_vectors=vectors[:1])
        index.compact()
        again = index.search(query, k=30, mode="set")
    stored = codec.decode(codec.encode(vectors, bits), 48, bits).astype(np.float64)
    if bits < 16:
        stored *= np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = Logistic(4.0, -2.0).probability(stored @ query.T).sum(axis=1)
    scores[5] = -1
    expected = np.argsort(-scores, kind="stable")[:30]
    np.testing.assert_allclose([hit.score for hit in hits], scores[expected], rtol=1e-5)
    assert [hit.id for hit in hits] == [str(i) for i in expected]
    assert all(hit.matches == () for hit in hits)
    assert [hit.id for hit in again if hit.id != "x"][:20] == [hit.id for hit in hits if hit.id != "x"][:20]


def test_the_default_head_is_the_mean(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(3, 500)
    query = unit(np.random.default_rng(0).normal(size=(2, 16)))
    with make_index(world, tmp_path / "i") as index:
        hits = index.search(query, k=10, mode="set")
        logistic = index._reader.settings.set_logistic
    scores = {
        name: logistic.probability(unit(rows.sum(axis=0, keepdims=True)) @ query.T).sum()
        for name, rows in world.items.items()
        if len(rows)
    }
    best = sorted(scores, key=lambda name: -scores[name])[:10]
    assert [hit.id for hit in hits] == best


def test_fast_mode_is_exact_among_its_candidates(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(4, 900)
    query = np.concatenate([world.items["item 7"][:1], world.items["item 9"][:1]])
    with make_index(world, tmp_path / "i") as index:
        first = index.search(query, k=60, mode="set")
        hits = index.search(query, k=20, mode="fast", aggregate_query=False, candidates=60)
        assert index.search(query, k=900, mode="fast", candidates=900) == index.search(query, k=900)
        world.agrees(
            index.rerank(query, [h.id for h in first], k=20),
            query,
            20,
            keep=lambda item: item in {h.id for h in first},
        )
        assert index.rerank(query, [h.id for h in hits], k=20) == hits
        assert index.rerank(query, list(world.items), k=900) == index.search(query, k=900)
        assert index.rerank(query, []) == []
        with pytest.raises(InvalidInputError, match="'nobody' is not in the index"):
            index.rerank(query, ["item 7", "nobody"])


def test_query_aggregation_searches_with_one_set_vector(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(5, 300)
    query = [unit(np.random.default_rng(i).normal(size=(2, 16))) for i in range(2)]
    with make_index(world, tmp_path / "i") as index:
        together = index.search(query, k=10, mode="set", aggregate_query=True)
        one = Mean(16).pool(np.concatenate(query), np.array([4]))
        assert [h.id for h in together] == [h.id for h in index.search(one, k=10, mode="set")]
        fast = index.search(query, k=5, mode="fast", aggregate_query=True, candidates=10)
        assert fast == index.rerank(query, [h.id for h in together], k=5)
        with pytest.raises(ValueError, match="'set' or 'fast'"):
            index.search(query, aggregate_query=True)


def test_several_examples_are_aggregated_or_their_scores_merged(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(6, 400)
    rng = np.random.default_rng(1)
    query = [unit(rng.normal(size=(3, 16))), unit(rng.normal(size=(1, 16)))]
    with make_index(world, tmp_path / "i") as index:
        merged = np.concatenate([unit(query[0].mean(axis=0, keepdims=True)), query[1]])
        assert [h.id for h in index.search(query, k=20)] == [h.id for h in index.search(merged, k=20)]
        rules: list[tuple[Any, Any]] = [("mean", np.mean), ("max", np.max)]
        for rule, fold in rules:
            hits = index.search(query, k=20, examples=rule)
            scores = {}
            for name, rows in world.items.items():
                if len(rows):
                    pairs = [
                        index.logistic.probability(p.astype(np.float64) @ rows.T.astype(np.float64))
                        for p in query
                    ]
                    table = np.stack([fold(p, axis=0) for p in pairs])
                    scores[name] = sum(table[p, e] for p, e in greedy_pairs(table))
            expected = sorted(scores.values(), reverse=True)[:20]
            np.testing.assert_allclose([h.score for h in hits], expected, atol=1e-9)
            by_sets = index.search(query, k=5, mode="set", examples=rule)
            described = [unit(p) for p in query]
            means = {n: unit(r.sum(axis=0, keepdims=True))[0] for n, r in world.items.items() if len(r)}
            best = max(
                sum(
                    fold(index._reader.settings.set_logistic.probability(d.astype(np.float64) @ m))
                    for d in described
                )
                for m in means.values()
            )
            assert by_sets[0].score == pytest.approx(best, abs=1e-6)


def test_optimal_matching_is_never_below_greedy(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(7, 300, most=8)
    query = unit(np.random.default_rng(3).normal(size=(4, 16)))
    with make_index(world, tmp_path / "i") as index:
        greedy = {h.id: h.score for h in index.search(query, k=300)}
        optimal = {h.id: h.score for h in index.search(query, k=300, matching="optimal")}
    assert all(optimal[name] >= score - 1e-12 for name, score in greedy.items())
    assert any(optimal[name] > score + 1e-9 for name, score in greedy.items())


VECTORS = np.eye(6, dtype=np.float32)


@pytest.fixture
def album(tmp_path: Path) -> Iterator[SetIndex]:
    """Items made of six known vectors."""
    members = {"ab": [0, 1], "a": [0], "abs": [0, 1, 4], "b": [1], "cs": [2, 5], "none": [], "abc": [0, 1, 2]}
    index = SetIndex.create(tmp_path / "album", 6)
    index.add(
        list(members),
        np.concatenate([VECTORS[m] for m in members.values()]),
        [len(m) for m in members.values()],
        attributes=[{"folder": f"/p/{n[0]}", "year": 2000 + i, "kind": n} for i, n in enumerate(members)],
    )
    yield index
    index.close()


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.id for hit in hits]


@pytest.mark.parametrize("mode", ["exact", "fast", "set"])
def test_conditions_on_elements(album: SetIndex, mode: Any) -> None:
    ab = VECTORS[:2]
    assert set(ids(album.search(ab, at_least=2, mode=mode))) == {"ab", "abs", "abc"}
    assert set(ids(album.search(ab, at_least=1, mode=mode))) == {"ab", "abs", "abc", "a", "b"}
    assert album.search(ab, at_least=3, mode=mode) == []
    assert set(ids(album.search(ab, only=True, mode=mode))) == {"ab", "a", "b"}
    assert set(ids(album.search(ab, only=True, at_least=2, mode=mode))) == {"ab"}
    assert set(ids(album.search(ab, without=VECTORS[2:3], at_least=1, mode=mode))) == {"ab", "abs", "a", "b"}
    assert set(ids(album.search(ab, without=VECTORS[[2, 4]], at_least=1, mode=mode))) == {"ab", "a", "b"}


@pytest.mark.parametrize("mode", ["exact", "fast", "set"])
def test_conditions_on_attributes(album: SetIndex, mode: Any) -> None:
    def found(where: dict[str, Any]) -> set[str]:
        return set(ids(album.search(VECTORS[:1], where=where, mode=mode)))

    assert found({"kind": "ab"}) == {"ab"}
    assert found({"kind": ["ab", "cs"]}) == {"ab", "cs"}
    assert found({"year": {">=": 2001, "<": 2004}}) == {"a", "abs", "b"}
    assert found({"folder": {"prefix": "/p/a"}, "year": {">": 2000}}) == {"a", "abs", "abc"}
    assert found({"kind": {"!=": "ab"}}) == {"a", "abs", "b", "cs", "abc"}
    assert found({"kind": {"in": []}}) == set()
    assert found({"year": {">": "a"}}) == set()
    assert found({}) == {"ab", "a", "abs", "b", "cs", "abc"}


def test_conditions_are_applied_before_the_top_k_is_cut(
    tmp_path: Path, make_world: Callable[..., Any]
) -> None:
    world = make_world(8, 2000)
    query = np.concatenate([world.items["item 3"][:1], world.items["item 4"][:1]])
    names = list(world.items)
    with SetIndex.create(tmp_path / "i", 16) as index:
        elements, counts = world.stack(names)
        index.add(names, elements, counts, attributes=[{"n": i, "odd": i % 2} for i in range(2000)])
        odd: dict[str, Any] = {"odd": 1}
        few: dict[str, Any] = {"n": {"<": 20}}
        for where, keep in [
            (odd, lambda name: int(name.split()[1]) % 2 == 1),
            (few, lambda name: int(name.split()[1]) < 20),
        ]:
            world.agrees(index.search(query, k=15, where=where), query, 15, keep)
        index.add(
            ["item 3"], world.items["item 3"], [len(world.items["item 3"])], attributes=[{"odd": 0, "n": 3}]
        )
        assert "item 3" not in ids(index.search(query, k=1000, where={"odd": 1}))


def test_items_without_elements_are_stored_and_never_found(album: SetIndex) -> None:
    assert "none" in album
    assert len(album) == 7
    for mode in ("exact", "fast", "set"):
        assert "none" not in ids(album.search(VECTORS[:1], k=100, mode=mode))


def test_matches_say_what_is_where(album: SetIndex) -> None:
    hit = album.search(VECTORS[[1, 0]], k=1)[0]
    assert hit.id == "ab"
    assert [(m.query_element, m.element) for m in hit.matches] == [(0, 1), (1, 0)]
    assert hit.score == pytest.approx(sum(album.logistic.probability([m.similarity for m in hit.matches])))


def test_heads_other_than_the_one_that_made_the_set_vectors_are_refused(tmp_path: Path) -> None:
    class Other(Mean):
        def __init__(self, dim: int) -> None:
            super().__init__(dim)
            self.name = "other"

    with SetIndex.create(tmp_path / "i", 4, head=Other(4)) as index:
        index.add(["a"], np.eye(4)[:1], [1])
        assert ids(index.search(np.eye(4)[:1], mode="set")) == ["a"]
    with pytest.raises(ValueError, match=r"'mean'.* did not make the set vectors"):
        SetIndex.open(tmp_path / "i", head=Mean(4))
    with SetIndex.open(tmp_path / "i", head=Other(4)) as index:
        assert ids(index.search(np.eye(4)[:1], mode="set")) == ["a"]
    with SetIndex.create(tmp_path / "n", 4, head="none") as index:
        index.add(["a"], np.eye(4)[:1], [1])
        with pytest.raises(ValueError, match="no set vectors"):
            index.search(np.eye(4)[:1], mode="set")


def test_a_head_of_the_same_name_with_other_weights_is_refused(tmp_path: Path) -> None:
    class Marked(Mean):
        def __init__(self, dim: int, fingerprint: str) -> None:
            super().__init__(dim)
            self.name, self.fingerprint = "marked", fingerprint

    SetIndex.create(tmp_path / "i", 4, head=Marked(4, "a")).close()
    SetIndex.open(tmp_path / "i", head=Marked(4, "a")).close()
    with pytest.raises(ValueError, match="create it again"):
        SetIndex.open(tmp_path / "i", head=Marked(4, "b"))
