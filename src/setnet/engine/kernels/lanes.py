"""How vectors are laid out for the scan: blocks of 16 lanes, one item per lane.

Items are sorted by their number of elements and take the lanes of a block in turn; row r of a block holds
the r-th element of each of its 16 items; an item that has fewer repeats its first. An item with more than
`WIDE` elements takes whole blocks instead, its elements filling lane after lane. Within a row, the lanes'
bytes are interleaved four by four, so that a SIMD register holds the same four dimensions of all lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

LANES = 16
WIDE = 32
PANEL = 32  # dimensions whose codes of five bits share five lines of 64 bytes


@dataclass(frozen=True, slots=True)
class Layout:
    """Which row of a segment sits in which lane.

    ``lane_rows`` has 16 entries per block, -1 for an empty lane; ``row_start`` counts the code rows before
    each block; blocks from ``first_wide`` on hold one item each.
    """

    lane_rows: NDArray[np.int32]
    row_start: NDArray[np.int64]
    first_wide: int

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return len(self.row_start) - 1


def layout_of(counts: NDArray[np.int64]) -> Layout:
    """Lay out items by their number of elements; items without elements take no lane.

    >>> layout = layout_of(np.array([3, 0, 1]))
    >>> layout.lane_rows[:3].tolist(), layout.row_start.tolist()
    ([2, 0, -1], [0, 3])
    """
    order = np.argsort(counts, kind="stable")
    sorted_counts = counts[order]
    narrow = order[(sorted_counts > 0) & (sorted_counts <= WIDE)]
    wide = order[sorted_counts > WIDE]
    blocks = -(-len(narrow) // LANES)
    lane_rows = np.full((blocks + len(wide), LANES), -1, dtype=np.int32)
    lane_rows[:blocks].reshape(-1)[: len(narrow)] = narrow
    lane_rows[blocks:, 0] = wide
    filled = lane_rows[:blocks] >= 0
    tallest = np.where(filled, counts[lane_rows[:blocks]], 0).max(axis=1, initial=0)
    rows = np.concatenate([tallest, -(-counts[wide] // LANES)])
    row_start = np.concatenate([[0], np.cumsum(rows)]).astype(np.int64)
    return Layout(lane_rows.reshape(-1), row_start, blocks)


def slots(layout: Layout, offsets: NDArray[np.int64], first: int, last: int) -> NDArray[np.int64]:
    """Return the element in each lane of the code rows of blocks ``first`` to ``last``; -1 in empty lanes.

    An item that has no more elements takes its first again.
    """
    start, end = layout.row_start[first], layout.row_start[last]
    rows = np.arange(start, end)
    block = np.repeat(np.arange(first, last), np.diff(layout.row_start[first : last + 1]))
    nth = rows - layout.row_start[block]
    lanes = layout.lane_rows.reshape(-1, LANES)[block]
    wide = block >= layout.first_wide
    item = np.where(wide[:, None], lanes[:, :1], lanes)
    position = np.where(wide[:, None], nth[:, None] * LANES + np.arange(LANES), nth[:, None])
    element = offsets[item] + position
    return np.where(item < 0, -1, np.where(element < offsets[item + 1], element, offsets[item]))


def block_ranges(row_start: NDArray[np.int64], rows: int) -> Iterator[tuple[int, int]]:
    """Cut blocks into runs of about ``rows`` code rows each."""
    blocks = len(row_start) - 1
    first = 0
    while first < blocks:
        last = int(np.searchsorted(row_start, row_start[first] + rows, side="right")) - 1
        last = min(max(last, first + 1), blocks)
        yield first, last
        first = last


def interleave(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Turn (rows, 16, width) codes into (rows, width / 4, 16, 4)."""
    rows, lanes, width = codes.shape
    return np.ascontiguousarray(codes.reshape(rows, lanes, width // 4, 4).transpose(0, 2, 1, 3))
