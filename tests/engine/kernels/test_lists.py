"""Reading inverted lists: every instruction set finds what plain NumPy finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet.engine.kernels import backend, reference
from setnet.engine.lists import four_bit_codes, write_lists
from setnet.engine.probe import QueryRows
from setnet.engine.query import Examples, Query, SearchOptions
from setnet.engine.segment_file import SegmentFileWriter
from setnet.heads import Logistic

compiled = pytest.mark.skipif(backend.kernels is reference, reason="the C extension is not built")
NAMES = ("centres", "half_squares", "start", "codes", "factors", "items")


def make_lists(path: Path, rows: NDArray[Any], offsets: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    """Return the arrays of lists as they are written."""
    with SegmentFileWriter(path / "segment") as writer:
        writer.array("elements", rows.dtype, (rows.shape[1],), [rows])
        write_lists(writer, offsets)
        names = [name for name in writer._arrays if name != "elements"]
        return {name: np.array(writer.read_back(name)) for name in names}


@compiled
@pytest.mark.parametrize("combine", ["aggregate", "mean", "max", "maxsim"])
@pytest.mark.parametrize("dim", [3, 33, 128, 200])
def test_candidates_from_lists(level: str, dim: int, combine: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(dim)
    counts = np.concatenate([rng.integers(0, 7, 900), [90, 40]])
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    centres = rng.normal(size=(30, dim))
    rows = centres[rng.integers(0, 30, offsets[-1])] + 0.5 * rng.normal(size=(offsets[-1], dim))
    rows = (rows / np.linalg.norm(rows, axis=1).mean()).astype(np.float32)
    lists = make_lists(tmp_path, rows, offsets)
    stored = [lists[f"list_{name}"] for name in NAMES]
    groups = [rows[at : at + n] + np.float32(0.01) for at, n in ((3, 2), (50, 1), (700, 3))]
    how: SearchOptions = {"examples": cast(Examples, combine)}
    how = {"matching": "maxsim"} if combine == "maxsim" else how
    query = Query.of(groups, dim, Logistic(20.0, -8.0), **how)
    asked = QueryRows.of(query)
    is_open = rng.random(len(counts)) < 0.6
    for mask, probes, wanted, candidates in ((b"", 4, 30, 20), (is_open, 9, 5, 1000), (b"", 1000, 7, 7)):
        found = []
        for kernels in (reference, backend.kernels):
            out = np.empty(candidates, np.int64), np.empty(candidates, np.float32), np.empty(2, np.int64)
            n = kernels.search_lists(
                lists["list_codes"].shape[1], *stored, offsets, lists["list_rows"], lists["list_row_factors"],
                mask, *asked.arguments(query), probes, wanted, candidates, *out,
            )  # fmt: skip
            order = np.argsort(out[0][:n])
            found.append((out[0][:n][order], out[1][:n][order], out[2]))
        np.testing.assert_array_equal(found[1][0], found[0][0])
        np.testing.assert_allclose(found[1][1], found[0][1], rtol=1e-5)
        np.testing.assert_array_equal(found[1][2], found[0][2])
        assert len(found[1][0]) > 5
        assert isinstance(mask, bytes) or is_open[found[1][0]].all()


def test_codes_of_four_bits_are_near_their_vectors() -> None:
    rows = np.random.default_rng(1).normal(size=(50, 128)).astype(np.float32)
    codes, factors = four_bit_codes(rows)
    levels = np.stack([codes & 15, codes >> 4], axis=2).reshape(50, 128) - 7.5
    near = levels * (factors.astype(np.uint32) << 16).view(np.float32)[:, None]
    assert (np.linalg.norm(near - rows, axis=1) < 0.15 * np.linalg.norm(rows, axis=1)).all()
    np.testing.assert_allclose(
        np.einsum("nd,nd->n", near, rows), np.einsum("nd,nd->n", rows, rows), rtol=0.01
    )
