"""Plots of results."""

from __future__ import annotations

from pathlib import Path

from setnet.evaluate.plots import RERANKED, plots_of
from setnet.evaluate.record import Record, Row


def test_every_experiment_with_a_plot_draws_it(tmp_path: Path) -> None:
    trade = {"mean_ms": 3.0, "bytes_per_item": 512}
    curve = {"curve": {"far": [0.001, 0.1], "tar": [50.0, 90.0]}}
    rows = {
        "tradeoff": [
            Row("a", {"ndcg10": [50.0]}, trade),
            Row("b", {"ndcg10": [60.0]}, trade | {"mean_ms": 9.0}),
        ],
        "identify": [Row("a", {}, curve)],
    }
    for experiment, some in rows.items():
        for path in plots_of(Record(experiment, {}, tuple(some), {}), tmp_path):
            assert path.stat().st_size > 5000
    assert len(list(tmp_path.glob("*.svg"))) == 3
    assert plots_of(Record("fit", {}, (Row("a"),), {}), tmp_path) == []


def test_steps_of_re_ranking_are_one_family() -> None:
    names = ["head, query agg.", "head, re-rank 100, query agg.", "head, re-rank 2,000, query agg."]
    assert {RERANKED.sub("", name) for name in names} == {names[0]}
    assert [found[1] for name in names if (found := RERANKED.search(name))] == ["100", "2,000"]
