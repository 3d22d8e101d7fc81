"""Merging: what comes out is what writing everything at once gives, and how often items are written."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.engine import segment as segment_writer
from setnet.engine import writer
from setnet.engine.segment import Segment, write_segment
from setnet.engine.segment_file import Prefetch
from setnet.engine.writer import BELOW

DIM = 20


def items(seed: int, n: int) -> tuple[list[NDArray[Any]], list[dict[str, Any] | None]]:
    """Sets of no, a few and many elements, and attributes of some."""
    rng = np.random.default_rng(seed)
    counts = np.where(rng.random(n) < 0.02, 40, rng.integers(0, 6, n))
    sets = [rng.normal(size=(count, DIM)).astype(np.float32) + 0.3 for count in counts]
    return sets, [{"year": int(i), "où": "é" * (i % 3)} if i % 2 else None for i in range(n)]


def add(index: SetIndex, names: list[str], sets: list[NDArray[Any]], attributes: list[Any]) -> None:
    given = np.stack([np.append(s.sum(axis=0), 1.0) for s in sets])  # a head's would be rounded by batch
    index.add(names, np.concatenate(sets), [len(s) for s in sets], attributes, set_vectors=given)


def only_segment(index: SetIndex) -> Segment:
    (segment,) = index._reader.snapshot().segments
    return segment


@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("set_bits", [32, 8, 1])
def test_a_merged_segment_is_what_writing_all_at_once_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str, set_bits: int
) -> None:
    monkeypatch.setattr(segment_writer, "CHUNK", 160)  # several chunks, some with rows of several sources
    n = 900
    names = [f"photo é {i}" if i % 7 else f"photo {i}" for i in range(n)]
    sets, attributes = items(1, n)
    before, _ = items(2, n)
    options: dict[str, Any] = {"precision": precision, "set_dim": DIM + 1, "set_bits": set_bits}
    with (
        SetIndex.create(tmp_path / "parts", DIM, **options) as parts,
        SetIndex.create(tmp_path / "whole", DIM, **options) as whole,
    ):
        add(parts, names[:600], before[:600], [None] * 600)
        add(parts, names[600:], sets[600:], attributes[600:])
        for first in range(2):  # replaced items keep their places: sources alternate row by row
            part = slice(first, 600, 2)
            add(parts, names[part], sets[part], attributes[part])
        assert parts.stats().segments == 4
        parts.compact()
        add(whole, names, sets, attributes)
        merged, written = only_segment(parts).file, only_segment(whole).file
        assert merged.info == written.info
        for name in written._arrays:
            if name != "seq":
                np.testing.assert_array_equal(merged.array(name), written.array(name), err_msg=name)
        assert parts.check().ok
        query = [sets[i][:1] for i in (3, 11)]
        for mode in ("exact", "fast"):
            assert parts.search(query, k=40, mode=mode) == whole.search(query, k=40, mode=mode)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Items in each segment that is written."""
    sizes: list[int] = []
    write = write_segment

    def counted(path: Path, parts: Any, shape: Any, *rest: Any) -> int:
        sizes.append(sum(len(rows) for _, rows in parts))
        return write(path, parts, shape)

    monkeypatch.setattr(writer, "write_segment", counted)
    return sizes


def test_batches_are_merged_once_into_a_large_segment_and_once_into_a_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: list[int]
) -> None:
    monkeypatch.setattr(writer, "BELOW", (1_000, 6_000))
    monkeypatch.setattr(writer, "FILLED", (2_000, 6_000))
    batch, batches = 500 + 12, 36
    with SetIndex.create(tmp_path / "i", 2) as index:
        for n in range(batches):
            names = [f"{n} {i}" for i in range(batch)]
            index.add(names, np.ones((batch, 2), np.float32), np.ones(batch, int))
        sizes = [len(segment) for segment in index._reader.snapshot().segments]
        assert sum(sizes) == batch * batches
        assert all(size >= 6_000 for size in sizes), "each larger one is final"
    assert sum(written) == 3 * batch * batches


def test_large_batches_are_not_merged_before_they_fill_the_largest_tier(
    tmp_path: Path, written: list[int]
) -> None:
    batch = BELOW[0]
    with SetIndex.create(tmp_path / "i", 1) as index:
        for n in range(4):
            names = [f"{n} {i}" for i in range(batch)]
            index.add(names, np.ones((batch, 1), np.float32), np.ones(batch, int))
    assert written == [batch] * 4


def test_a_trickle_of_items_leaves_few_segments(tmp_path: Path) -> None:
    with SetIndex.create(tmp_path / "i", 2) as index:
        for n in range(100):
            index.add([f"{n}"], np.ones((1, 2), np.float32), [1])
        assert index.stats().segments < 16


def test_compaction_makes_no_segment_larger_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LARGEST", 10)
    with SetIndex.create(tmp_path / "i", 2) as index:
        for n in range(5):
            index.add([f"{n} {i}" for i in range(4)], np.ones((4, 2), np.float32), np.ones(4, int))
        index.delete(["1 0", "4 2"])
        index.compact()
        sizes = sorted(len(segment) for segment in index._reader.snapshot().segments)
        assert sizes == [8, 10]
        assert index.stats().deleted == 0
        assert index.check().ok
        monkeypatch.setattr(writer, "LARGEST", 1000)
        index.compact()
        assert index.stats().segments == 1


def test_an_error_of_another_thread_reaches_the_writer() -> None:
    def values() -> Iterator[int]:
        yield 1
        raise OSError("read error")

    found: list[int] = []
    with pytest.raises(OSError, match="read error"):
        found.extend(Prefetch(values()))
    assert list(Prefetch([])) == []


def _add_many(path: Path) -> None:
    with SetIndex.open(path) as index:
        index.add([f"{i}" for i in range(300)], np.ones((300, 4), np.float32), np.ones(300, int))


def test_a_forked_process_has_threads_of_its_own(tmp_path: Path) -> None:
    for name in "ab":
        SetIndex.create(tmp_path / name, 4).close()
    _add_many(tmp_path / "a")  # starts threads here
    child = multiprocessing.get_context("fork").Process(target=_add_many, args=(tmp_path / "b",))
    child.start()
    child.join(120)
    assert child.exitcode == 0
    with SetIndex.open(tmp_path / "b", read_only=True) as index:
        assert len(index) == 300
