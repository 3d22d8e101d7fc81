"""The script behind the shipped heads."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from setnet.evaluate.data.splits import read_split
from setnet.evaluate.experiments import shipped_heads
from setnet.sets.shipped import path_of, shipped_names


def test_judging_alone_changes_no_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    split = read_split()
    labels = [
        n
        for half in (split.train, split.test)
        for i, n in enumerate(sorted(half)[:40])
        for _ in range(4 if i < 20 else 1)
    ]
    rows = np.random.default_rng(0).standard_normal((len(labels), 128)).astype(np.float32)
    np.savez(tmp_path / "lfw.npz", descriptors=rows, labels=np.array(labels))
    monkeypatch.setattr(shipped_heads, "CALIBRATION_SETS", 300)
    monkeypatch.setattr(sys, "argv", ["shipping", str(tmp_path / "lfw.npz"), "--judge-only", "--sets", "300"])
    monkeypatch.setattr(
        shipped_heads, "path_of", lambda name: tmp_path / "never-written" / path_of(name).name
    )
    shipped_heads._main()
    said = capsys.readouterr().out
    assert all(name in said for name in shipped_names())
