"""Segments that lie about themselves: an error that names the file and the array, before any use."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine.segment_file import FORMAT, TAIL, TRAILER
from setnet.errors import InvalidInputError, StorageError, VersionError

QUERY = np.ones((2, 16), np.float32)
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
    data = path.read_bytes()
    length = TRAILER.unpack(data[-TRAILER.size :])[0]
    end = len(data) - TRAILER.size - length
    footer, body = json.loads(data[end : end + length]), bytearray(data[:end])
    change(footer, body)
    for entry in footer["arrays"].values():
        if isinstance(entry["offset"], int) and isinstance(entry["bytes"], int):
            entry["crc"] = zlib.crc32(bytes(body[entry["offset"] :][: entry["bytes"]]))
    text = json.dumps(footer).encode()
    path.write_bytes(bytes(body) + text + TRAILER.pack(len(text), zlib.crc32(text), FORMAT, TAIL))
    with sqlite3.connect(root / "catalog.sqlite") as db:
        db.execute("UPDATE segments SET bytes = ?, crc = ?", (path.stat().st_size, zlib.crc32(text)))
    db.close()


def entry_of(array: str, at: Any, value: Any) -> Change:
    """Return a change that writes a value into an array."""

    def change(footer: dict[str, Any], body: bytearray) -> None:
        entry = footer["arrays"][array]
        values = np.frombuffer(body, entry["dtype"], int(np.prod(entry["shape"])), entry["offset"])
        values[at] = value

    return change


def footer_of(array: str, **fields: Any) -> Change:
    return lambda footer, body: footer["arrays"][array].update(fields)


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
    "an array past the end": (footer_of("fine_codes", offset=2**40), "fine_codes"),
    "an array of objects": (footer_of("elements", dtype="|O"), "elements"),
    "a negative shape": (footer_of("elements", shape=[-1, 16]), "elements"),
    "a shape larger than its bytes": (footer_of("fine_codes", shape=[2**40, 20]), "fine_codes"),
    "another width": (footer_of("fine_codes", shape=[20, 20], bytes=448), "fine_codes"),
    "no such array": (lambda footer, body: footer["arrays"].pop("code_norms"), "code_norms"),
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
    craft(tmp_path / "i", lambda footer, body: footer["arrays"]["set_scales"].update(shape=[16], bytes=64))
    with SetIndex.open(tmp_path / "i", read_only=True) as index, pytest.raises(StorageError, match="set_sc"):
        index.search(QUERY, k=3, mode="set")


def test_sequence_numbers_that_were_never_given_are_an_error(stored: Path) -> None:
    craft(stored, entry_of("seq", 299, 2**62))
    with SetIndex.open(stored, read_only=True) as index, pytest.raises(StorageError, match="never stored"):
        index.search(QUERY, k=3)


def test_a_file_truncated_while_it_is_searched_is_an_error(stored: Path) -> None:
    with SetIndex.open(stored, read_only=True) as index:
        assert index.search(QUERY, k=3)
        items = index.items()
        next(items)
        os.truncate(segment_of(stored), 4096)
        with pytest.raises(StorageError, match="truncated"):
            index.search(QUERY, k=3)
        with pytest.raises(StorageError, match="truncated"):
            index.elements("item 5")
        assert "truncated" in " ".join(index.check().problems)


def test_full_verification_reads_what_it_uses_and_needs_the_file_no_more(stored: Path) -> None:
    with SetIndex.open(stored, read_only=True, verify="full") as index:
        before = index.search(QUERY, k=3)
        os.truncate(segment_of(stored), 0)
        assert index.search(QUERY, k=3) == before
    with pytest.raises(InvalidInputError, match="'open', 'full'"):
        SetIndex.open(stored, verify="quick")


def test_full_verification_finds_a_flipped_bit_that_structure_cannot_show(stored: Path) -> None:
    with SetIndex.open(stored, read_only=True) as index:
        at = index._reader.snapshot().segments[0].file.entry("elements").offset
    path = segment_of(stored)
    data = bytearray(path.read_bytes())
    data[at + 2] ^= 0x10
    path.write_bytes(data)
    with SetIndex.open(stored, read_only=True) as index:
        assert index.search(QUERY, k=3), "the default trusts numbers that are no positions"
    with (
        SetIndex.open(stored, read_only=True, verify="full") as index,
        pytest.raises(StorageError, match="elements"),
    ):
        index.search(QUERY, k=3)
