"""Inverted lists over elements: made by k-means when an index is compacted, with the recall they give."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels.lanes import LANES

if TYPE_CHECKING:  # which knows the shapes of these arrays
    from setnet.engine.segment_file import SegmentFileWriter

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


SMALLEST_LISTED = 500_000  # items: to score fewer takes a few milliseconds, to make lists takes minutes
LISTS = 8192  # at most
LIST = 128  # elements in a list, at least on average
SAMPLE = 64  # elements for each list that the centres are made from


def code_units(dim: int) -> int:
    """Return how many units of four bytes, eight dimensions each, a code of four bits has: whole panels."""
    return -(-dim // 32) * 4


def halves_of(levels: NDArray[Any]) -> NDArray[np.uint8]:
    """Pack numbers below 16, two dimensions to a byte, the even one in its lower half.

    >>> halves_of(np.array([[1, 2, 3]]))[:, :3].tolist()
    [[33, 3, 0]]
    """
    whole = np.zeros((len(levels), code_units(levels.shape[1]) * 8), np.uint8)
    whole[:, : levels.shape[1]] = levels
    return np.asarray(whole[:, ::2] | whole[:, 1::2] << 4, np.uint8)


def four_bit_codes(vectors: Floats) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Return a code of four bits a dimension for each vector, and the upper half of its factor.

    A code c stands for c - 7.5 times the factor, which is such that a vector's product with its own code is
    its squared length.
    """
    peak = np.maximum(np.abs(vectors).max(axis=1), np.float32(1e-30))
    levels = np.clip(np.floor(vectors * (8 / peak)[:, None]) + 8, 0, 15)
    squares = np.einsum("nd,nd->n", vectors, vectors)
    factors = squares / np.maximum(np.einsum("nd,nd->n", vectors, levels - 7.5), 1e-30)
    return halves_of(levels), ((factors.astype(np.float32).view(np.uint32) + 0x8000) >> 16).astype(np.uint16)


def in_lanes(codes: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Turn rows of codes, 16 to a block, into blocks whose units lie side by side."""
    return np.ascontiguousarray(codes.reshape(-1, LANES, codes.shape[1] // 4, 4).swapaxes(1, 2))


def write_lists(writer: SegmentFileWriter, offsets: NDArray[np.int64]) -> None:
    """Write codes of four bits of all elements, by item and by list, and the recall that lists give."""
    stored = writer.read_back("elements")
    dim, units = stored.shape[1], code_units(stored.shape[1])
    count = max(LANES, min(LISTS, len(stored) // LIST) // LANES * LANES)
    sample = stored[:: max(1, len(stored) // (SAMPLE * count))].astype(np.float32)
    if len(sample) < count:  # some lists stay empty
        sample = np.resize(sample, (count, dim))
    centres = centres_of(sample, count)
    nearest = nearest_centres(stored, centres) if len(stored) else np.empty(0, np.int64)
    slots, starts = _slots(nearest, count)
    factors: list[NDArray[np.uint16]] = [np.empty(0, np.uint16)]

    def by_item() -> Iterator[NDArray[np.uint8]]:
        for at in range(0, len(stored), CHUNK):
            codes, found = four_bit_codes(stored[at : at + CHUNK].astype(np.float32))
            factors.append(found)
            yield codes

    writer.array("list_rows", np.uint8, (units * 4,), by_item())
    writer.array("list_row_factors", np.uint16, (), factors)
    rows, factor = writer.read_back("list_rows"), np.append(np.concatenate(factors), np.uint16(0))
    step = max(float(np.abs(centres).max()) / 127.5, 1e-30)
    levels = np.clip(np.floor(centres / step + 128), 0, 255).astype(np.uint8)
    both = np.concatenate([in_lanes(halves_of(levels >> 4)), in_lanes(halves_of(levels & 15))], axis=1)
    writer.array("list_centres", np.uint8, both.shape[1:], [both])
    writer.array("list_half_squares", np.float32, (), [half_squares(centres) / np.float32(step)])
    writer.array("list_start", np.int64, (), [starts])
    parts = [slots[at : at + CHUNK] for at in range(0, len(slots), CHUNK)]
    writer.array("list_codes", np.uint8, (units, LANES, 4), (in_lanes(rows[part]) for part in parts))
    writer.array("list_factors", np.uint16, (LANES,), (factor[part].reshape(-1, LANES) for part in parts))
    item = np.append(np.repeat(np.arange(len(offsets) - 1, dtype=np.int32), np.diff(offsets)), np.int32(-1))
    writer.array("list_items", np.int32, (), (item[part] for part in parts))
    recall = measure_recall(stored, item[:-1], centres, nearest)
    writer.array("list_recall", np.float32, (len(PROBES),), [recall])


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


# lists read, as they are tried; fewer than eight take as long
PROBES = np.array([n for i in range(3, 13) for n in (2**i, 2**i + 2**i // 2)])
DEPTHS = np.array([10, 20, 50, 100, 200, 500, 1000])  # k
TRIED = 100  # elements that serve as queries


def measure_recall(
    stored: NDArray[Any], items: NDArray[np.int32], centres: Floats, lists: NDArray[np.int64]
) -> Floats:
    """Return the share of the best items that some lists hold, for `DEPTHS` and `PROBES`.

    Elements spread over all items are the queries, one at a time; what is best is told by the products with
    all elements, the query's own item left out. ``items`` and ``lists`` say where each element is.
    """
    if not len(stored):
        return np.ones((len(DEPTHS), len(PROBES)), np.float32)
    asked = np.linspace(0, len(stored) - 1, min(TRIED, len(stored))).astype(np.int64)
    queries = stored[asked].astype(np.float32)
    order = np.argsort(half_squares(centres) - queries @ centres.T, axis=1, kind="stable")
    place = np.empty_like(order)  # of each list, for each query: how many are nearer
    np.put_along_axis(place, order, np.arange(len(centres))[None], axis=1)
    best = np.full((len(asked), 0), 0, np.float32)
    needed = np.empty((len(asked), 0), np.int64)
    for at in range(0, len(stored), CHUNK * 4):
        part = slice(at, at + CHUNK * 4)
        first = np.flatnonzero(np.diff(items[part], prepend=-1))
        products = queries @ stored[part].astype(np.float32).T
        products[items[part] == items[asked][:, None]] = -np.inf
        best = np.hstack([best, np.maximum.reduceat(products, first, axis=1)])
        needed = np.hstack([needed, np.minimum.reduceat(place[:, lists[part]], first, axis=1)])
        if best.shape[1] > DEPTHS[-1]:
            kept = np.argpartition(-best, DEPTHS[-1] - 1, axis=1)[:, : DEPTHS[-1]]
            best, needed = np.take_along_axis(best, kept, 1), np.take_along_axis(needed, kept, 1)
    needed = np.take_along_axis(needed, np.argsort(-best, axis=1, kind="stable"), 1)
    return np.array([[(needed[:, :k] < n).mean() for n in PROBES] for k in DEPTHS], np.float32)
