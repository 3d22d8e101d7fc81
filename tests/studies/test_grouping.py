"""Unknown faces grouped: the experiment on virtual people, in a file as `setnet describe` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from setnet.cli.evaluate import run_study
from setnet.evaluate import read_record
from setnet.evaluate.people import LFW_LIKE
from setnet.train import VirtualPeople
from studies import grouping
from studies.grouping import OURS


def descriptor_file(path: Path, difficulty: float) -> Path:
    """Write 60 people of six faces, five of 40 and 80 of one."""
    rng = np.random.default_rng(0)
    model = VirtualPeople.load(LFW_LIKE).harder(difficulty)
    who = np.repeat(np.arange(145), [6] * 60 + [40] * 5 + [1] * 80)
    faces = model.faces(rng, model.people(rng, 145), who)
    np.savez(path, descriptors=faces, labels=np.array([f"person {i}" for i in who.tolist()]))
    return path


def test_ours_stands_beside_other_ways_and_in_other_shapes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouping, "LARGE", 1000)
    monkeypatch.setattr(grouping, "THRESHOLDS", np.array([0.4, 0.45, 0.5]))
    plain = descriptor_file(tmp_path / "plain.npz", 1.0)
    worse = descriptor_file(tmp_path / "worse.npz", 1.2)
    kept = tmp_path / "out" / "grouping.json"
    words = ["--descriptors", str(plain), "--other", str(worse), "--repeats", "2", "--json", str(kept)]
    page = tmp_path / "page.md"
    monkeypatch.setattr(sys, "argv", ["grouping", *words, "--page", str(page)])
    with pytest.raises(SystemExit, match="0"):
        run_study(grouping, "python -m studies.grouping")
    record = read_record(kept)
    ours = record.row(OURS).values
    assert np.mean(ours["f1 0"]) > 97
    assert np.mean(ours["f1 1"]) > 94
    assert np.mean(ours["precision 1"]) > 98
    assert record.row("average linkage, one threshold").facts["threshold"] in (0.4, 0.45, 0.5)
    assert np.mean(record.row("worse: one face of each person").values["precision"]) > 98
    assert np.mean(record.row("plain: nine of ten faces of one person").values["recall"]) > 95
    *beside, shapes = grouping.tables(record)
    assert [table.title.rsplit(": ")[1] for table in beside] == ["plain", "worse"]
    assert shapes.columns[0] == "library"
    assert not shapes.bold
    text = page.read_text(encoding="utf-8")
    assert "## Unknown faces grouped by person" in text
    assert "Made by `python -m studies.grouping`: " in text
