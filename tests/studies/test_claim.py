"""The comparison of the paper's networks, with all that is chosen, on made-up faces under LFW's names."""

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
from setnet.evaluate.claim import evaluate_claim, kinds, over_seeds
from setnet.evaluate.claim_data import Domain, Test
from setnet.evaluate.record import Record
from setnet.train import FaceArray, TrainingSettings, new_backbone, stages
from setnet.train.aggregators import random_sets
from setnet.train.settings import load_settings
from setnet.train.stages import VARIANTS
from studies import claim
from studies.claim import PartsTrainer, VerifiedTrainer, tables, write_page
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
    hard_start = [one for one in claim.WITHOUT if "hard start" in one.name]
    for name, fewer in (("RATES", (0.5, 1.0)), ("ALPHAS", (3.0, 10.0)), ("WITHOUT", hard_start)):
        monkeypatch.setattr(claim, name, fewer)
    monkeypatch.setattr(bootstrap, "DRAWS", 20)  # the record is written again after every row
    monkeypatch.setattr(
        stages, "random_sets", lambda labels, sizes, _, rng: random_sets(labels, sizes, 200, rng)
    )  # 200 sets are enough to whiten twelve dimensions
    out = tmp_path / "run"
    settings = load_settings("tiny", SMALL)

    def measured(changes: Sequence[str] = (), file: str = "rows", **given: Any) -> Record:
        changed = settings.override(changes)
        trainer, record = given.pop("trainer", claim.ChoosingTrainer), tmp_path / f"{file}.json"
        return evaluate_claim(domain(changed, **given), out, changed, record=record, trainer=trainer)

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
    grid = {f"{times * settings.sets.rate:g}" for times in claim.RATES}
    assert sorted(tried) == ["average", "gem", "netvlad"]
    assert all(set(one["tried"]) == grid for one in tried.values()), "the same trials for every family"
    for row in first.rows:
        family = next((name for start, name in FAMILY_OF_ROW.items() if row.name.startswith(start)), None)
        assert row.facts.get("rate") == (tried[family]["rate"] if family else None)
    shutil.rmtree(out)
    assert measured().rows == first.rows, "the record is enough, networks may be lost"
    assert not out.exists()

    some = tuple(one for one in VARIANTS if one.name in ("Baseline", "Baseline-2", "SetNet-2", "SetNet-3"))
    for module in (comparison, claim):
        monkeypatch.setattr(module, "VARIANTS", some)
    losses = ("contrastive", "logistic")
    both = measured(others=[("small", 12)], losses=losses, trainer=PartsTrainer)
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
    monkeypatch.setattr(claim, "VERIFIED", 101.0)
    with pytest.raises(TrainingError, match="101 % are needed"):
        measured(file="other", trainer=VerifiedTrainer)

    page = tmp_path / "docs" / "results.md"
    page.parent.mkdir()
    page.write_text("# Results\n\nSomething else.\n")
    for _ in range(2):
        write_page(both, page)
    text = page.read_text()
    assert text.startswith("# Results\n\nSomething else.\n")
    assert all(text.count(table.markdown()) == 1 for table in tables(both))
    assert "begin generated: claim-faces-by-parts" in text
