"""Quality against time and bytes, through the engine."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.evaluate.inputs import QueryRunner
from setnet.evaluate.methods import Methods
from setnet.evaluate.record import Run
from setnet.evaluate.tradeoff import EXACT, OPTIMAL, PLAIN, PLAIN_SETS, row_count, run_tradeoff
from setnet.evaluate.worlds import SimulatedWorld
from setnet.train.simulated import VirtualPeople

pytestmark = pytest.mark.usefixtures("coarse_calibration")


def test_tradeoff_measures_every_way_of_searching(model: VirtualPeople, methods: Methods) -> None:
    world = SimulatedWorld(model, seed=1, scale=0.004, difficulty=1.5)
    runner = QueryRunner(world, 15, 10, repeats=2, timed=5)
    run = Run("tradeoff", {})
    run_tradeoff(run, world, methods, ["mean"], "mean +W", runner)
    assert len(run.rows) == row_count(["mean"], "mean +W")
    at = {name: row.values["ndcg10"] for name, row in run.rows.items()}
    # of 2,196 items 2,000 re-ranked are nearly all
    np.testing.assert_allclose(at["mean, re-rank 2000"], at[EXACT], atol=0.5)
    assert np.mean(at[EXACT]) > np.mean(at["mean"])
    assert run.rows["mean"].facts["bytes_per_item"] == 512
    plain = run.rows[PLAIN].facts["mean_ms"]
    for name in (OPTIMAL, PLAIN_SETS, "mean", "tags"):
        facts = run.rows[name].facts
        assert facts["speedup"] == pytest.approx(plain / facts["mean_ms"])
    rows = dict(run.rows)
    run_tradeoff(run, world, methods, ["mean"], "mean +W", runner)
    assert run.rows == rows, "a finished run was measured again"
