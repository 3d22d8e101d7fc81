"""`studies.shipped_heads`: making, evaluating and describing the heads of the package."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from setnet.errors import InvalidInputError
from setnet.evaluate.people import read_split
from setnet.evaluate.record import Row
from setnet.heads import Head, SetNet
from setnet.heads.shipped import head_path
from studies import shipped_heads
from studies.shipped_heads import MEASURES, app, gap_closed

pytestmark = pytest.mark.usefixtures("coarse_calibration")


@pytest.fixture
def lfw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Made-up descriptors under LFW's names, and a calibration small enough for a test."""
    monkeypatch.setattr(shipped_heads, "CALIBRATION_SETS", 200)
    monkeypatch.setattr(shipped_heads, "REPEATS", 1)
    split = read_split()
    labels = [
        n
        for half in (split.train, split.test)
        for i, n in enumerate(sorted(half)[:40])
        for _ in range(4 if i < 20 else 1)
    ]
    rows = np.random.default_rng(0).standard_normal((len(labels), 128)).astype(np.float32)
    np.savez(tmp_path / "lfw.npz", descriptors=rows, labels=np.array(labels))
    return tmp_path / "lfw.npz"


def run(*words: object) -> str:
    done = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_evaluating_alone_changes_figures_and_no_head(lfw: Path, tmp_path: Path) -> None:
    folder = tmp_path / "heads"
    folder.mkdir()
    name = "sface-128"
    (folder / f"{name}.safetensors").write_bytes(head_path(name).read_bytes())
    said = run(lfw, "--evaluate-only", "--sets", 100, "--card", tmp_path / "card.md", "--out", folder)
    before, after = SetNet.load(name), SetNet.load(folder / f"{name}.safetensors")
    assert name in said
    assert after.fingerprint == before.fingerprint, "an index made with it would refuse it"
    assert after.logistic == before.logistic
    figures = "stress_lfw_test_half"
    assert after.head.about[figures] != before.head.about.get(figures)


def test_a_head_made_twice_is_the_same_file(lfw: Path, tmp_path: Path) -> None:
    files = []
    for name in "ab":
        run(lfw, "--degraded", lfw, "--only", "sface-128", "--make-only", "--out", tmp_path / name)
        files.append((tmp_path / name / "sface-128.safetensors").read_bytes())
    assert files[0] == files[1]


def test_figures_travel_with_a_new_head_and_stand_on_its_card(lfw: Path, tmp_path: Path) -> None:
    card = tmp_path / "card.md"
    card.write_text("# Heads\n\nWritten by hand.\n", encoding="utf-8")
    words = [lfw, "--degraded", lfw, "--only", "sface-128", "--sets", 100, "--out", tmp_path / "out"]
    run(*words, "--card", card)
    figures = Head.load(tmp_path / "out" / "sface-128.safetensors").about["stress_lfw_test_half"]
    text = card.read_text(encoding="utf-8")
    assert text.startswith("# Heads\n\nWritten by hand.\n")
    assert text.count("## sface-128") == 1
    assert text.count("| sface-128 | 128 |") == 2  # photos as they are, and degraded
    assert all(f"{mean:.2f} ±" in text for mean in figures["ndcg@10"])


def test_an_unknown_head_lists_the_known(lfw: Path) -> None:
    with pytest.raises(InvalidInputError, match="'sface-512'"):
        run(lfw, "--only", "sface-1")


def test_the_gap_is_that_between_the_mean_and_the_best_bound() -> None:
    def row(*means: float) -> Row:
        return Row("x", {key: [mean] for key, mean in zip(MEASURES, means, strict=True)})

    bounds = [row(90, 80, 70, 50), row(85, 100, 70, 40)]
    closed = gap_closed(row(85, 90, 70, 45), row(80, 60, 70, 40), bounds)
    np.testing.assert_allclose(closed, [50, 75, np.nan, 50])
