"""The comparison of the paper's networks, on made-up faces under LFW's names."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import InvalidInputError, TrainingError
from setnet.evaluate import claim as comparison
from setnet.evaluate import measures as bootstrap
from setnet.evaluate.claim import (
    evaluate_claim,
    is_reproduced,
    kinds,
    leads,
    over_seeds,
    tables,
    write_claim,
)
from setnet.evaluate.claim_data import Domain, Test
from setnet.evaluate.record import Record, Row
from setnet.evaluate.stress_trial import FACES
from setnet.train import FaceArray, TrainingSettings, new_backbone, stages
from setnet.train.aggregators import random_sets
from setnet.train.settings import load_settings
from setnet.train.stages import VARIANTS
from tests.support.learn_people import pattern

FAMILY_OF_ROW = {
    "AggNet-3": "netvlad",
    "Baseline-GM-": "gem",
    "Baseline-2 with": "netvlad",
    "Baseline-2": "average",
    "Baseline-3": "average",
    "SetNet-2": "netvlad",
    "SetNet-3": "netvlad",
}

pytestmark = pytest.mark.usefixtures("one_thread", "coarse_calibration")

SMALL = [
    "backbone.size=32",
    "backbone.width=0.25",
    "backbone.dim=16",
    "augment.short_side=36",
    "aggregator.dim=12",
    "aggregator.clusters=2",
    "aggregator.start_sets=200",
    "pretrain.batch=16",
    "pretrain.steps=4",
    "sets.identities=8",
    "sets.steps=2",
]


def domain(settings: TrainingSettings, **changes: Any) -> Domain:
    """Return made-up people, 40 of four pictures and 30 of one in each half."""
    spec = new_backbone(settings).spec
    assert spec is not None

    def source(people: Sequence[int], singles: Sequence[int] = ()) -> FaceArray:
        labels = [*np.repeat(people, 4).tolist(), *singles]
        pixels = [pattern(person, photo, 36) for photo, person in enumerate(labels)]
        return FaceArray(np.stack(pixels), np.array(labels), spec, settings.augment)

    learned = source(range(30))
    calibrate, tested = source(range(30, 40), range(40, 70)), source(range(100, 140), range(140, 170))
    tests = {"": Test(tested), "large sets": Test(tested, (10,), (10,))}
    made = Domain("faces", learned, learned, calibrate, tests, (10, 40), (6, 30), {}, 1, 2, ("contrastive",))
    return replace(made, **changes)


def test_every_network_of_the_paper_is_trained_evaluated_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hard_start = [one for one in stages.WITHOUT if "hard start" in one.name]
    for name, fewer in (("RATES", (0.5, 1.0)), ("ALPHAS", (3.0, 10.0)), ("WITHOUT", hard_start)):
        monkeypatch.setattr(comparison, name, fewer)
    monkeypatch.setattr(bootstrap, "DRAWS", 20)  # the record is written again after every row
    monkeypatch.setattr(
        stages, "random_sets", lambda labels, sizes, _, rng: random_sets(labels, sizes, 200, rng)
    )  # 200 sets are enough to whiten twelve dimensions
    out = tmp_path / "run"
    settings = load_settings("tiny", SMALL)

    def measured(changes: Sequence[str] = (), file: str = "rows", **given: Any) -> Record:
        changed = settings.override(changes)
        without, record = bool(given.pop("without", False)), tmp_path / f"{file}.json"
        return evaluate_claim(domain(changed, **given), out, changed, without=without, record=record)

    first = measured()
    names = [row.name for row in over_seeds(first)]
    assert len(names) == len(set(names))
    paper = [name for name in names if name.startswith(("Baseline", "SetNet", "Memory"))]
    assert len(paper) == 24
    for wanted in ("Baseline-3 + W (W after agg.)", "Baseline-GM-2 (p per dim.) + W", "SetNet-3 + W"):
        assert wanted in names
    for wanted in ("Descriptor-per-element", "Element codes, 8 bits", "Element codes, 1 bit"):
        assert wanted in names
    (aggnet,) = (row for row in first.rows if row.name.startswith("AggNet"))
    assert aggnet.facts["bytes"] == 8, "signs of two clusters of 16 dimensions, as whole 64 bits"
    for row in first.rows:
        measured_in = np.array(list(row.values.values()))
        assert measured_in.shape == (9, 2)
        assert ((measured_in >= 0) & (measured_in <= 100)).all()
    tried = first.extra["rates"]["contrastive"]
    grid = {f"{times * settings.sets.rate:g}" for times in comparison.RATES}
    assert sorted(tried) == ["average", "gem", "netvlad"]
    assert all(set(one["tried"]) == grid for one in tried.values()), "the same trials for every family"
    for row in first.rows:
        family = next((name for start, name in FAMILY_OF_ROW.items() if row.name.startswith(start)), None)
        assert row.facts.get("rate") == (tried[family]["rate"] if family else None)
    shutil.rmtree(out)
    assert measured().rows == first.rows, "the record is enough, networks may be lost"
    assert not out.exists()

    some = tuple(one for one in VARIANTS if one.name in ("Baseline", "Baseline-2", "SetNet-2", "SetNet-3"))
    monkeypatch.setattr(comparison, "VARIANTS", some)
    losses = ("contrastive", "logistic")
    both = measured(others=[("small", 12)], losses=losses, without=True)
    assert [row for row in both.rows if row in first.rows] == list(first.rows)
    merged = {row.name: row for row in over_seeds(both)}
    assert {"SetNet-2 + W", "SetNet-2, hard start", "Element codes, 1 bit, of SetNet-3"} <= set(merged)
    assert np.shape(merged["SetNet-3 + W"].values["ndcg10@2"]) == (1, 2)
    assert [kind[0] for kind in kinds(both)] == [*losses, "contrastive"]
    for kind in kinds(both)[1:]:
        names = [row.name for row in over_seeds(both, kind)]
        assert {"SetNet-3 + W", "Descriptor-per-element"} <= set(names)
    # the average of one element is that element, so only what set training made of it is seen
    alone = merged["Every element of Baseline-2"].values["ndcg10@5"]
    assert np.mean(alone) >= np.mean(merged["Baseline-2"].values["ndcg10@5"])
    with pytest.raises(InvalidInputError, match="other settings"):
        measured(["sets.rate=0.5"])
    monkeypatch.setattr(comparison, "VERIFIED", 101.0)
    with pytest.raises(TrainingError, match="101 % are needed"):
        measured(file="other", is_verified=True)

    page = tmp_path / "docs" / "results.md"
    page.parent.mkdir()
    page.write_text("# Results\n\nSomething else.\n")
    for _ in range(2):
        write_claim(both, page)
    text = page.read_text()
    assert text.startswith("# Results\n\nSomething else.\n")
    assert all(text.count(table.markdown()) == 1 for table in tables(both))
    assert (page.parent / "results" / "claim-faces-by-parts" / "claim.svg").stat().st_size > 1000


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
        assert is_reproduced(rows, "SetNet-3 + W") is reproduced


def test_a_seed_that_is_half_done_and_a_row_that_another_seed_lacks_are_left_out() -> None:
    whole = record_of(1.0)
    for rows in (whole.rows[:-1], whole.rows[1:]):
        part = Record("claim", whole.settings, rows, {})
        assert [np.shape(row.values["ndcg10@2"]) for row in over_seeds(part)] == [(2, 2)] * 3
    odd = replace(whole.rows[0], facts={**whole.rows[0].facts, "row": "Memory vectors"})
    lone = Record("claim", whole.settings, (odd, *whole.rows[1:]), {})
    assert sorted(row.name for row in over_seeds(lone)) == ["Baseline", "SetNet-3 + W"]
