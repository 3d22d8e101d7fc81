"""Thresholds of each query element and known pairs: every mode answers as the plain computation does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.engine import Hit, scan
from setnet.engine import segment as segment_writer
from setnet.engine.kernels import backend
from setnet.engine.query import KnownPair, Scoring
from setnet.errors import InvalidInputError

Known = dict[str, list[KnownPair]]


@pytest.fixture(autouse=True)
def _code_small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segment_writer, "SMALLEST_CODED", 1)
    monkeypatch.setattr(scan, "LEAST_SAMPLE", 16)


def plainly(
    items: dict[str, NDArray[Any]],
    query: Sequence[NDArray[Any]],
    scoring: Scoring,
    known: Known,
    without: Sequence[NDArray[Any]] = (),
    at_least: int = 0,
    only: bool = False,
) -> list[tuple[str, float, dict[int, int]]]:
    """Return (id, score, matches) of all items that pass, best first: the definition, written down again."""
    found = []
    for place, (name, rows) in enumerate(items.items()):
        sims = np.array([(np.atleast_2d(q) @ rows.T.astype(np.float64)).max(axis=0) for q in query])
        margin = sims - np.array(scoring.centres)[:, None]
        share = 1 / (1 + np.exp(-scoring.w * margin))
        is_match = sims >= np.array(scoring.thresholds)[:, None]
        bad = np.array([w @ rows.T.astype(np.float64) for w in without]).reshape(len(without), len(rows))
        is_bad = bad >= np.array(scoring.without)[:, None]
        for member, element, says in known.get(name, []):
            if element < len(rows) and member < len(query):
                margin[member, element] = np.inf if says else -np.inf
                share[member, element] = is_match[member, element] = float(says)
            elif element < len(rows):
                is_bad[member - len(query), element] = says
        left, pairs = margin.copy(), []
        for _ in range(min(left.shape)):
            p, e = np.unravel_index(np.argmax(left), left.shape)
            if left[p, e] == -np.inf:
                break
            pairs.append((int(p), int(e)))
            left[p], left[:, e] = -np.inf, -np.inf
        matches = {p: e for p, e in pairs if is_match[p, e]}
        others = only and (~is_match.any(axis=0)).any()
        if len(matches) >= at_least and not others and not is_bad.any():
            total = sum(sims[p, e] for p, e in pairs)
            found.append((-sum(share[p, e] for p, e in pairs), -total, place, name, matches))
    return [(name, -score, matches) for score, _, _, name, matches in sorted(found, key=lambda f: f[:3])]


def agree(hits: Sequence[Hit], truth: list[tuple[str, float, dict[int, int]]], k: int) -> None:
    scores = {name: score for name, score, _ in truth}
    assert len(hits) == min(k, len(truth))
    assert {hit.id for hit in hits} <= set(scores)
    np.testing.assert_allclose([h.score for h in hits], [score for _, score, _ in truth[:k]], atol=1e-9)
    np.testing.assert_allclose([h.score for h in hits], [scores[h.id] for h in hits], atol=1e-9)


@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 2**31),
    size=st.integers(1, 4),
    k=st.sampled_from([1, 9, 300]),
    w=st.sampled_from([5.0, 60.0, 400.0]),
    at_least=st.integers(0, 3),
    only=st.booleans(),
    unwanted=st.integers(0, 2),
    several=st.booleans(),
    judged=st.booleans(),
)
def test_each_element_has_its_own_threshold_in_exact_and_fast_search(
    tmp_path_factory: pytest.TempPathFactory,
    make_world: Callable[..., Any],
    make_index: Callable[..., SetIndex],
    seed: int,
    size: int,
    k: int,
    w: float,
    at_least: int,
    only: bool,
    unwanted: int,
    several: bool,
    judged: bool,
) -> None:
    rng = np.random.default_rng(seed)
    world = make_world(seed % 50, 260, most=4)
    items = {name: rows for name, rows in world.items.items() if len(rows)}
    names = list(items)

    def examples() -> NDArray[Any]:
        return np.concatenate([items[names[i]][:1] for i in rng.integers(0, len(names), 1 + 2 * several)])

    query, without = [examples() for _ in range(size)], [examples()[0] for _ in range(unwanted)]
    centres = rng.uniform(0.3, 0.8, size)
    scoring = Scoring(
        w,
        tuple(centres.tolist()),
        tuple((centres - rng.uniform(-0.1, 0.3, size)).tolist()),
        tuple(rng.uniform(0.6, 0.9, unwanted).tolist()),
    )
    known: Known = {}
    for _ in range(30 * judged):
        name = names[int(rng.integers(len(names)))]
        pair = KnownPair(int(rng.integers(size + unwanted)), int(rng.integers(5)), bool(rng.random() < 0.5))
        if not any(pair[:2] == other[:2] for other in known.get(name, [])):
            known.setdefault(name, []).append(pair)
    known["item that is not there"] = [KnownPair(0, 0, True)]
    conditions: dict[str, Any] = {"at_least": at_least, "only": only}
    truth = plainly(items, query, scoring, known, without, **conditions)
    conditions |= {"without": without or None, "scoring": scoring, "known": known, "examples": "max"}
    with make_index(world, tmp_path_factory.mktemp("scoring") / "i", batch=150) as index:
        for level in backend.kernels.levels():
            backend.use(level)
            agree(index.search(query, k=k, threads=1, **conditions), truth, k)
        agree(index.search(query, k=k, mode="fast", candidates=400, **conditions), truth, k)
        agree(index.rerank(query, names, k=k, **conditions), truth, k)
        ranked = index.search(query, k, **conditions)
        expected = {name: matches for name, _, matches in truth}
        assert ranked.matched.tolist() == [len(expected[name]) for name in ranked.ids]
        by_sets = index.search(query, k=300, mode="set", **conditions | {"examples": "aggregate"})
        if not several:
            assert {hit.id for hit in by_sets} == set(expected), "conditions hold where set vectors rank"


def test_without_scoring_nothing_changes(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]
) -> None:
    world = make_world(3, 300)
    query = world.items["item 7"][:2]
    with make_index(world, tmp_path / "i") as index:
        threshold = index.logistic.threshold
        same = Scoring(index.logistic.w, (threshold,) * len(query), (threshold,) * len(query))
        plain = index.search(query, k=50, at_least=1)
        assert [hit.id for hit in index.search(query, k=50, at_least=1, scoring=same)] == [
            h.id for h in plain
        ]


def test_a_threshold_decides_who_is_matched_and_a_centre_who_comes_first(tmp_path: Path) -> None:
    a, b = np.eye(2, dtype=np.float32)
    near_a, near_b = (np.array(v, np.float32) for v in ([0.6, 0.1], [0.1, 0.7]))
    with SetIndex.create(tmp_path / "i", 2) as index:
        index.add(["near a", "near b"], np.stack([near_a, near_b]), [1, 1])
        query = np.stack([a, b])
        equal = Scoring(20.0, (0.5, 0.5), (0.5, 0.5))
        assert [hit.id for hit in index.search(query, scoring=equal)] == ["near b", "near a"]
        strict = Scoring(20.0, (0.5, 0.75), (0.5, 0.75))
        assert [hit.id for hit in index.search(query, scoring=strict)] == ["near a", "near b"]
        assert [hit.id for hit in index.search(query, scoring=strict, at_least=1)] == ["near a"]
        generous = Scoring(20.0, (0.5, 0.75), (0.5, 0.65))
        assert [hit.id for hit in index.search(query, scoring=generous, at_least=1)] == ["near a", "near b"]


def test_a_face_that_two_want_goes_to_the_one_it_exceeds_by_more(tmp_path: Path) -> None:
    one = np.array([[0.8, 0.75]], np.float32)
    with SetIndex.create(tmp_path / "i", 2) as index:
        index.add(["one"], one, [1])
        query = np.eye(2, dtype=np.float32)
        (hit,) = index.search(query)
        assert [match.query_element for match in hit.matches] == [0]
        (hit,) = index.search(query, scoring=Scoring(20.0, (0.7, 0.5), (0.7, 0.5)))
        assert [match.query_element for match in hit.matches] == [1]


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_a_pair_known_to_match_is_found_however_unlike_it_is(tmp_path: Path, mode: Any) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(600, 16)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    query = rows[:1]
    worst = str(int((rows @ query[0]).argmin()))
    with SetIndex.create(tmp_path / "i", 16) as index:
        index.add([str(i) for i in range(600)], rows, [1] * 600)
        hits = index.search(
            query, k=2, mode=mode, candidates=5, at_least=1, known={worst: [KnownPair(0, 0, True)]}
        )
        assert [hit.id for hit in hits] == [worst, "0"]
        assert hits[0].score == 1.0
        assert hits[0].matches[0].similarity < 0, "its similarity is told as it is"
        refused = {"0": [KnownPair(0, 0, False)]}
        assert "0" not in [hit.id for hit in index.search(query, k=600, mode=mode, at_least=1, known=refused)]


def test_scoring_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "i", 2) as index:
        index.add(["x"], np.eye(2)[:1], [1])
        with pytest.raises(
            InvalidInputError, match="1 centres, 1 thresholds and 0 of `without`: the query has 2"
        ):
            index.search(np.eye(2), scoring=Scoring(20.0, (0.5,), (0.5,)))
        with pytest.raises(InvalidInputError, match="1 vectors are unwanted"):
            index.search(np.eye(2)[:1], without=np.eye(2)[1:], scoring=Scoring(20.0, (0.5,), (0.5,)))
        with pytest.raises(InvalidInputError, match="greedy"):
            index.search(np.eye(2), matching="optimal", known={"x": [KnownPair(0, 0, True)]})
    for bad in ((0.0, (0.5,)), (20.0, (float("nan"),)), (20.0, ())):
        with pytest.raises(InvalidInputError, match="w above 0"):
            Scoring(bad[0], bad[1], bad[1])


def test_a_sample_is_evenly_spaced_over_what_is_alive(tmp_path: Path) -> None:
    rows = np.arange(1, 41, dtype=np.float32)[:, None]
    with SetIndex.create(tmp_path / "i", 1) as index:
        assert index.sample(5).shape == (0, 1)
        index.add([str(i) for i in range(10)], rows[:20], [2] * 10)
        index.add([str(i) for i in range(10, 20)], rows[20:], [2] * 10)
        assert index.sample(100)[:, 0].tolist() == list(range(1, 41))
        assert index.sample(4)[:, 0].tolist() == [1, 14, 27, 40]
        index.delete([str(i) for i in range(5)])
        assert index.sample(100)[:, 0].tolist() == list(range(11, 41))
        before = index.sample(7).tolist()
        index.compact()
        assert index.sample(7).tolist() == before
        with pytest.raises(InvalidInputError, match="count is 0"):
            index.sample(0)
