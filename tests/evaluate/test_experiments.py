"""Experiments end to end on small virtual worlds."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import ir_measures
import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.data.people import Halves, virtual_halves
from setnet.evaluate.experiments.fit import SHIPPED
from setnet.evaluate.experiments.identify import identification_rates, roc, run_identify
from setnet.evaluate.experiments.orthogonality import gram_difference, run_orthogonality
from setnet.evaluate.experiments.query_runs import Asker, build_index, by_faces
from setnet.evaluate.experiments.retrieval import run_retrieval
from setnet.evaluate.experiments.stress_experiment import ELEMENTS, run_stress
from setnet.evaluate.experiments.tradeoff import EXACT, OPTIMAL, PLAIN, PLAIN_SETS, row_count, run_tradeoff
from setnet.evaluate.methods.methods import Methods
from setnet.evaluate.methods.plain_scan import PlainElements
from setnet.evaluate.methods.stress import stress, stress_elements
from setnet.evaluate.methods.stress_scores import Judge, element_values, set_values
from setnet.evaluate.report.record import Run, mean_and_error
from setnet.evaluate.worlds.stress_world import stress_world
from setnet.evaluate.worlds.worlds import SimulatedWorld
from setnet.learn.data.virtual_people import VirtualPeople
from setnet.sets import Mean
from setnet.sets.logistic import ELEMENT_LOGISTIC, SET_LOGISTIC

MODEL = VirtualPeople.load(SHIPPED)


@pytest.fixture(scope="module")
def halves() -> Halves:
    return virtual_halves(MODEL, 1.5, seed=0, people=150)


@pytest.fixture(scope="module")
def methods(halves: Halves) -> Methods:
    return Methods(halves.train, fitting_sets=800)


def test_fast_stress_scores_are_those_of_the_plain_computation(halves: Halves) -> None:
    test = halves.test
    world = stress_world(test.descriptors, test.labels, sets=900, queries=20, repeats=3)
    judge = Judge(world)
    fast = set_values(Mean(128), SET_LOGISTIC, judge, (2, 5))
    for depth in (10, 30):
        slow = stress(Mean(128), world, faces=(2, 5), depth=depth)
        np.testing.assert_allclose([fast[2][depth], fast[5][depth]], slow.values, atol=0.02)
    fast = element_values(ELEMENT_LOGISTIC, judge, (2, 5))
    slow = stress_elements(world, faces=(2, 5))
    np.testing.assert_allclose([fast[2][10], fast[5][10]], slow.values, atol=0.02)


def test_stress_goes_on_where_it_stopped(halves: Halves, methods: Methods, tmp_path: Path) -> None:
    def stop_at(name: str, said: str) -> None:
        if said == name:
            raise KeyboardInterrupt

    path = tmp_path / "stress.json"
    start = partial(
        run_stress, halves=halves, methods=methods, names=["mean", "mean +W"], sets=500, queries=10, repeats=2
    )
    with pytest.raises(KeyboardInterrupt):
        start(Run("stress", {"a": 1}, path), say=partial(stop_at, "mean +W"))
    run = Run("stress", {"a": 1}, path)
    assert list(run.rows) == ["mean"]
    said: list[str] = []
    start(run, say=said.append)
    assert "mean" not in said
    assert {"mean", "mean +W", ELEMENTS} <= set(run.rows)
    assert mean_and_error(run.rows[ELEMENTS].values["ndcg10@5"]) > mean_and_error(
        run.rows["mean"].values["ndcg10@5"]
    )
    with pytest.raises(InvalidInputError, match="a 1 there, 2 asked"):
        Run("stress", {"a": 2}, path)


def test_tradeoff_measures_every_way_of_searching(methods: Methods) -> None:
    world = SimulatedWorld(MODEL, seed=1, scale=0.004, difficulty=1.5)
    asker = Asker(world, 15, 10, repeats=2, timed=5)
    run = Run("tradeoff", {})
    run_tradeoff(run, world, methods, ["mean"], "mean +W", asker)
    assert len(run.rows) == row_count(["mean"], "mean +W")
    at = {name: row.values["ndcg10"] for name, row in run.rows.items()}
    # of 2,196 items 2,000 re-ranked are nearly all
    np.testing.assert_allclose(at["mean, re-rank 2000"], at[EXACT], atol=0.5)
    assert np.mean(at[EXACT]) > np.mean(at["mean"])
    assert run.rows["mean"].facts["bytes_per_item"] == 512
    for name in (OPTIMAL, PLAIN, PLAIN_SETS):
        assert run.rows[name].facts["mean_ms"] > 0
    rows = dict(run.rows)
    run_tradeoff(run, world, methods, ["mean"], "mean +W", asker)
    assert run.rows == rows, "a finished run was measured again"


def test_retrieval_rows_and_three_examples_help(methods: Methods) -> None:
    world = SimulatedWorld(MODEL, seed=1, scale=0.003, difficulty=2.0)
    run = Run("retrieval", {})
    run_retrieval(run, world, methods, ["mean"], Asker(world, 20, 10, repeats=2))
    assert list(run.rows) == ["mean", "mean, query agg.", "mean, mean of scores", "mean, max of scores"]
    values = run.rows["mean"].values
    assert np.mean(values["ndcg10 n3"]) > np.mean(values["ndcg10 n1"])
    assert "ndcg10 n1" not in run.rows["mean, max of scores"].values


def test_measures_of_the_engine_agree_with_an_independent_library(tmp_path: Path) -> None:
    world = SimulatedWorld(MODEL, seed=2, scale=0.002, difficulty=2.0)
    asker = Asker(world, 8, 8, repeats=1)
    with build_index(tmp_path / "i", world, Mean(128), ELEMENT_LOGISTIC) as index:
        plain = PlainElements(world)
        for number, people in enumerate(by_faces(asker, 0)):
            hits = index.search(people, k=30, mode="exact")
            found = [int(hit.id) for hit in hits]
            assert found[:5] == plain.search(people, 5, ELEMENT_LOGISTIC).tolist()
            relevance = world.truth.relevance(asker.queries[number])
            truth = {"q": {str(item): 2**r - 1 for item, r in relevance.items()}}
            ranking = {"q": {hit.id: float(len(hits) - rank) for rank, hit in enumerate(hits)}}
            for n in (10, 30):
                theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ n], truth, ranking)[
                    ir_measures.nDCG @ n
                ]
                assert asker.judged(number, found)[f"ndcg{n}"] == pytest.approx(100 * theirs, abs=1e-6)


def test_orthogonality_of_known_directions(halves: Halves, methods: Methods) -> None:
    rng = np.random.default_rng(0)
    random = rng.standard_normal((2000, 64))
    assert gram_difference(random) / (2000 / np.sqrt(64)) == pytest.approx(1.0, abs=0.03)
    same = (
        np.ones((20, 4)) + 0.001 * np.repeat(rng.standard_normal((1, 4)), 20, axis=0) * np.arange(20)[:, None]
    )
    assert gram_difference(same) == pytest.approx(np.sqrt(20 * 19), rel=0.01), "all in one line: worst"
    run = Run("orthogonality", {})
    run_orthogonality(run, halves.test, methods, [], repeats=2)
    # nobody has more than 100 faces: every repeat takes all of them, as the definition says
    rows, groups = halves.test.descriptors, halves.test.groups(2)
    means = np.stack([rows[group].mean(axis=0) for group in groups])
    literal = means / np.linalg.norm(means, axis=1, keepdims=True)
    literal = literal - literal.mean(axis=0)
    literal /= np.linalg.norm(literal, axis=1, keepdims=True)
    literal = np.linalg.norm(literal @ literal.T - np.eye(len(groups)))
    assert run.rows["descriptor"].values["plain"] == pytest.approx([literal] * 2, rel=1e-4)
    for kind in ("plain_ratio", "whitened_ratio"):
        assert 0.95 < mean_and_error(run.rows["descriptor"].values[kind])[0] < 1.3


def test_identification(halves: Halves, methods: Methods) -> None:
    gallery = np.eye(12, dtype=np.float32)
    probe = np.array([[0.5, 1.0, *[0.0] * 10]], dtype=np.float32)
    assert identification_rates(gallery, probe, np.array([0])) == {1: 0.0, 5: 100.0, 10: 100.0}
    same, different = np.array([0.9, 0.4], np.float32), np.linspace(0, 0.5, 101).astype(np.float32)
    assert roc(same, different, np.array([0.01, 0.5])).tolist() == [50.0, 100.0]
    run = Run("identify", {})
    run_identify(run, halves.test, methods, [], repeats=2)
    rates = {key: mean_and_error(v)[0] for key, v in run.rows["descriptor"].values.items()}
    assert 50 < rates["tpir1"] <= rates["tpir5"] <= rates["tpir10"]
    assert rates["tar@0.0001"] <= rates["tar@0.01"]
