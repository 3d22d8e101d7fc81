"""What the arrays of a segment must look like, and the laws that the numbers used as positions obey.

Kernels index memory with these numbers. Whoever takes an array from a `Segment` has it after it was compared
with its shape here and, where its values are positions, after those were.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels.lanes import LANES
from setnet.index.storage.shape import Shape
from setnet.sets import code_bits

Expected = tuple[str, tuple[int | None, ...]]  # dtype, and sizes; None where another array says how many


def expected_arrays(items: int, elements: int, shape: Shape) -> dict[str, Expected]:
    """Return dtype and shape of every array that a segment of so many items and elements can have."""
    found: dict[str, Expected] = {
        "seq": ("int64", (items,)),
        "offsets": ("int64", (items + 1,)),
        "id_offsets": ("int64", (items + 1,)),
        "id_bytes": ("uint8", (None,)),
        "attribute_offsets": ("int64", (items + 1,)),
        "attribute_bytes": ("uint8", (None,)),
        "elements": (shape.precision, (elements, shape.dim)),
        "lane_rows": ("int32", (None,)),
        "row_start": ("int64", (None,)),
        "high_codes": ("uint8", (None, -(-shape.dim // 8), LANES, 4)),
        "scales": ("float32", (None, LANES)),
        "low_codes": ("uint8", (None, -(-shape.dim // 8), LANES, 4)),
        "codes": ("uint8", (elements, -(-shape.dim // 4) * 4 + 4)),  # of setnet 1, no longer read
        "bit_centre": ("float32", (shape.dim,)),
        "bit_codes": ("uint8", (None, code_bits(shape.dim) // 8, LANES)),
        "bit_factors": ("uint16", (None, LANES)),
        "list_centres": ("float32", (None, shape.dim)),
        "list_start": ("int64", (None,)),
        "list_codes": ("uint8", (None, code_bits(shape.dim) // 8, LANES)),
        "list_factors": ("uint16", (None, LANES)),
        "list_lanes": ("int32", (None,)),
    }
    return found | _expected_sets(items, shape)


def _expected_sets(items: int, shape: Shape) -> dict[str, Expected]:
    sets = shape.sets
    if sets is None:
        return {}
    blocks = -(-items // LANES)
    if sets.bits == 1:
        return {"set_codes": ("uint8", (items, sets.row_bytes)), "set_scales": ("float32", (items,))}
    if sets.bits >= 16:
        return {
            "set_rows": (f"float{sets.bits}", (items, sets.dim)),
            "set_codes": ("uint8", (blocks, -(-sets.dim // 4), LANES, 4)),
            "set_scales": ("float32", (blocks, LANES)),
        }
    return {
        "set_rows": ("uint8", (items, sets.row_bytes)),
        "set_codes": ("uint8", (blocks, sets.row_bytes // 4, LANES, 4)),
        "set_scales": ("float32", (blocks * LANES,)),
    }


def offsets_fault(offsets: NDArray[np.int64], length: int) -> str | None:
    """Return why offsets do not cut an array of ``length`` entries into runs; None when they do.

    >>> offsets_fault(np.array([0, 2, 5]), 5), offsets_fault(np.array([0, 3, 2]), 2)
    (None, 'they fall')
    """
    if offsets[0] != 0 or offsets[-1] != length:
        return f"they run from {offsets[0]} to {offsets[-1]}, not from 0 to {length}"
    return None if (offsets[1:] >= offsets[:-1]).all() else "they fall"


def sequence_fault(seq: NDArray[np.int64]) -> str | None:
    """Return why numbers are no sequence numbers; None when they are positive and rise."""
    if len(seq) and seq[0] < 1:
        return f"they begin with {seq[0]}"
    return None if (seq[1:] > seq[:-1]).all() else "they do not rise"


def lane_fault(
    lane_rows: NDArray[np.int32], row_start: NDArray[np.int64], first_wide: int, counts: NDArray[np.int64]
) -> str | None:
    """Return why lanes and blocks do not hold every element of every item once; None when they do."""
    blocks, rest = divmod(len(lane_rows), LANES)
    if rest or len(row_start) != blocks + 1 or not 0 <= first_wide <= blocks:
        return f"{len(lane_rows)} lanes do not fit {len(row_start) - 1} blocks, {first_wide} of them narrow"
    if len(lane_rows) and (lane_rows.min() < -1 or lane_rows.max() >= len(counts)):
        return f"rows {lane_rows.min()} to {lane_rows.max()} are named of {len(counts)}"
    held = np.append(counts, 0)[lane_rows]  # an empty lane is -1: the last entry
    placed = np.zeros(len(counts) + 1, bool)
    placed[lane_rows] = True
    if not np.array_equal(placed[:-1], counts > 0) or np.count_nonzero(lane_rows >= 0) != placed[:-1].sum():
        return "an item with elements is not in one lane"
    by_block = held.reshape(blocks, LANES)
    if (by_block[first_wide:, 1:] > 0).any():
        return "a wide item shares its block"
    tallest = by_block.max(axis=1, initial=0)
    tallest[first_wide:] = -(-tallest[first_wide:] // LANES)
    if row_start[0] != 0 or not np.array_equal(np.diff(row_start), tallest):
        return "blocks are not as tall as their items"
    return None


def slot_fault(slots: NDArray[np.int32], lane_rows: NDArray[np.int32]) -> str | None:
    """Return why slots of inverted lists, -1 for an empty one, do not name lanes that hold an item.

    >>> slot_fault(np.array([1, -1]), np.array([-1, 0])), slot_fault(np.array([0]), np.array([-1, 0]))
    (None, 'a slot names an empty lane')
    """
    if slots.min(initial=-1) < -1 or slots.max(initial=-1) >= len(lane_rows):
        return f"lanes {slots.min()} to {slots.max()} are named of {len(lane_rows)}"
    return "a slot names an empty lane" if (lane_rows[slots[slots >= 0]] < 0).any() else None
