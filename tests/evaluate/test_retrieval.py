"""Retrieval by set vectors alone."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.evaluate import retrieval
from setnet.evaluate.methods import Methods

pytestmark = pytest.mark.usefixtures("coarse_calibration", "toy_people")


def test_retrieval_rows_and_three_examples_help(methods: Methods) -> None:
    record = retrieval.run(
        retrieval.Settings(seed=1, scale=0.003, difficulty=2.0, methods=["mean"], queries=30, repeats=2)
    )
    rows = {row.name: row for row in record.rows}
    sets = ["mean", "mean, query agg.", "mean, mean of scores", "mean, max of scores"]
    codes = [f"element codes, {bits}" for bits in ("8 bits", "4 bits", "1 bit")]
    assert list(rows) == [*sets, "descriptor per element", *codes]
    values = rows["mean"].values
    assert np.mean(values["ndcg10 n3"]) > np.mean(values["ndcg10 n1"])
    assert "ndcg10 n1" not in rows["mean, max of scores"].values
