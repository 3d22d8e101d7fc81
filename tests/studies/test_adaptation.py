"""The comparison of SFace with what adaptation makes of it, on made-up features under LFW's names."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from setnet.cli.evaluate import run_study
from setnet.errors import InvalidInputError
from setnet.evaluate.people import read_split
from setnet.evaluate.record import Record, Row, read_record
from setnet.train import load_network
from setnet.train.faces import append_places
from studies import adaptation
from studies.adaptation import Settings, photos_of_half, summary, tables
from studies.sface import load_sface

pytestmark = pytest.mark.usefixtures("one_thread", "coarse_calibration")

SETTINGS = ["sets.identities=8", "sets.steps=2", "sets.sizes=[2, 3]"]


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Return a folder of empty photos and copies, with what would have been made of them in `run/`."""
    split, rng = read_split(), np.random.default_rng(0)
    for kind in ("lfw", "coarse", "shaken"):
        for people in (split.train, split.test):
            for number, name in enumerate(sorted(people)[:40]):
                for photo in range(5 if number < 20 else 1):
                    file = tmp_path / kind / name / f"{photo}.jpg"
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.touch()
    kept = tmp_path / "run" / "features"
    kept.mkdir(parents=True)
    for half in ("train", "test"):
        names = photos_of_half(tmp_path / "lfw", half, 4)
        own = {p: rng.standard_normal((1024, 7, 7)) for p in {name.split("/")[0] for name in names}}
        for kind, noise in (("as-they-are", 0.5), ("coarse", 1.0), ("shaken", 1.0)):
            places = np.ones((len(names), 14), np.float32)
            places[7 if half == "test" else 0] = np.nan  # no face there
            append_places(kept / f"{half}-{kind}-places.bin", [Path(name) for name in names], places)
            made = [own[n.split("/")[0]] + noise * rng.standard_normal((1024, 7, 7)) for n in names]
            seen = ~np.isnan(places[:, 0])
            np.save(kept / f"{half}-{kind}-features.npy", np.array(made, np.float16)[seen])
    return tmp_path


def test_both_descriptors_are_measured_on_every_kind_of_photos_and_kept(
    photos: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adaptation, "DISTILS", (0.9, 1.0))
    monkeypatch.setattr(adaptation, "LIFTS", ("lift-128",))
    options = ["--trained", photos / "coarse", "--judged", photos / "shaken", "--blocks", 0, "--sets", 200]
    changes = [word for change in SETTINGS for word in ("--set", change)]

    page = photos / "page.md"
    words = [photos / "lfw", *options, *changes, "--out", photos / "run", "--page", page]
    monkeypatch.setattr(sys, "argv", ["adaptation", *map(str, words)])
    with pytest.raises(SystemExit, match="0"):
        run_study(adaptation, "python -m studies.adaptation")
    text = page.read_text()
    for wanted in ("Photos shaken (not trained on)", "Photos coarse (trained on)", "Made by `python -m stud"):
        assert wanted in text
    stored = read_record(photos / "run" / "adaptation.json")
    record = adaptation.run(
        Settings(
            photos=photos / "lfw",
            trained=[photos / "coarse"],
            judged=[photos / "shaken"],
            out=photos / "run",
            changes=SETTINGS,
            blocks=0,
            sets=200,
        )
    )
    assert record.rows == stored.rows, "nothing is done twice"
    assert len(record.rows) == 2 * 3 * 4
    assert record.extra["distil"] in (0.9, 1.0)
    assert set(record.extra["tried"]) == {"original", "0.9", "1"}
    for row in record.rows:
        values = np.array([*row.values.values()])
        assert ((values >= 0) & (values <= 100)).all()
        assert all(len(draws) == 200 for draws in row.draws.values())
    original, adapted = (record.row(f"mean, {name}, photos coarse") for name in ("original", "adapted"))
    assert original.values != adapted.values

    network = load_network(photos / "run" / "network.safetensors")
    assert network.about["distil"] == record.extra["distil"]
    ours, theirs = (net.state_dict() for net in (network.network.backbone, load_sface()))
    changed = {key.partition(".")[0] for key in theirs if not torch.equal(ours[key], theirs[key])}
    assert changed == {"norm", "reduce"}, "with no blocks to train, all blocks are as they were"


def test_copies_that_do_not_fit_are_refused(photos: Path) -> None:
    settings = Settings(
        photos=photos / "lfw",
        trained=[photos / "coarse"],
        out=photos / "run",
        changes=SETTINGS,
        blocks=0,
    )
    with pytest.raises(InvalidInputError, match="told apart by their folders' names"):
        adaptation.run(replace(settings, judged=[photos / "coarse"]))
    next((photos / "coarse").rglob("0.jpg")).unlink()
    with pytest.raises(InvalidInputError, match="is missing: make copies"):
        adaptation.run(settings)


def test_the_summary_counts_what_is_beyond_chance() -> None:
    rng = np.random.default_rng(0)
    shared = rng.normal(0, 3, 200)

    def row(descriptor: str, kind: str, points: float) -> Row:
        facts = {"method": "mean", "descriptor": descriptor, "photos": kind, "bytes": 512}
        draws = (points + shared + rng.normal(0, 0.5, 200)).tolist()
        return Row(f"{descriptor} {kind}", {"ndcg10@2": [points]}, facts, draws={"ndcg10@2": draws})

    kinds = {"as they are": -3.0, "coarse": 3.0, "shaken": 0.5}
    rows = [row("original", kind, 80) for kind in kinds]
    rows += [row("adapted", kind, 80 + gain) for kind, gain in kinds.items()]
    record = Record("adaptation", {"kinds": [*kinds]}, tuple(rows), {}, {"trained": ["coarse"]})
    lines = summary(record).splitlines()
    assert "as they are (not trained on): adapted is better in 0 and worse in 1 of 1" in lines[0]
    assert "coarse (trained on): adapted is better in 1 and worse in 0 of 1" in lines[1]
    assert "better in 0 and worse in 0 of 1" in lines[2]
    assert any("+3.00 ± 0." in cell for cell in tables(record)[-1].cells[1])
