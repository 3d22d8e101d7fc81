"""Segments that lie about themselves: an error that names the file and the array, before any use."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine import Collection
from setnet.engine.kernels import backend, reference
from setnet.engine.segment_file import BLOCK, FORMAT, TRAILER, SegmentFile
from setnet.errors import StorageError, VersionError
from tests.support.segment_bytes import checksums, footer_and_arrays, places, put_together

QUERY = np.ones((2, 16), np.float32)
compiled = pytest.mark.skipif(backend.kernels is reference, reason="the C extension is not built")
Change = Callable[[dict[str, Any], bytearray], object]  # of a footer and the arrays before it


@pytest.fixture
def stored(tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex]) -> Path:
    make_index(make_world(4, 300), tmp_path / "i", batch=300).close()
    return tmp_path / "i"


def segment_of(root: Path) -> Path:
    (path,) = (root / "segments").iterdir()
    return path


def craft(root: Path, change: Change) -> None:
    """Apply ``change(footer, body)`` to the one segment, and make every checksum and the catalogue fit."""
    path = segment_of(root)
    footer, body = footer_and_arrays(path.read_bytes())
    arrays = deepcopy(footer)
    change(footer, body)
    sums = checksums(arrays, body)
    path.write_bytes(put_together(body, sums, footer))
    crc = TRAILER.unpack(path.read_bytes()[-TRAILER.size :])[1]
    with sqlite3.connect(root / "catalog.sqlite") as db:
        db.execute("UPDATE segments SET bytes = ?, crc = ?", (path.stat().st_size, crc))
    db.close()


def entry_of(array: str, at: Any, value: Any) -> Change:
    """Return a change that writes a value into an array."""

    def change(footer: dict[str, Any], body: bytearray) -> None:
        dtype, start, size, _ = places(footer)[array]
        np.frombuffer(body, dtype, size // np.dtype(dtype).itemsize, start)[at] = value

    return change


def footer_of(array: str, dtype: str | None = None, shape: list[int] | None = None) -> Change:
    def change(footer: dict[str, Any], body: bytearray) -> None:
        before = footer["arrays"][array]
        footer["arrays"][array] = [dtype or before[0], shape or before[1]]

    return change


CRAFTED = {
    "offsets beyond the elements": (entry_of("offsets", 5, 2**40), "offsets"),
    "offsets that fall": (entry_of("offsets", 5, 0), "offsets"),
    "negative offsets": (entry_of("offsets", 5, -1), "offsets"),
    "offsets that begin late": (entry_of("offsets", 0, 1), "offsets"),
    "id offsets": (entry_of("id_offsets", 299, 2**33), "id_offsets"),
    "a sequence that falls": (entry_of("seq", 7, 3), "seq"),
    "a lane of no row": (entry_of("lane_rows", 3, 300), "lane_rows"),
    "a lane below -1": (entry_of("lane_rows", 3, -2), "lane_rows"),
    "a row in two lanes": (entry_of("lane_rows", 3, 9), "lane_rows"),
    "tall blocks": (entry_of("row_start", 2, 2**50), "lane_rows"),
    "wide blocks": (lambda footer, body: footer["info"].update(first_wide=0), "lane_rows"),
    "an element that is no number": (entry_of("elements", slice(None), np.nan), "elements"),
    "id bytes that are no text": (entry_of("id_bytes", slice(None), 255), "id_bytes"),
    "an array past the end": (footer_of("fine_codes", shape=[2**40, 4, 16, 4]), "fine_codes"),
    "an array of objects": (footer_of("elements", dtype="|O"), "elements"),
    "a negative shape": (footer_of("elements", shape=[-1, 16]), "elements"),
    "a shape of five sizes": (footer_of("fine_codes", shape=[1, 1, 1, 1, 1]), "fine_codes"),
    "another type": (footer_of("elements", dtype="<i4"), "elements"),
    "no such array": (lambda footer, body: footer["arrays"].pop("code_norms"), "checksums"),
    "norms that are none": (
        lambda footer, body: footer["info"].update(set_norms=[float("nan"), 1.0]),
        "set_norms",
    ),
}


@pytest.mark.parametrize("kind", CRAFTED)
def test_a_crafted_segment_is_an_error_that_names_the_array(stored: Path, kind: str) -> None:
    change, array = CRAFTED[kind]
    craft(stored, change)
    with SetIndex.open(stored, read_only=True) as index:
        with pytest.raises(StorageError) as error:
            index.search(QUERY, k=3)
        assert array in str(error.value)
        assert segment_of(stored).name in str(error.value)
        report = index.check()
        assert segment_of(stored).name in " ".join(report.problems)


CRAFTED_COLUMNS = {
    "a value that no row can have": (entry_of("column_0_numbers", 7, 99), "column_0_numbers"),
    "a value below -1": (entry_of("column_0_numbers", 7, -2), "column_0_numbers"),
    "values that fall": (entry_of("column_0_values", 1, 2**30), "column_0_values"),
    "texts that are no values": (entry_of("column_0_texts", slice(None), ord("[")), "attributes"),
    "another number of rows": (footer_of("column_0_numbers", shape=[2]), "column_0_numbers"),
    "a column without a name": (lambda footer, body: footer["info"].update(columns=["n", "n"]), "columns"),
}


@pytest.mark.parametrize("kind", CRAFTED_COLUMNS)
def test_a_crafted_column_is_an_error_that_names_the_array(tmp_path: Path, kind: str) -> None:
    change, array = CRAFTED_COLUMNS[kind]
    rows = np.eye(16, dtype=np.float32)
    with SetIndex.create(tmp_path / "i", 16) as index:
        index.add([f"i{n}" for n in range(16)], rows, [1] * 16, attributes=[{"n": n % 5} for n in range(16)])
    craft(tmp_path / "i", change)
    with pytest.raises(StorageError, match=array), SetIndex.open(tmp_path / "i", read_only=True) as index:
        index.search(QUERY, where={"n": {">=": 3}})
    assert SetIndex.repair(tmp_path / "i").items == 0


def test_a_segment_of_an_older_format_is_refused_with_the_remedy(stored: Path) -> None:
    path = segment_of(stored)
    data = path.read_bytes()
    length, crc, _, tail = TRAILER.unpack(data[-TRAILER.size :])
    path.write_bytes(data[: -TRAILER.size] + TRAILER.pack(length, crc, FORMAT - 1, tail))
    with SetIndex.open(stored, read_only=True) as index, pytest.raises(VersionError, match="make the index"):
        index.search(QUERY)


@pytest.mark.parametrize("kind", CRAFTED)
def test_a_repair_takes_over_no_crafted_segment(stored: Path, kind: str) -> None:
    craft(stored, CRAFTED[kind][0])
    report = SetIndex.repair(stored)
    assert (report.items, report.segments) == (0, 0)
    assert segment_of(stored).stem.lstrip("0") in report.lost[0]
    with SetIndex.open(stored, read_only=True) as index:
        assert index.check().ok


@pytest.mark.parametrize("bits", [32, 16, 8, 4, 1])
def test_set_vectors_of_another_shape_are_an_error(
    tmp_path: Path, make_world: Callable[..., Any], make_index: Callable[..., SetIndex], bits: int
) -> None:
    make_index(make_world(4, 300), tmp_path / "i", batch=300, set_bits=bits).close()
    craft(tmp_path / "i", footer_of("set_scales", dtype="<i4"))
    with SetIndex.open(tmp_path / "i", read_only=True) as index, pytest.raises(StorageError, match="set_sc"):
        index.search(QUERY, k=3, mode="set")


def test_sequence_numbers_that_were_never_given_are_an_error(stored: Path) -> None:
    craft(stored, entry_of("seq", 299, 2**62))
    with SetIndex.open(stored, read_only=True) as index, pytest.raises(StorageError, match="never stored"):
        index.search(QUERY, k=3)


def flip(root: Path, array: str, at: int = 2) -> None:
    path = segment_of(root)
    data = bytearray(path.read_bytes())
    data[places(footer_and_arrays(data)[0])[array][1] + at] ^= 0x10
    path.write_bytes(data)


def _use(index: SetIndex) -> None:
    """Search by codes and by columns."""
    index.search(QUERY, k=3)
    index.search(QUERY, k=300, where={"n": {">=": 0}})


@pytest.mark.parametrize(
    ("kind", "array"),
    [("index", name) for name in ("elements", "codes", "fine_codes", "offsets", "id_bytes", "column_0_texts")]
    + [("collection", "elements"), ("collection", "column_0_texts")],
)
def test_no_search_reads_a_flipped_bit_that_its_checksum_shows(tmp_path: Path, kind: str, array: str) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
    items = [f"{n}" for n in range(300)], rows, [1] * 300, [{"n": n} for n in range(300)]
    if kind == "index":
        with SetIndex.create(tmp_path / "i", 16, head="none") as index:
            index.add(*items)
    else:
        Collection.create(tmp_path / "i", 16, head="none").add(*items)
    flip(tmp_path / "i", array)
    with SetIndex.open(tmp_path / "i", read_only=True) as index:
        with pytest.raises(StorageError, match=rf"\.seg is damaged.*'{array}'.*run check"):
            _use(index)
        assert array in index.check().problems[0]


def test_only_what_a_search_reads_is_verified(stored: Path) -> None:
    with SetIndex.open(stored, read_only=True) as index:
        counts = index._reader.snapshot().segments[0].counts
        row = int(np.flatnonzero(counts.cumsum() * 16 * 4 < BLOCK)[-2])
        found = index.elements(index.contents().ids[row])
    flip(stored, "elements", int(counts.sum()) * 16 * 4 - 1)
    with SetIndex.open(stored, read_only=True) as index:
        ids = [item.id for item in index]
        np.testing.assert_array_equal(index.elements(ids[row]), found)
        with pytest.raises(StorageError, match="elements"):
            index.elements(ids[int(np.flatnonzero(counts)[-1])])


def test_damaged_checksums_are_told_apart_from_damaged_arrays(stored: Path) -> None:
    path = segment_of(stored)
    data = bytearray(path.read_bytes())
    _, body = footer_and_arrays(data)
    data[len(body) + 4 * 7] ^= 1  # what is read at open is sound
    path.write_bytes(data)
    with SetIndex.open(stored, read_only=True) as index:
        (problem,) = index.check().problems
    assert "checksum of its checksums" in problem


def test_a_file_truncated_while_it_is_searched_is_an_error(stored: Path) -> None:
    with SetIndex.open(stored, read_only=True) as index:
        assert index.search(QUERY, k=3)
        items = iter(index)
        next(items)
        os.truncate(segment_of(stored), 4096)
        with pytest.raises(StorageError, match="truncated"):
            index.search(QUERY, k=3)
        with pytest.raises(StorageError, match="truncated"):
            index.elements("item 5")
        assert "truncated" in " ".join(index.check().problems)


USES: dict[str, Callable[[SetIndex], object]] = {
    "exact": lambda index: index.search(QUERY, 3),
    "fast": lambda index: index.search(QUERY, 3, "fast"),
    "sets": lambda index: index.search(QUERY, 3, "set"),
    "conditions": lambda index: index.search(QUERY, 3, where={"n": {"<": 250}}),
    "rerank": lambda index: index.rerank(QUERY, ["a5", "a6"]),
    "item": lambda index: index["a5"],
    "items": lambda index: list(index),
    "elements": lambda index: index.elements("a5"),
    "contents": lambda index: index.contents(),
    "sample": lambda index: index.sample(20),
    "delete": lambda index: index.delete(["a5"]),
    "delete where": lambda index: index.delete(where={"n": {"<": 250}}),
    "update": lambda index: index.update({"a5": {"n": 1000}}),
    "replace": lambda index: index.add(["a5"], QUERY, [2]),
    "compact": lambda index: index.compact(),
    "backup": lambda index: index.backup(index.path.parent / "backup"),
}


@compiled
@pytest.mark.parametrize("kind", USES)
def test_a_file_truncated_just_after_it_was_found_whole_is_an_error(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 16)).astype(np.float32)
    with SetIndex.create(tmp_path / "i", 16) as index:
        index.add([f"a{n}" for n in range(300)], rows, [1] * 300, [{"n": n} for n in range(300)])
        index.add(["b"], rows[:1], [1])
    path = tmp_path / "i" / "segments" / "00000001.seg"
    whole, find_whole = path.read_bytes(), SegmentFile.ensure_whole
    with SetIndex.open(tmp_path / "i") as index:
        _use(index)  # from now on its checksums count as compared

        def truncate_then(file: SegmentFile) -> None:
            find_whole(file)
            if file.path == path:
                os.truncate(path, 0)

        with monkeypatch.context() as patch:
            patch.setattr(SegmentFile, "ensure_whole", truncate_then)
            with pytest.raises(StorageError, match="truncated"):
                USES[kind](index)
    path.write_bytes(whole)
    with SetIndex.open(tmp_path / "i") as index:
        assert index.check().ok
        assert len(index) == 301


@compiled
def test_truncation_in_the_middle_of_a_read_is_an_error_and_the_process_lives(stored: Path) -> None:
    with SetIndex.open(stored, read_only=True) as index:
        snapshot = index._reader.snapshot()
        elements = snapshot.segments[0].elements
        os.truncate(segment_of(stored), 4096)
        assert not elements[-1].any(), "zeros stand in place of what is gone"
        os.truncate(segment_of(stored), snapshot.segments[0].file.bytes)
        with pytest.raises(StorageError, match="truncated"):
            index.search(QUERY, k=3)


VICTIM = """
import faulthandler, mmap, os, sys
from setnet import SetIndex
from setnet.errors import StorageError
root, kind = sys.argv[1:]
if kind == "before":
    faulthandler.enable()
with SetIndex.open(root, read_only=True) as index:
    if kind == "after":
        faulthandler.enable()
    snapshot = index._reader.snapshot()
    elements = snapshot.segments[0].elements
    if kind == "foreign":
        with open(root + "/foreign", "wb+") as file:
            file.truncate(1 << 16)
            mine = mmap.mmap(file.fileno(), 1 << 16)
    print("ready", flush=True)
    sys.stdin.readline()
    if kind == "foreign":
        os.truncate(root + "/foreign", 0)
        print(mine[5000], flush=True)
    try:
        with snapshot.intact():
            elements.sum()
    except StorageError as error:
        print("survived", error, flush=True)
"""


@compiled
@pytest.mark.parametrize("kind", ["plain", "before", "after", "foreign"])
def test_another_process_may_truncate_a_file(stored: Path, kind: str) -> None:
    command = [sys.executable, "-c", VICTIM, str(stored), kind]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        os.truncate(segment_of(stored), 4096)
        said, _ = victim.communicate("go\n", timeout=60)
    if kind == "foreign":
        assert (victim.returncode, said) == (-signal.SIGBUS, ""), "a file of others is their own affair"
    else:
        assert (victim.returncode, said.split()[:1]) == (0, ["survived"])
        assert "truncated" in said
