"""Each compiled kernel computes what its NumPy twin does, at every instruction set."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.engine import greedy_matches
from setnet.engine.kernels import backend, lanes, reference
from setnet.engine.query import Examples, Matching, Query, Scoring
from setnet.engine.scan import QueryCodes
from setnet.errors import InvalidInputError
from setnet.heads import codec
from setnet.heads.logistic import Logistic

NOTHING = np.empty(0, np.uint8)
scan_plainly: Callable[..., None] = reference.scan
compiled = pytest.mark.skipif(backend.kernels is reference, reason="the C extension is not built")


def query_of(rng: np.random.Generator, size: int, dim: int, matching: Matching = "greedy") -> Query:
    rows = [rng.normal(size=(1, dim)).astype(np.float32) / np.sqrt(dim) for _ in range(size)]
    return Query.of(rows, dim, Logistic(20.0, -6.0), matching=matching)


def packed(
    rng: np.random.Generator, counts: NDArray[np.int64], dim: int
) -> tuple[NDArray[np.int64], NDArray[Any], lanes.Layout, NDArray[np.int64]]:
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    elements = (rng.normal(size=(offsets[-1], dim)) / np.sqrt(dim)).astype(np.float32)
    layout = lanes.layout_of(counts)
    slots = lanes.slots(layout, offsets, 0, layout.blocks)
    return offsets, elements, layout, slots


def shares_of(query: Query) -> tuple[float, float, float]:
    """w, threshold and what covers the rounding of similarities, as a search hands them to the scan."""
    logistic = query.logistic
    return query.w, logistic.threshold, 2.4e-7 * (logistic.w * abs(logistic.threshold) + 100.0)


@compiled
@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("matching", ["greedy", "maxsim"])
@pytest.mark.parametrize("dim", [1, 4, 20, 128])
def test_scan_of_elements(level: str, size: int, dim: int, matching: Matching) -> None:
    rng = np.random.default_rng(size * 1000 + dim)
    counts = np.concatenate([rng.integers(1, 7, 90), [40, 33, 100]])
    offsets, elements, layout, slots = packed(rng, counts, dim)
    elements *= 10.0 ** rng.uniform(-2, 1, (len(elements), 1)).astype(np.float32)  # each has norms of its own
    panels = -(-dim // lanes.PANEL)
    codes = np.empty((len(slots), panels * 5, 16, 4), np.uint8)
    norms = np.empty((len(slots), 3, 16), np.uint16)
    fine, fine_norms = np.empty((len(slots), panels * 4, 16, 4), np.uint8), np.empty(slots.shape, np.uint16)
    reference.pack_codes(elements, 0, dim, slots, False, codes, norms)
    reference.pack_codes(elements, 0, dim, slots, True, fine, fine_norms)
    query = query_of(rng, size, dim, matching)
    used = layout.lane_rows >= 0
    items = layout.lane_rows[used].astype(np.int64)
    sims = query.rows[:, :dim] @ elements.astype(np.float64).T
    best = [sims[:, offsets[item] : offsets[item + 1]].max(axis=1) for item in items]
    shares = query.logistic.probability(np.stack(best)) if query.w else np.maximum(best, 0)
    truth = shares.sum(axis=1)

    bounds = []
    for bits in (5, backend.fine_bits()):
        q = QueryCodes.against_elements(query, bits)
        stored = (codes, norms, fine, fine_norms, layout.row_start, layout.first_wide, codes.shape[1])
        asked = (q.codes, q.start, q.terms, *shares_of(query), np.zeros(size, np.int64))
        args: Any = (bits, *stored, *asked, rng.permutation(layout.blocks))
        expected, found = np.empty((2, layout.blocks * 16), np.float32)
        scan_plainly(*args, expected, 0, len(expected))
        backend.kernels.scan(*args, found, 0, len(found))
        np.testing.assert_allclose(found[used], expected[used], rtol=3e-6, atol=1e-8)
        assert (found[used] >= truth).all(), "a bound lies below the score it bounds"
        bounds.append(found[used])
        if bits == 5:
            scan_plainly(*args, expected, 0, len(expected), True)
            backend.kernels.scan(*args, found, 0, len(found), True)
            np.testing.assert_allclose(found[used], expected[used], rtol=3e-5, atol=1e-5)
            above = (sims - query.least[:, None]).max(axis=0)
            least = np.array([above[offsets[item] : offsets[item + 1]].min() for item in items])
            assert (found[used] >= least).all(), "an item is left out whose elements all match"
    wider, tighter = bounds
    if dim >= 20 and query.w:
        assert np.median(tighter - truth) < 0.05 * size, "the bound is too loose to be of use"
        assert (tighter <= wider).mean() > 0.9


@compiled
@pytest.mark.parametrize("bits", [8, 4, 1])
@pytest.mark.parametrize("dim", [1, 8, 64, 100, 1024])
def test_scan_of_set_vectors(level: str, bits: int, dim: int) -> None:
    rng = np.random.default_rng(bits * 10000 + dim)
    n = 67
    vectors = rng.normal(size=(n, dim)).astype(np.float32)
    codes = codec.encode(vectors, bits)
    levels = codec.decode_levels(codes, dim, bits)
    scales = np.zeros(-(-n // 16) * 16, np.float32)
    scales[:n] = 1.0 / np.linalg.norm(levels, axis=1)
    norm = float(np.linalg.norm(levels, axis=1).max())
    if bits == 1:
        stored, groups, out = codes, codes.shape[1], n
    else:
        whole = np.full((len(scales), codes.shape[1]), 128, np.uint8)
        whole[:n] = codes
        stored = lanes.interleave(whole.reshape(-1, 16, codes.shape[1]))
        groups, out = stored.shape[1], len(scales)
    query = query_of(rng, 3, dim)
    coded = QueryCodes.against_sets(query, bits, (0.0, norm))
    blocks, wide = np.arange(len(scales) // 16), -1 if bits == 1 else len(scales) // 16
    args: Any = (bits, stored, scales, NOTHING, NOTHING, np.empty(0, np.int64), wide, groups, coded.codes,
            coded.start, coded.terms, *shares_of(query))  # fmt: skip
    expected, found = np.empty(out, np.float32), np.empty(out, np.float32)
    for scan, bounds in ((scan_plainly, expected), (backend.kernels.scan, found)):
        scan(*args, np.zeros(3, np.int64), blocks, bounds, 0, out)
    # as three queries, with room before each one's bounds: what each query element adds to the sum
    each = np.full((3, out + 5), np.nan, np.float32)
    backend.kernels.scan(*args, np.arange(3), blocks, each, 5, out + 5)
    np.testing.assert_allclose(each[:, 5:].sum(axis=0), found, rtol=2e-6)
    assert np.isnan(each[:, :5]).all()
    np.testing.assert_allclose(found, expected, rtol=2e-6)
    sims = codec.decode(codes, dim, bits).astype(np.float64) @ query.rows[:, :dim].T
    truth = query.logistic.probability(sims).sum(axis=1)
    assert (found[:n] >= truth).all(), "a bound lies below the score it bounds"
    assert found[:n].max() <= truth.max() + 3 * 0.25 * query.logistic.w * 0.1, (
        "the bound is too loose to be of use"
    )

    similar, plain = np.empty((n, 3)), np.empty((n, 3))
    items = rng.permutation(n).astype(np.int64)
    chosen = (bits, codes, scales, dim, codes.shape[1], query.rows, 3, items)
    backend.kernels.set_similarities(*chosen, similar)
    reference.set_similarities(*chosen, plain)
    np.testing.assert_allclose(similar, plain, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(similar, sims[items], rtol=1e-5, atol=1e-6)


@compiled
@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("dim", [1, 7, 64, 130])
def test_pack(precision: str, dim: int) -> None:
    rng = np.random.default_rng(dim)
    counts = np.array([1, 3, 2, 50, 0, 4])
    offsets, elements, _, slots = packed(rng, counts, dim)
    half = int(precision == "float16")
    elements = elements.astype(precision)
    codes = np.empty((2, len(slots), -(-dim // 4), 16, 4), np.uint8)
    scales = np.empty((2, *slots.shape), np.float32)
    expected = reference.pack(elements, half, dim, slots, codes[0], scales[0])
    found = backend.kernels.pack(elements, half, dim, slots, codes[1], scales[1])
    np.testing.assert_array_equal(codes[1], codes[0])
    np.testing.assert_array_equal(scales[1], scales[0])
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    for fine, lines, norms_of_each in ((False, 5, (3,)), (True, 4, ())):
        codes = np.empty((2, len(slots), -(-dim // 32) * lines, 16, 4), np.uint8)
        norms = np.empty((2, len(slots), *norms_of_each, 16), np.uint16)
        for kernels, c, n in zip((reference, backend.kernels), codes, norms, strict=True):
            kernels.pack_codes(elements, half, dim, slots, fine, c, n)
        np.testing.assert_array_equal(codes[1], codes[0])
        np.testing.assert_allclose(norms[1].astype(int), norms[0].astype(int), atol=1)  # of 1 / 128
    assert np.unique(slots[slots >= 0]).tolist() == list(range(offsets[-1])), "every element has a lane"


@compiled
@pytest.mark.parametrize("combine", [0, 1, 2])
@pytest.mark.parametrize("precision", ["float32", "float16"])
@pytest.mark.parametrize("matching", ["greedy", "maxsim"])
@pytest.mark.parametrize("scoring", [None, Scoring(8.0, (0.25, 0.3, 0.2), (0.1, 0.35, 0.2), (0.4,))])
def test_evaluate(combine: int, precision: str, scoring: Scoring | None, matching: Matching) -> None:
    rng = np.random.default_rng(combine)
    counts = np.array([1, 5, 2, 40, 3, 3, 1])
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    elements = (rng.normal(size=(offsets[-1], 10)) / 3).astype(precision)
    sizes = [2, 1, 3] if combine else [1, 1, 1]
    groups = [rng.normal(size=(n, 10)).astype(np.float32) / np.float32(3) for n in sizes]
    rule = get_args(Examples)[combine]
    query = Query.of(groups, 10, Logistic(8.0, -2.0), without=[groups[0][:1]], examples=rule, scoring=scoring,
                     matching=matching)  # fmt: skip
    items = np.array([3, 0, 6, 1, 2, 5, 4], np.int64)
    results: list[tuple[NDArray[Any], ...]] = []
    for kernels in (reference, backend.kernels):
        out = (np.empty(7), np.empty(7), np.empty((7, 3)), np.empty((7, 3), np.int32), np.empty(7, np.int32),
               np.empty(7, np.uint8), np.empty(7, np.uint8))  # fmt: skip
        kernels.evaluate(elements, int(precision == "float16"), 10, offsets, query.rows, query.first_row,
                         query.combine, query.unwanted, query.w, query.logistic.b, query.shift,
                         query.least, items, *out)  # fmt: skip
        results.append(out)
    for found, expected in zip(results[1], results[0], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
@pytest.mark.parametrize("elements", [1, 2, 5])
def test_greedy_matches_agrees_with_the_reference(size: int, elements: int) -> None:
    rng = np.random.default_rng(size * 10 + elements)
    tables = np.round(rng.normal(size=(4, 30, size, elements)), 1)  # rounded: many ties
    found = greedy_matches(tables)
    expected = np.empty(found.shape, np.int32)
    reference.greedy(tables, 120, size, elements, expected)
    np.testing.assert_array_equal(found, expected)
    assert ((found >= 0).sum(axis=-1) == min(size, elements)).all()


def test_greedy_matches_of_nothing_and_of_what_is_no_table() -> None:
    assert greedy_matches(np.empty((3, 2, 0))).tolist() == [[-1, -1]] * 3
    assert greedy_matches(np.empty((0, 2, 4))).shape == (0, 2)
    with pytest.raises(InvalidInputError, match=r"\(5,\)"):
        greedy_matches(np.ones(5))


@given(st.lists(st.binary(max_size=400), max_size=4), st.integers(1, 300))
def test_checksums_of_blocks_are_those_of_zlib_however_the_bytes_come(parts: list[bytes], block: int) -> None:
    whole = b"".join(parts)
    sums = np.zeros(len(whole) // block, np.uint32)
    done = crc = 0
    for part in parts:
        crc = backend.kernels.checksum_blocks(part, block, done % block, crc, sums[done // block :])
        done += len(part)
    expected = [zlib.crc32(whole[at : at + block]) for at in range(0, len(whole), block)]
    assert [*sums.tolist(), crc] == expected[: len(sums)] + (expected[len(sums) :] or [0])


@given(st.binary(min_size=1, max_size=700), st.integers(1, 200), st.data())
def test_damaged_blocks_are_found_where_they_are_read(data: bytes, block: int, drawn: st.DataObject) -> None:
    sums = np.array([zlib.crc32(data[at : at + block]) for at in range(0, len(data), block)], np.uint32)
    flipped = np.frombuffer(data, np.uint8).copy()
    at = drawn.draw(st.integers(0, len(data) - 1))
    flipped[at] ^= 1
    starts = np.array(drawn.draw(st.lists(st.integers(0, len(data)), max_size=5)), np.int64)
    ends = np.array([drawn.draw(st.integers(start, len(data))) for start in starts.tolist()], np.int64)
    found = []
    for kernels in (backend.kernels, reference):
        seen = np.zeros(len(sums), np.uint8)
        found.append((kernels.damaged_block(flipped, block, sums, seen, starts, ends), seen.tolist()))
    assert found[0] == found[1]
    read = [range(a // block, -(-z // block)) for a, z in zip(starts.tolist(), ends.tolist(), strict=True)]
    assert found[0][0] == (at // block if any(at // block in blocks for blocks in read) else -1)
    assert not found[0][1][at // block]


@compiled
def test_collect(level: str) -> None:
    rng = np.random.default_rng(0)
    bounds = rng.random(1003).astype(np.float32)
    for low in (0.0, 0.5, 0.999, 2.0):
        out, expected = np.empty(1003, np.int64), np.empty(1003, np.int64)
        n = backend.kernels.collect(bounds, low, out)
        assert n == reference.collect(bounds, low, expected)
        np.testing.assert_array_equal(out[:n], expected[:n])
    assert backend.kernels.collect(bounds, 0.0, np.empty(3, np.int64)) == 1003


@compiled
def test_lanes_are_opened_and_closed_by_the_rows_they_hold() -> None:
    rng = np.random.default_rng(0)
    mask, rows = rng.random(40) < 0.5, rng.integers(-1, 40, 1003).astype(np.int32)
    is_open = np.empty((2, 1003), bool)
    bounds = np.tile(rng.random(1003).astype(np.float32), (2, 1))
    for kernels, lanes_open, own in zip((reference, backend.kernels), is_open, bounds, strict=True):
        kernels.take_mask(mask, rows, lanes_open)
        kernels.close_lanes(own, lanes_open)
    np.testing.assert_array_equal(is_open[1], is_open[0])
    np.testing.assert_array_equal(bounds[1], bounds[0])
    assert ((bounds[0] < 0) == ~(mask[rows] & (rows >= 0))).all()
    with pytest.raises(ValueError, match="outside the mask"):
        backend.kernels.take_mask(mask[:20], rows, is_open[0])


UNBUILT = """
import sys
sys.modules["setnet.engine.kernels._kernels"] = None
from setnet.engine import greedy_matches, kernel_level
print(kernel_level(), greedy_matches([[0.1, 0.9]]).tolist())
"""


def test_a_missing_extension_is_logged_and_shown_to_who_did_not_configure_logging() -> None:
    done = subprocess.run([sys.executable, "-c", UNBUILT], capture_output=True, text=True, timeout=60)
    assert done.stdout == "reference [1]\n"
    assert "C extension is not built" in done.stderr


def test_the_reference_answers_when_the_extension_is_missing(
    tmp_path: Path,
    make_world: Callable[..., Any],
    make_index: Callable[..., SetIndex],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = make_world(2, 300)
    query = np.random.default_rng(1).normal(size=(2, 16)).astype(np.float32)
    with make_index(world, tmp_path / "a") as index:
        compiled_answer = index.search(query, k=20)
    monkeypatch.setattr(backend, "kernels", reference)
    with make_index(world, tmp_path / "b") as index:
        found = index.search(query, k=20)
    assert [hit.id for hit in found] == [hit.id for hit in compiled_answer]
    world.agrees(found, query, 20)
