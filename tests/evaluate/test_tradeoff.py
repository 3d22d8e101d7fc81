"""Quality against time and bytes, through the engine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.evaluate import tradeoff
from setnet.evaluate.record import Progress
from setnet.evaluate.tradeoff import EXACT, OPTIMAL, PLAIN

pytestmark = pytest.mark.usefixtures("coarse_calibration", "toy_people")


def test_tradeoff_measures_every_way_of_searching(tmp_path: Path) -> None:
    settings = tradeoff.Settings(
        seed=1, scale=0.002, difficulty=1.5, methods=["mean"], queries=20, repeats=1, timed=5
    )
    said: list[Progress] = []
    record = tradeoff.run(settings, tmp_path / "r.json", said.append)
    assert len(record.rows) == said[-1].total
    rows = {row.name: row for row in record.rows}
    at = {name: row.values["ndcg10"] for name, row in rows.items()}
    # of 1,098 items all are re-ranked
    np.testing.assert_allclose(at["mean, re-rank 2000"], at[EXACT], atol=0.5)
    assert np.mean(at[EXACT]) > np.mean(at["mean"])
    assert rows["mean"].facts["bytes_per_item"] == 512
    plain = rows[PLAIN].facts["mean_ms"]
    for name in (OPTIMAL, "mean", "tags"):
        facts = rows[name].facts
        assert facts["speedup"] == pytest.approx(plain / facts["mean_ms"])
    again = tradeoff.run(settings, tmp_path / "r.json")
    assert [row.facts for row in again.rows] == [row.facts for row in record.rows], "measured again"
