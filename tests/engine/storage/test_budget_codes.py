"""An index that keeps budget codes alone: what it holds, merges, repairs and refuses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.engine import Collection
from setnet.engine.budget import LEAST_BYTES
from setnet.engine.segment_file import BLOCK
from setnet.errors import InvalidInputError
from setnet.heads import unit

DIM, BUDGET = 32, 40


def items(n: int, seed: int = 0) -> tuple[list[str], NDArray[np.float32], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 6, n)
    counts[0] = 45
    rows = rng.normal(size=(counts.sum(), DIM)) * np.linspace(2, 0.3, DIM) + 0.2
    return [f"{seed}-{i}" for i in range(n)], unit(rows.astype(np.float32)), counts


def answers(index: SetIndex, rows: NDArray[np.float32]) -> list[Any]:
    queries: Sequence[Any] = [rows[[1, 60]], rows[[90]]]
    return [found.hits() for found in index.search_many(queries, k=30)]


def segment_file(path: Path) -> Path:
    return sorted((path / "segments").glob("*.seg"))[-1]


def test_stays_small_and_answers_alike_through_merges_and_repairs(tmp_path: Path) -> None:
    names, rows, counts = items(400)
    path = tmp_path / "i"
    with SetIndex.create(path, DIM, bytes_per_item=BUDGET) as index:
        index.add(names, rows, counts, [{"n": i} for i in range(400)])
        more = items(20, seed=1)
        index.add(*more)
        index.delete(names[100:120])
        first = answers(index, rows)
        index.update({name: {"n": -1} for name in [*names[50:90], more[0][3]]})
        before, stats = answers(index, rows), index.stats()
        assert before == first, "codes are copied"
        assert index.search(rows[:1], k=1, mode="fast").ids == ["0-0"]
        assert (stats.budget, stats.set_vectors, stats.segments) == (BUDGET, "none", 3)
        assert stats.over_budget == 2, "45 elements need 90 bytes"
        assert np.abs(index.elements("0-1") - rows[45 : 45 + counts[1]]).max() < 0.3
        assert len(index.contents().elements) == len(index.sample(10_000)) == stats.elements
        index.compact()
        assert answers(index, rows) == before
        assert index.stats().segments == 1
        assert index.check().ok
        index.backup(tmp_path / "copy")
    codes = LEAST_BYTES * 90 + BUDGET * 400
    assert segment_file(path).stat().st_size < codes + 400 * 90
    (path / "catalog.sqlite").write_bytes(b"nothing")
    assert SetIndex.repair(path).lost == ()
    for place in (path, tmp_path / "copy"):
        with SetIndex.open(place) as index:
            assert answers(index, rows) == before


def test_a_repair_keeps_items_whose_codes_are_sound(tmp_path: Path) -> None:
    names, rows, counts = items(600)
    with SetIndex.create(tmp_path / "i", DIM, bytes_per_item=BUDGET) as index:
        index.add(names, rows, counts)
        entry = index._reader.snapshot().segments[0].file.entry("budget_codes")
    file = segment_file(tmp_path / "i")
    data = bytearray(file.read_bytes())
    data[entry.offset + BLOCK + 7] ^= 255
    file.write_bytes(data)
    with SetIndex.open(tmp_path / "i", read_only=True) as index:
        assert "budget_codes" in index.check().problems[0]
    report = SetIndex.repair(tmp_path / "i")
    with SetIndex.open(tmp_path / "i") as index:
        gone = set(names) - {item.id for item in index}
        assert 50 < len(gone) < 250
        assert str(len(gone)) in report.lost[0]
        kept = [i for i, name in enumerate(names) if name not in gone and counts[i] == 3]
        start = np.cumsum(counts) - counts
        for i in kept:
            assert np.abs(index.elements(names[i]) - rows[start[i] : start[i] + 3]).max() < 0.6


def test_collections_keep_budget_codes(tmp_path: Path) -> None:
    names, rows, counts = items(300)
    made = Collection.create(tmp_path / "c", DIM, bytes_per_item=BUDGET)
    made.add(names, rows, counts)
    made.add(*items(30, seed=1))
    with SetIndex.open(tmp_path / "c") as index:
        before = answers(index, rows)
        made.compact()
        assert answers(index, rows) == before


def test_refuses_what_it_cannot_hold(tmp_path: Path) -> None:
    for budget in (0, 15, 65_537, 1.5):
        with pytest.raises(InvalidInputError, match="bytes_per_item"):
            SetIndex.create(tmp_path / "i", DIM, bytes_per_item=budget)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="dim is 2000: valid are 1 to 1024"):
        SetIndex.create(tmp_path / "i", 2000, bytes_per_item=64)
    with SetIndex.create(tmp_path / "i", 2, bytes_per_item=16) as index:
        with pytest.raises(InvalidInputError, match=r"element 1 .* has length 5: .* unit length"):
            index.add(["a"], [[1, 0], [3, 4]], [2])
        index.add(["a", "none"], [[1, 0]], [1, 0])
        index.compact()
        assert index.search([[1, 0]]).ids == ["a"]
        index.delete(["a"])
        index.compact()
        assert (len(index), index.search([[1, 0]]).ids, index.check().ok) == (1, [], True)
