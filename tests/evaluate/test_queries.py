"""Queries run against an index, measured against the ground truth."""

from __future__ import annotations

import time
from pathlib import Path

import ir_measures
import pytest

from setnet.evaluate.baselines import PlainElements
from setnet.evaluate.queries import QueryRunner, build_index, by_faces
from setnet.evaluate.worlds import SimulatedWorld
from setnet.heads import Mean
from setnet.heads.logistic import ELEMENT_LOGISTIC
from setnet.train.simulated import VirtualPeople


def test_measures_of_the_engine_agree_with_an_independent_library(
    model: VirtualPeople, tmp_path: Path
) -> None:
    world = SimulatedWorld(model, seed=2, scale=0.002, difficulty=2.0)
    runner = QueryRunner(world, 8, 8, repeats=1)
    with build_index(tmp_path / "i", world, Mean(128), ELEMENT_LOGISTIC) as index:
        plain = PlainElements(world)
        for number, people in enumerate(by_faces(runner, 0)):
            hits = index.search(people, k=30, mode="exact")
            found = [int(hit.id) for hit in hits]
            assert found[:5] == plain.search(people, 5, ELEMENT_LOGISTIC).tolist()
            relevance = world.truth.relevance(runner.queries[number])
            truth = {"q": {str(item): 2**r - 1 for item, r in relevance.items()}}
            ranking = {"q": {hit.id: float(len(hits) - rank) for rank, hit in enumerate(hits)}}
            for n in (10, 30):
                theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ n], truth, ranking)[
                    ir_measures.nDCG @ n
                ]
                assert runner.measure(number, found)[f"ndcg{n}"] == pytest.approx(100 * theirs, abs=1e-6)


def test_timing_warms_up_and_measures_single_queries(model: VirtualPeople) -> None:
    runner = QueryRunner(SimulatedWorld(model, seed=2, scale=0.002), 8, 8, repeats=1, timed=4)
    searched: list[object] = []

    def search(query: object) -> None:
        searched.append(query)
        until = time.process_time() + (0.005 if len(searched) > 4 else 0.1)  # the first of each query is slow
        while time.process_time() < until:
            pass

    seconds = runner.timing(search, by_faces)
    assert len(searched) == 4 + 4
    assert len(seconds) == 4
    assert all(0.005 <= one < 0.1 for one in seconds)
