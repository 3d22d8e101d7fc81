"""Which people virtual ones are like: those of the test half never train anything."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.evaluate.people import LFW_LIKE, LFW_LIKE_TRAIN, virtual_split
from setnet.train import VirtualPeople


def test_people_to_fit_on_are_like_the_training_half(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    load = VirtualPeople.load

    def noted(path: str | Path) -> VirtualPeople:
        read.append(Path(path))
        return load(path)

    monkeypatch.setattr(VirtualPeople, "load", noted)
    split = virtual_split(1.0, seed=0, people=10)
    assert read == [LFW_LIKE_TRAIN, LFW_LIKE]
    assert not np.isin(split.train.labels[split.train.labels != ""], split.test.labels).any()
