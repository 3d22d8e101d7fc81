"""Retrieval by set vectors alone."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.evaluate.inputs import QueryRunner
from setnet.evaluate.methods import Methods
from setnet.evaluate.record import Run
from setnet.evaluate.retrieval import ELEMENTS, run_retrieval
from setnet.evaluate.worlds import SimulatedWorld
from setnet.train.simulated import VirtualPeople

pytestmark = pytest.mark.usefixtures("coarse_calibration")


def test_retrieval_rows_and_three_examples_help(model: VirtualPeople, methods: Methods) -> None:
    world = SimulatedWorld(model, seed=1, scale=0.003, difficulty=2.0)
    run = Run("retrieval", {})
    run_retrieval(run, world, methods, ["mean"], QueryRunner(world, 20, 10, repeats=2))
    sets = ["mean", "mean, query agg.", "mean, mean of scores", "mean, max of scores"]
    codes = [f"element codes, {bits}" for bits in ("8 bits", "4 bits", "1 bit")]
    assert list(run.rows) == [*sets, ELEMENTS, *codes, *methods.not_applicable]
    assert "gm" in methods.not_applicable
    assert not run.rows["gm"].values, "a mean of |x| says nothing of descriptors with signs"
    values = run.rows["mean"].values
    assert np.mean(values["ndcg10 n3"]) > np.mean(values["ndcg10 n1"])
    assert "ndcg10 n1" not in run.rows["mean, max of scores"].values
