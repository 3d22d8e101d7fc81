"""Inverted lists over elements: made by k-means when segments are merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.codes import packed_bits
from setnet.engine.kernels.lanes import LANES, Layout
from setnet.engine.segment_file import SegmentFileWriter
from setnet.heads.bit_codes import code_bits

ROUNDS = 6
CHUNK = 8192  # vectors handled at once

Floats = NDArray[np.float32]


def centres_of(points: Floats, count: int) -> Floats:
    """Return the centres of ``count`` clusters of points, the same for the same points."""
    centres = points[np.random.default_rng(0).permutation(len(points))[:count]]
    for _ in range(ROUNDS):
        nearest = nearest_centres(points, centres)
        sizes = np.bincount(nearest, minlength=count)
        first, used = np.cumsum(sizes) - sizes, sizes > 0
        sums = np.add.reduceat(points[np.argsort(nearest, kind="stable")], first[used], axis=0)
        centres[used] = sums / sizes[used, None]
    return centres


def nearest_centres(points: NDArray[Any], centres: Floats) -> NDArray[np.int64]:
    """Return the number of the centre that is nearest to each point.

    >>> nearest_centres(np.array([[0.9], [0.1]], np.float32), np.array([[0.0], [1.0]], np.float32)).tolist()
    [1, 0]
    """
    half = half_squares(centres)
    parts = (points[at : at + CHUNK].astype(np.float32) for at in range(0, len(points), CHUNK))
    return np.concatenate([(part @ centres.T - half).argmax(axis=1) for part in parts])


def half_squares(centres: Floats) -> Floats:
    """Return half the squared length of each centre: the nearest to x has the largest x.c - |c|^2 / 2."""
    return np.asarray(np.float32(0.5) * np.einsum("cd,cd->c", centres, centres))


SMALLEST_LISTED = 2_000_000  # items: below, reading all codes takes a few milliseconds
LISTS = 4096  # at most
LIST = 256  # elements in a list, at least on average
SAMPLE = 32  # elements for each list that the centres are made from
_LISTED_AT_ONCE = 8192  # elements handled at once


def write_lists(writer: SegmentFileWriter, layout: Layout, offsets: NDArray[np.int64]) -> None:
    """Write the one-bit codes of all elements list by list, 16 to a block, and the lane of each."""
    stored, centre = writer.read_back("elements"), np.array(writer.read_back("bit_centre"))
    count = max(1, min(LISTS, len(stored) // LIST))
    centres = centres_of(stored[:: -(-len(stored) // (SAMPLE * count))].astype(np.float32), count)
    slots, starts = _slots(nearest_centres(stored, centres), count)
    lane = np.empty(len(offsets) - 1, np.int32)
    used = layout.lane_rows >= 0
    lane[layout.lane_rows[used]] = np.flatnonzero(used)
    lanes = np.repeat(lane, np.diff(offsets))
    factors: list[NDArray[np.uint16]] = []

    def blocks() -> Iterator[NDArray[np.uint8]]:
        for at in range(0, len(slots), _LISTED_AT_ONCE):
            codes, scales = packed_bits(stored, slots[at : at + _LISTED_AT_ONCE].reshape(-1, LANES), centre)
            factors.append(scales)
            yield codes

    writer.array("list_centres", np.float32, (stored.shape[1],), [centres])
    writer.array("list_start", np.int64, (), [starts])
    writer.array("list_codes", np.uint8, (code_bits(stored.shape[1]) // 8, LANES), blocks())
    writer.array("list_factors", np.uint16, (LANES,), factors)
    found = (
        np.where(part < 0, -1, lanes[part])
        for part in np.array_split(slots, -(-len(slots) // _LISTED_AT_ONCE))
    )
    writer.array("list_lanes", np.int32, (), found)


def _slots(lists: NDArray[np.int64], count: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the element in each slot of whole blocks, -1 for none, and the first block of each list.

    >>> slots, starts = _slots(np.array([1, 0, 1]), 2)
    >>> slots[:3].tolist(), slots[16:19].tolist(), starts.tolist()
    ([1, -1, -1], [0, 2, -1], [0, 1, 2])
    """
    sizes = np.bincount(lists, minlength=count)
    starts = np.concatenate([[0], np.cumsum(-(-sizes // LANES))])
    order = np.argsort(lists, kind="stable")
    first = np.cumsum(sizes) - sizes
    slots = np.full(starts[-1] * LANES, -1, np.int64)
    slots[np.arange(len(lists)) + np.repeat(starts[:-1] * LANES - first, sizes)] = order
    return slots, starts
