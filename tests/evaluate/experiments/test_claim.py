"""The comparison of the paper's networks, on made-up faces under LFW's names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from learn_people import pattern
from setnet.errors import InvalidInputError
from setnet.evaluate.data.splits import read_split
from setnet.evaluate.experiments.claim import run_claim
from setnet.evaluate.report.claim_report import write_report
from setnet.evaluate.report.experiment_tables import tables_of
from setnet.learn.training.training_settings import load_settings
from setnet.learn.training.variants import VARIANTS

pytestmark = pytest.mark.usefixtures("one_thread")

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
        for person, name in enumerate(names[:50]):
            for photo in range(4 if person < 25 else 1):
                pixels.append(pattern(100 * half + person, photo, 36))
                labels.append(name)
    path.parent.mkdir(parents=True)
    np.savez(path, pixels=np.stack(pixels), labels=np.array(labels), missed=0)


def test_every_network_of_the_paper_is_trained_evaluated_and_kept(tmp_path: Path) -> None:
    out = tmp_path / "run"
    crops(out / "crops.npz")
    settings = load_settings("tiny", SMALL)
    result = run_claim(tmp_path / "no-photos-needed", out, settings, worlds=[(10, 40)])
    names = [row.name for row in result.rows]
    assert len(names) == len(set(names)) == 24
    for wanted in ("Baseline-3 + W (W after agg.)", "Baseline-GM-2 (p per dim.) + W", "SetNet-3 + W"):
        assert wanted in names
    for row in result.rows:
        assert len(row.values) == 8
        assert all(0 <= value <= 100 for worlds in row.values.values() for value in worlds)
    assert len(result.extra["exponents"]["Baseline-GM-2 (p per dim.)"]) == 16
    assert {p.name for p in (out / "variants").iterdir()} == {v.folder for v in VARIANTS}
    again = run_claim(tmp_path / "no-photos-needed", out, settings, worlds=[(10, 40)])
    assert again.rows == result.rows
    with pytest.raises(InvalidInputError, match="other settings"):
        run_claim(tmp_path / "no-photos-needed", out, settings.override(["sets.rate=0.5"]), worlds=[(10, 40)])

    page = tmp_path / "docs" / "results.md"
    page.parent.mkdir()
    page.write_text("# Results\n\nSomething else.\n")
    for _ in range(2):
        write_report(again, page)
    text = page.read_text()
    assert text.startswith("# Results\n\nSomething else.\n")
    assert all(text.count(table.markdown()) == 1 for table in tables_of(result))
    assert (page.parent / "claim.svg").stat().st_size > 1000
