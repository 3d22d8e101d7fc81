"""A repair keeps what is sound of a damaged segment: what can be made again costs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet import SetIndex
from setnet.engine.segment_file import BLOCK
from tests.support.segment_bytes import footer_and_arrays, places

N, DIM = 600, 32
DERIVED = ["lane_rows", "row_start", "codes", "code_norms", "fine_codes", "fine_norms"]
STORED = ["seq", "offsets", "id_offsets", "id_bytes", "elements", "column_0_numbers", "column_0_values",
          "column_0_texts"]  # fmt: skip


def held(index: SetIndex) -> dict[str, Any]:
    """Return the items with their elements and attributes."""
    stored = index.contents()
    own = np.split(stored.elements, np.cumsum(stored.counts))[:-1]
    return {
        item.id: (vectors.tobytes(), dict(item.attributes)) for item, vectors in zip(index, own, strict=True)
    }


@pytest.fixture(params=[None, 32, 8, 1], ids="set_bits={}".format)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """An index of one segment, a few items of which are deleted."""
    options = {"head": "none"} if request.param is None else {"set_bits": request.param}
    chance = np.random.default_rng(0)
    counts = chance.integers(1, 4, N)
    counts[::7] = 0
    with SetIndex.create(tmp_path / "i", DIM, **options) as index:
        rows = chance.normal(size=(int(counts.sum()), DIM)).astype(np.float32)
        values = [{"year": int(i) % 400} if i % 5 else None for i in range(N)]
        index.add([f"photo {i}" for i in range(N)], rows, counts, values)
        index.delete([f"photo {i}" for i in range(10, 20)])
    return tmp_path / "i"


def repaired(root: Path, array: str, at: int) -> tuple[dict[str, Any], dict[str, Any], tuple[str, ...]]:
    """Flip a bit of an array and repair; return the items before and after, and what is lost."""
    with SetIndex.open(root) as index:
        before = held(index)
        query = np.frombuffer(before["photo 300"][0], np.float32).reshape(-1, DIM)[:1]
    (path,) = (root / "segments").iterdir()
    data = bytearray(path.read_bytes())
    _, start, size, _ = places(footer_and_arrays(data)[0])[array]
    data[start + at % size] ^= 1
    path.write_bytes(data)
    lost = SetIndex.repair(root).lost
    with SetIndex.open(root) as index:
        assert index.check().problems == []
        after = held(index)
        if "photo 300" in after:
            assert index.search(query, k=1)[0].id == "photo 300"
        index.compact()
        assert held(index) == after
    assert after.items() <= before.items()
    return before, after, lost


@pytest.mark.parametrize("array", DERIVED)
def test_damage_to_codes_costs_nothing(stored: Path, array: str) -> None:
    before, after, lost = repaired(stored, array, 5)
    assert after == before
    assert lost == ()


@pytest.mark.parametrize("array", STORED)
def test_damage_costs_the_items_in_its_block_which_are_named(stored: Path, array: str) -> None:
    before, after, (lost,) = repaired(stored, array, 3 * BLOCK // 2)
    missing = before.keys() - after.keys()
    assert 0 < len(missing) <= (N if array.startswith("column") else BLOCK // 8 + 2)
    assert f"{len(missing)} items are lost" in lost
    assert array in lost
    assert "id_" in array or any(f"'{name}'" in lost for name in missing)


def test_damage_to_elements_costs_few_items(stored: Path) -> None:
    before, after, (lost,) = repaired(stored, "elements", 5 * BLOCK + 7)
    missing = before.keys() - after.keys()
    assert 0 < len(missing) <= BLOCK // DIM // 4 + 2
    assert all(f"'{name}'" in lost for name in missing) or "more" in lost


def test_damage_to_the_checksums_costs_nothing(stored: Path) -> None:
    (path,) = (stored / "segments").iterdir()
    data = bytearray(path.read_bytes())
    data[len(footer_and_arrays(data)[1]) + 40] ^= 1
    path.write_bytes(data)
    report = SetIndex.repair(stored)
    assert (report.items, report.lost) == (N - 10, ())
