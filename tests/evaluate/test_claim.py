"""The comparison of the paper's networks, on made-up faces under LFW's names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate import claim as comparison
from setnet.evaluate import measures as bootstrap
from setnet.evaluate.claim import (
    evaluate_claim,
    is_reproduced,
    leads,
    over_seeds,
    tables,
    write_claim,
)
from setnet.evaluate.claim_data import faces_domain
from setnet.evaluate.people import read_split
from setnet.evaluate.record import Record, Row
from setnet.evaluate.stress_trial import FACES
from setnet.train import stages
from setnet.train.aggregators import random_sets
from setnet.train.settings import load_settings
from setnet.train.stages import VARIANTS
from tests.support.learn_people import pattern

FAMILY_OF_ROW = {
    "Baseline-GM-": "gem",
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


def crops(path: Path) -> None:
    split = read_split()
    pixels, labels = [], []
    for half, names in enumerate((sorted(split.train), sorted(split.test))):
        for person, name in enumerate(names[:70]):
            for photo in range(4 if person < 40 else 1):
                pixels.append(pattern(100 * half + person, photo, 36))
                labels.append(name)
    path.parent.mkdir(parents=True)
    np.savez(path, pixels=np.stack(pixels), labels=np.array(labels), missed=0)


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
    crops(out / "crops.npz")
    settings = load_settings("tiny", SMALL)

    def measured(changes: Sequence[str] = (), **options: Any) -> Record:
        changed = settings.override(changes)
        domain = replace(
            faces_domain(tmp_path / "no-photos-needed", out / "crops.npz", changed),
            sizes=((10, 40),),
            calibration=(6, 30),
        )
        return evaluate_claim(domain, out, changed, worlds=2, **options)

    first = measured()
    names = [row.name for row in over_seeds(first)]
    assert len(names) == len(set(names))
    paper = [name for name in names if name.startswith(("Baseline", "SetNet", "Memory", "MUVERA"))]
    assert len(paper) == 23
    for wanted in ("Baseline-3 + W (W after agg.)", "Baseline-GM-2 (p per dim.) + W", "SetNet-3 + W"):
        assert wanted in names
    for wanted in ("Descriptor-per-element", "Element codes, 8 bits", "Element codes, 1 bit"):
        assert wanted in names
    for row in first.rows:
        measured_in = np.array(list(row.values.values()))
        assert measured_in.shape == (8, 2)
        assert ((measured_in >= 0) & (measured_in <= 100)).all()
    tried = first.extra["rates"]["contrastive"]
    grid = {f"{times * settings.sets.rate:g}" for times in comparison.RATES}
    assert sorted(tried) == ["average", "gem", "netvlad"]
    assert all(set(one["tried"]) == grid for one in tried.values()), "the same trials for every family"
    for row in first.rows:
        family = next((name for start, name in FAMILY_OF_ROW.items() if row.name.startswith(start)), None)
        assert row.facts.get("rate") == (tried[family]["rate"] if family else None)
    assert measured().rows == first.rows, "nothing is done twice"

    some = tuple(one for one in VARIANTS if one.name in ("Baseline", "Baseline-2", "SetNet-2", "SetNet-3"))
    monkeypatch.setattr(comparison, "VARIANTS", some)
    both = measured(seeds=2, losses=["contrastive", "logistic"], without=True)
    assert [row for row in both.rows if row in first.rows] == list(first.rows)
    merged = {row.name: row for row in over_seeds(both)}
    assert {"SetNet-2 + W, contrastive", "SetNet-2 + W, logistic", "SetNet-2, hard start, logistic"} <= set(
        merged
    )
    assert np.shape(merged["SetNet-3 + W, logistic"].values["ndcg10@2"]) == (2, 2)
    # the average of one element is that element, so only what set training made of it is seen
    alone = merged["Every element of Baseline-2, contrastive"].values["ndcg10@5"]
    assert np.mean(alone) >= np.mean(merged["Baseline-2, contrastive"].values["ndcg10@5"])
    with pytest.raises(InvalidInputError, match="other settings"):
        measured(["sets.rate=0.5"])

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


def test_a_row_that_some_seed_lacks_is_left_out() -> None:
    whole = record_of(1.0)
    part = Record("claim", whole.settings, whole.rows[:-1], {})
    assert [row.name for row in over_seeds(part)] == ["Baseline + W", "Baseline"]
