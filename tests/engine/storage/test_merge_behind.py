"""Large merges run beside changes and searches: nothing waits for them, nothing is lost by them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import writer
from setnet.engine.segment import write_segment
from setnet.errors import StorageError

ROWS = np.eye(4, dtype=np.float32)
Write = Callable[..., int]


class Gate:
    """Holds a merge behind just before its file is written."""

    def __init__(self, write: Write) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        self._write = write

    def __call__(self, path: Path, *args: Any) -> int:
        if path.name.startswith("merge-"):
            self.reached.set()
            assert self.opened.wait(60)
        return self._write(path, *args)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    """Merge three segments at a time, all behind, and stop each merge before it writes."""
    made = Gate(write_segment)
    monkeypatch.setattr(writer, "MERGE", 3)
    monkeypatch.setattr(writer, "BEHIND", 0)
    monkeypatch.setattr(writer, "write_segment", made)
    return made


def add(index: SetIndex, name: str) -> None:
    index.add([f"{name}{i}" for i in range(4)], np.tile(ROWS, (2, 1)) + 0.1, [2] * 4)


def merging(path: Path, gate: Gate) -> SetIndex:
    """Return an index whose merge of its three segments is about to be written."""
    index = SetIndex.create(path, 4)
    for name in "abc":
        add(index, name)
    assert gate.reached.wait(60)
    return index


def finish(index: SetIndex, gate: Gate) -> None:
    gate.opened.set()
    assert index._writer is not None
    assert index._writer._behind is not None
    index._writer._behind.result(60)


def test_changes_during_a_merge_are_carried_over(tmp_path: Path, gate: Gate) -> None:
    with merging(tmp_path / "i", gate) as index:
        index.delete(["a1", "c3"])
        index.add(["b2", "new"], ROWS[:2] + 0.2, [1, 1])  # one is replaced
        assert index.stats().segments == 4, "nothing waited"
        before = {item.id: index.elements(item.id).tolist() for item in index}
        hits = index.search(ROWS[:2], k=20)
        finish(index, gate)
        assert index.stats().segments == 2
        assert {item.id: index.elements(item.id).tolist() for item in index} == before
        assert index.search(ROWS[:2], k=20) == hits
        assert index.check().problems == []
    report = SetIndex.repair(tmp_path / "i")
    assert (report.items, report.lost) == (len(before), ())


def test_closing_abandons_a_merge(tmp_path: Path, gate: Gate) -> None:
    index = merging(tmp_path / "i", gate)
    closing = threading.Thread(target=index.close)
    closing.start()
    while not index._writer._stop.is_set():  # type: ignore[union-attr]
        pass
    gate.opened.set()
    closing.join(60)
    assert sorted(path.suffix for path in (tmp_path / "i" / "segments").iterdir()) == [".seg"] * 3
    with SetIndex.open(tmp_path / "i") as index:
        assert len(index) == 12
        assert index.check().ok


def test_compacting_takes_over_from_a_merge(tmp_path: Path, gate: Gate) -> None:
    with merging(tmp_path / "i", gate) as index:
        gate.opened.set()
        index.compact()
        assert index.stats().segments == 1
        assert len(list((tmp_path / "i" / "segments").iterdir())) == 1
        assert index.check().ok


def test_a_merge_that_fails_is_told_and_costs_nothing(
    tmp_path: Path, gate: Gate, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> int:
        raise StorageError("the disk is full")

    with merging(tmp_path / "i", gate) as index, caplog.at_level(logging.WARNING):
        monkeypatch.setattr(gate, "_write", fail)
        finish(index, gate)
        assert "the disk is full" in caplog.text
        assert len(index) == 12
        assert index.check().ok
