"""Cases for the kernels with what the NumPy reference answers, as a file that driver.c reads.

Codes and queries are drawn at random over their whole range; in some of the cases all are at its ends, where
sums are largest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels import lanes, reference
from setnet.heads import codec

Arrays = list[NDArray[Any]]
SIZES = [(dim, rows) for dim in (1, 4, 20, 100, 128, 200, 512) for rows in (1, 2, 3, 4)]
SIZES += [(128, rows) for rows in (5, 6, 7, 8, 9, 70)]  # 70: more rows than a scan prepares at once
LOGISTIC = (10.0, 0.25, 2**-16)  # w, threshold, inflate: the same in float32
LINEAR = 100  # of this dimension scores are sums of maxima, without a steepness
LONG = [(8256, 1), (8256, 4)]  # sums of one-bit codes that no longer fit 16 bits


class Kind(IntEnum):
    """What a case tries."""

    SCAN, COLLECT, PACK, PACK_CODES, EVALUATE, SET_SIMILARITIES = range(6)


class Scan(IntEnum):
    """Which of the scans."""

    BYTES, HALVES, FIVE, NINE, EIGHT, LEAST, BIT_ROWS = range(7)

    @property
    def bits(self) -> int:
        """How `reference.scan` calls it."""
        return (8, 4, 5, 9, 8, 5, 1)[self]

    @property
    def in_panels(self) -> bool:
        """Whether it reads codes of elements."""
        return Scan.FIVE <= self <= Scan.LEAST

    def width(self, lines: int) -> int:
        """Dimensions of a row of so many lines."""
        return lines // 5 * lanes.PANEL if self.in_panels else lines * (4 if self == Scan.BYTES else 8)


def write_cases(path: Path, query_peak: int) -> int:
    """Write all cases, with codes of queries against bytes of at most ``query_peak``; return their number."""
    rng = np.random.default_rng(12)
    cases = list(_cases(rng, query_peak))
    with path.open("wb") as file:
        for kind, arrays in cases:
            file.write(np.array([kind, len(arrays)], np.int64).tobytes())
            for array in arrays:
                file.write(np.int64(array.nbytes).tobytes() + array.tobytes())
    return len(cases)


def _cases(rng: np.random.Generator, query_peak: int) -> Iterator[tuple[Kind, Arrays]]:
    for which in Scan:
        peak = query_peak if which == Scan.BYTES else 127
        for dim, rows in SIZES + (LONG if which == Scan.BIT_ROWS else []):
            for extreme in (False, True):
                yield Kind.SCAN, _scan(rng, which, dim, rows, peak, extreme)
    for n in (0, 1, 16, 67, 1003):
        for low in (0.0, 0.5, 0.99, 2.0):
            yield Kind.COLLECT, _collect(rng, n, low)
    for half in (0, 1):
        for dim in (1, 7, 64, 130):
            yield Kind.PACK, _pack(rng, half, dim)
            for fine in (0, 1):
                yield Kind.PACK_CODES, _pack_codes(rng, half, dim, fine)
        for combine in (0, 1, 2):
            for dim in (1, 10, LINEAR, 128):
                for shifts in ((0.0, 0.0, 0.0), (0.0, -0.125, -0.25)):
                    yield Kind.EVALUATE, _evaluate(rng, half, dim, combine, shifts)
    for bits in (32, 16, 8, 4, 1):
        for dim in (1, 64, 100, 1024):
            yield Kind.SET_SIMILARITIES, _set_similarities(rng, bits, dim)


def _layout(rng: np.random.Generator) -> tuple[lanes.Layout, NDArray[np.int64]]:
    """Return a layout of items of 1 to 6 elements and two wide ones, and the items' offsets."""
    counts = np.concatenate([rng.integers(1, 7, 43), [40, 33]])
    return lanes.layout_of(counts), np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _drawn(rng: np.random.Generator, low: int, high: int, shape: Any, extreme: bool) -> NDArray[Any]:
    """Return integers from low to high, or only these two, mostly the same in a row."""
    if not extreme:
        return np.asarray(rng.integers(low, high, shape, endpoint=True))
    ends = rng.choice([low, high], (*shape[:-1], 1))
    return np.asarray(np.where(rng.random(shape) < 0.95, ends, low + high - ends))


@dataclass(frozen=True, slots=True)
class _Stored:
    """Codes as a scan reads them, with arrays in the order of its arguments."""

    codes: NDArray[np.uint8]
    scales: NDArray[Any]
    fine: NDArray[np.uint8]
    fine_norms: NDArray[np.uint16]
    row_start: NDArray[np.int64]
    first_wide: int
    blocks: int
    items: int = 0

    @classmethod
    def of(cls, rng: np.random.Generator, which: Scan, dim: int, extreme: bool) -> _Stored:
        def bytes_of(*shape: int) -> NDArray[np.uint8]:
            return _drawn(rng, 0, 255, shape, extreme).astype(np.uint8)

        def upper_halves(*shape: int) -> NDArray[np.uint16]:
            return (rng.random(shape, np.float32).view(np.uint32) >> 16).astype(np.uint16)

        nothing, no_norms = np.empty(0, np.uint8), np.empty(0, np.uint16)
        width = -(-dim // 64) * 8  # of one-bit codes
        if which == Scan.BIT_ROWS:
            scales = rng.random(67, np.float32)
            return cls(bytes_of(67, width), scales, nothing, no_norms, np.empty(0, np.int64), -1, 5, 67)
        layout, _ = _layout(rng)
        place = layout.row_start, layout.first_wide, layout.blocks
        rows = int(layout.row_start[-1])
        if which.in_panels:
            panels = -(-dim // lanes.PANEL)
            codes, norms = bytes_of(rows, panels * 5, lanes.LANES, 4), upper_halves(rows, 3, lanes.LANES)
            if which in (Scan.NINE, Scan.EIGHT):
                nothing = bytes_of(rows, panels * 4, lanes.LANES, 4)
                no_norms = upper_halves(rows, lanes.LANES)
            return cls(codes, norms, nothing, no_norms, *place)
        codes = bytes_of(rows, -(-dim // (4 if which == Scan.BYTES else 8)), lanes.LANES, 4)
        return cls(codes, rng.random((rows, lanes.LANES), np.float32), nothing, no_norms, *place)


def _query(
    rng: np.random.Generator, which: Scan, groups: int, rows: int, peak: int, extreme: bool
) -> tuple[NDArray[np.int8], NDArray[np.int32], NDArray[np.float32]]:
    """Return codes, first sums and steps; similarities without slack and shift are then at most about one."""
    if which == Scan.BIT_ROWS:
        codes = _drawn(rng, 0, 63, (rows, groups * 32), extreme)
        start, largest = np.zeros(rows), 63 * 2 * groups
    else:
        codes = _drawn(rng, -peak, peak, (rows, which.width(groups)), extreme)
        middle = 1 << which.bits - 1
        start, largest = -middle * codes.sum(axis=1), middle * peak * codes.shape[1]
    step = rng.uniform(0.5, 1, rows) / largest
    return codes.astype(np.int8), start.astype(np.int32), step.astype(np.float32)


def _scan(rng: np.random.Generator, which: Scan, dim: int, rows: int, peak: int, extreme: bool) -> Arrays:
    stored = _Stored.of(rng, which, dim, extreme)
    groups = stored.codes.shape[1]
    codes, start, step = _query(rng, which, groups, rows, peak, extreme)
    terms = rng.normal(scale=0.1, size=(7, rows)).astype(np.float32)
    terms[reference.STEP] = step
    terms[reference.SHIFT] *= which == Scan.BIT_ROWS
    terms[reference.WEIGHT] = rng.uniform(0.5, 1, rows)
    owner = np.unique(np.sort(rng.integers(0, 3, rows)), return_inverse=True)[1].astype(np.int64)
    blocks = rng.permutation(stored.blocks)[1:].astype(np.int64)  # one is left out
    apart = (stored.items or stored.blocks * lanes.LANES) + 5  # room after each query's bounds
    expected = np.full((owner[-1] + 1, apart), np.nan, np.float32)
    logistic = (0.0 if dim == LINEAR else LOGISTIC[0], *LOGISTIC[1:])
    reference.scan(which.bits, stored.codes, stored.scales, stored.fine, stored.fine_norms, stored.row_start,
                   stored.first_wide, groups, codes, start, terms, *logistic, owner, blocks, expected, 0,
                   apart, which == Scan.LEAST)  # fmt: skip
    meta = np.array([which, rows, groups, stored.first_wide, stored.items, apart], np.int64)
    return [meta, stored.codes, stored.scales, stored.fine, stored.fine_norms, stored.row_start, codes, start,
            terms, owner, blocks, np.array(logistic, np.float32), expected]  # fmt: skip


def _collect(rng: np.random.Generator, n: int, low: float) -> Arrays:
    bounds = rng.random(n, np.float32)
    out = np.empty(n - n // 3, np.int64)
    found = reference.collect(bounds, low, out)
    meta = np.array([len(out), found], np.int64)
    return [meta, bounds, np.array([low], np.float32), out[: min(found, len(out))]]


def _elements(rng: np.random.Generator, n: int, dim: int, half: int) -> NDArray[Any]:
    precision = np.float16 if half else np.float32
    elements: NDArray[Any] = (rng.normal(size=(n, dim)) / np.sqrt(dim)).astype(precision)
    elements[0] = np.float32(3e-7)  # a float16 below the normal range
    return elements


def _pack(rng: np.random.Generator, half: int, dim: int) -> Arrays:
    layout, offsets = _layout(rng)
    slots = lanes.slots(layout, offsets, 0, layout.blocks)
    elements = _elements(rng, int(offsets[-1]), dim, half)
    codes = np.empty((len(slots), -(-dim // 4), lanes.LANES, 4), np.uint8)
    scales = np.empty(slots.shape, np.float32)
    norms = reference.pack(elements, half, dim, slots, codes, scales)
    return [np.array([half, dim], np.int64), elements, slots, codes, scales, np.array(norms)]


def _pack_codes(rng: np.random.Generator, half: int, dim: int, fine: int) -> Arrays:
    layout, offsets = _layout(rng)
    slots = lanes.slots(layout, offsets, 0, layout.blocks)
    elements = _elements(rng, int(offsets[-1]), dim, half)
    lines = -(-dim // lanes.PANEL) * (4 if fine else 5)
    codes = np.empty((len(slots), lines, lanes.LANES, 4), np.uint8)
    norms = np.empty((len(slots), 1 if fine else 3, lanes.LANES), np.uint16)
    reference.pack_codes(elements, half, dim, slots, bool(fine), codes, norms[:, 0] if fine else norms)
    return [np.array([half, dim, fine], np.int64), elements, slots, codes, norms]


def _evaluate(
    rng: np.random.Generator, half: int, dim: int, combine: int, shifts: tuple[float, ...]
) -> Arrays:
    _, offsets = _layout(rng)
    elements = _elements(rng, int(offsets[-1]), dim, half)
    first_row = np.array([0, 2, 3, 6] if combine else [0, 1, 2, 3], np.int64)
    rows = first_row[-1] + 1  # the last is not wanted
    query = np.zeros((rows, -(-dim // 8) * 8))
    query[:, :dim] = rng.normal(size=(rows, dim)) / np.sqrt(dim)
    items = rng.permutation(len(offsets) - 1).astype(np.int64)
    n, shift = len(items), np.array(shifts)
    least = np.array([0.125, *(0.125 - shift)])[[1, 2, 3, 0]]  # of the one that is not wanted at the end
    out = (np.empty(n), np.empty(n), np.empty((n, 3)), np.empty((n, 3), np.int32), np.empty(n, np.int32),
           np.empty(n, np.uint8), np.empty(n, np.uint8))  # fmt: skip
    w = 0.0 if dim == LINEAR else 8.0
    reference.evaluate(elements, half, dim, offsets, query, first_row, combine, 1, w, -1.0, shift, least,
                       items, *out)  # fmt: skip
    meta = np.array([half, dim, 3, combine, 1], np.int64)
    logistic = np.concatenate([[w, -1.0], shift, least])
    return [meta, elements, offsets, query, first_row, items, logistic, *out]


def _set_similarities(rng: np.random.Generator, bits: int, dim: int) -> Arrays:
    n, count = 67, 3
    vectors = rng.normal(size=(n, dim)).astype(np.float32)
    codes: NDArray[Any] = codec.encode(vectors, bits) if bits < 16 else vectors
    codes = codes.astype(np.float16) if bits == 16 else codes
    scales = rng.random(n if bits < 16 else 0, np.float32)
    query = np.zeros((count, -(-dim // 8) * 8))
    query[:, :dim] = rng.normal(size=(count, dim))
    items = rng.permutation(n).astype(np.int64)
    width = codes.nbytes // n
    out = np.empty((n, count))
    reference.set_similarities(bits, codes, scales, dim, width, query, count, items, out)
    return [np.array([bits, dim, width, count], np.int64), codes, scales, query, items, out]
