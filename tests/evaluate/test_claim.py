"""The leads of the comparison, over seeds and worlds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from setnet.evaluate.claim import is_reproduced, leads, over_seeds
from setnet.evaluate.record import Record, Row
from setnet.evaluate.stress_trial import FACES


def record_of(leads_by: float) -> Record:
    """Return a record in which SetNet is ahead of the better of two baselines by so many points."""

    def row(name: str, seed: int, ten: list[float]) -> Row:
        values = {f"ndcg{depth}@{count}": ten for depth in (10, 30) for count in FACES}
        return Row(f"{name}, seed {seed}", values, {"row": name, "loss": "", "seed": seed, "bytes": 512})

    rows = []
    for seed, luck in enumerate((0.0, 1.0, -1.0)):
        base = [40.0 + luck, 44.0 + luck]
        rows += [row("Baseline + W", seed, base), row("Baseline", seed, [v - 5 for v in base])]
        rows.append(row("SetNet-3 + W", seed, [v + leads_by + 0.1 * luck for v in base]))
    return Record("claim", {"elements": "faces"}, tuple(rows), {})


def test_a_lead_is_paired_over_seeds_and_worlds() -> None:
    for points, reproduced in ((2.0, True), (0.05, False), (-2.0, False)):
        rows = over_seeds(record_of(points))
        found = leads(rows, "SetNet-3 + W")
        assert [lead.elements for lead in found] == list(FACES)
        assert {lead.baseline for lead in found} == {"Baseline + W"}
        assert found[0].points == pytest.approx(points)
        assert found[0].error == pytest.approx(0.1 / 3**0.5), "what seeds and worlds share cancels"
        assert str(found[0]).endswith(" ± 0.1 (Baseline + W)")
        assert is_reproduced(rows, "SetNet-3 + W") is reproduced


def test_a_lead_in_one_world_and_seed_has_no_error() -> None:
    first = record_of(1.0).rows[:3]
    alone = tuple(replace(row, values={"ndcg10@2": row.values["ndcg10@2"][:1]}) for row in first)
    whole = Record("claim", {"elements": "faces"}, alone, {})
    assert str(leads(over_seeds(whole), "SetNet-3 + W")[0]) == "+1.0 (Baseline + W)"


def test_a_seed_that_is_half_done_and_a_row_that_another_seed_lacks_are_left_out() -> None:
    whole = record_of(1.0)
    for rows in (whole.rows[:-1], whole.rows[1:]):
        part = Record("claim", whole.settings, rows, {})
        assert [np.shape(row.values["ndcg10@2"]) for row in over_seeds(part)] == [(2, 2)] * 3
    odd = replace(whole.rows[0], facts={**whole.rows[0].facts, "row": "Memory vectors"})
    lone = Record("claim", whole.settings, (odd, *whole.rows[1:]), {})
    assert sorted(row.name for row in over_seeds(lone)) == ["Baseline", "SetNet-3 + W"]
