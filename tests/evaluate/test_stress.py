"""The stress test as an experiment: rows per method, kept and continued."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate import stress
from setnet.evaluate.record import Interrupted, Progress, mean_and_error, read_record
from setnet.evaluate.stress import ELEMENTS
from studies import scalar_codes

pytestmark = pytest.mark.usefixtures("coarse_calibration", "toy_people")


def test_stress_goes_on_where_it_stopped(tmp_path: Path) -> None:
    def stop_at(name: str, now: Progress) -> None:
        if now.doing == name:
            raise KeyboardInterrupt

    path = tmp_path / "stress.json"
    settings = scalar_codes.Settings(
        methods=["mean", "mean +W"], sets=500, queries=10, repeats=2, worlds=2, budgets=[64]
    )
    with pytest.raises(Interrupted) as stopped:
        stress.run(settings, path, partial(stop_at, "mean +W"))
    assert [row.name for row in stopped.value.record.rows] == ["mean"]
    assert [row.name for row in read_record(path).rows] == ["mean"]
    said: list[Progress] = []
    record = stress.run(settings, path, said.append)
    assert "mean" not in [now.doing for now in said]
    rows = {row.name: row for row in record.rows}
    assert {"mean", "mean +W", ELEMENTS, "element codes, 1 bit"} <= set(rows)
    assert len(rows["mean +W"].values["ndcg10@5"]) == 4, "two repeats in each of two worlds"
    assert mean_and_error(rows[ELEMENTS].values["ndcg10@5"]) > mean_and_error(rows["mean"].values["ndcg10@5"])
    *plain, gap = stress.tables(record)
    assert [table.title for table in plain] == [f"Stress test, nDCG@{n}" for n in (10, 30)]
    closed = {name: [float(cell) for cell in cells] for name, _, *cells in gap.cells}
    assert (closed["mean"], closed[ELEMENTS]) == ([0.0] * 4, [100.0] * 4)
    for name in ("budget codes, 64 bytes", "rotation and levels, 64 bytes"):
        assert 50 < np.mean(closed[name][1:3]) < 110
    with pytest.raises(InvalidInputError, match="sets 500 there, 501 requested"):
        stress.run(replace(settings, sets=501), path)
