"""The stress test as an experiment: rows per method, kept and continued."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.methods import Methods
from setnet.evaluate.people import Halves
from setnet.evaluate.record import Progress, Run, mean_and_error
from setnet.evaluate.stress import ELEMENTS, run_stress

pytestmark = pytest.mark.usefixtures("coarse_calibration")


def test_stress_goes_on_where_it_stopped(halves: Halves, methods: Methods, tmp_path: Path) -> None:
    def stop_at(name: str, now: Progress) -> None:
        if now.doing == name:
            raise KeyboardInterrupt

    path = tmp_path / "stress.json"
    start = partial(
        run_stress,
        halves=halves,
        methods=methods,
        names=["mean", "mean +W", "gm"],
        sets=500,
        queries=10,
        repeats=2,
        worlds=2,
    )
    with pytest.raises(KeyboardInterrupt):
        start(Run("stress", {"a": 1}, path, partial(stop_at, "mean +W")))
    said: list[Progress] = []
    run = Run("stress", {"a": 1}, path, said.append)
    assert list(run.rows) == ["mean"]
    start(run)
    assert "mean" not in [now.doing for now in said]
    assert {"mean", "mean +W", ELEMENTS, "element codes, 1 bit"} <= set(run.rows)
    assert run.rows["gm"].values, "measured because it was named"
    assert not run.rows["gm +W after"].values
    assert len(run.rows["mean +W"].values["ndcg10@5"]) == 4, "two repeats in each of two worlds"
    assert mean_and_error(run.rows[ELEMENTS].values["ndcg10@5"]) > mean_and_error(
        run.rows["mean"].values["ndcg10@5"]
    )
    with pytest.raises(InvalidInputError, match="a 1 there, 2 requested"):
        Run("stress", {"a": 2}, path)
