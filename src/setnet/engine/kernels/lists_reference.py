"""Reading inverted lists in plain NumPy: what the kernel `search_lists` computes, by the simplest means."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels.lanes import LANES

MATCHES = 16384  # elements that match a row, at most


def search_lists(
    units: int, centres: NDArray[np.uint8], half_squares: NDArray[np.float32], start: NDArray[np.int64],
    codes: NDArray[np.uint8], factors: NDArray[np.uint16], items: NDArray[np.int32],
    offsets: NDArray[np.int64], rows: NDArray[np.uint8], row_factors: NDArray[np.uint16],
    is_open: NDArray[np.bool_], query: NDArray[np.int8], middle: NDArray[np.int32],
    step: NDArray[np.float32], least: NDArray[np.float32], first_row: NDArray[np.int64], combine: int,
    shift: NDArray[np.float32], w: float, threshold: float, probes: int, wanted: int, candidates: int,
    found: NDArray[np.int64], scores: NDArray[np.float32], read: NDArray[np.int64],
) -> int:  # fmt: skip
    """Write the items with the best estimates among those that the lists near a query hold; return how many.

    Of each row of the query the ``probes`` nearest lists are read, and the ``wanted`` elements taken that are
    most similar to it, with all that reach ``least``. All elements of their items are then compared with all
    rows. ``is_open`` says which items may be found; without entries all may. ``read`` become the elements
    read in lists and the items whose elements were compared.
    """
    even, odd = query[:, 0].astype(np.int64), query[:, 1].astype(np.int64)
    halves = centres.reshape(-1, 2, units, LANES, 4).transpose(1, 0, 3, 2, 4)
    blocks = halves.reshape(2, len(half_squares), units * 4)
    sums = 2 * (16 * _sums(blocks[0], even, odd) + _sums(blocks[1], even, odd))
    per_step = np.float32(1) / step
    away = sums - (half_squares[:, None] * per_step).astype(np.int32)
    number = np.arange(len(half_squares))
    candidates_of: list[NDArray[np.int64]] = []
    read[:] = 0
    for p in range(len(step)):
        near = np.lexsort((number, -away[:, p].astype(np.float32)))[:probes]
        some = np.concatenate([np.arange(start[c], start[c + 1]) for c in near])
        read[0] += len(some) * LANES
        slots = codes.reshape(-1, units, LANES, 4)[some].swapaxes(1, 2).reshape(len(some) * LANES, units * 4)
        similarity = _similarities(slots, factors.reshape(-1, LANES)[some].reshape(-1), query, middle, p)
        item = items.reshape(-1, LANES)[some].reshape(-1).astype(np.int64)
        usable = item >= 0
        if len(is_open):
            usable &= is_open[item].astype(bool)
        item, similarity = item[usable], similarity[usable]
        order = np.lexsort((item, -similarity))
        most = max(wanted, min(wanted + MATCHES, int((similarity >= least[p]).sum())))
        candidates_of.append(item[order[:most]])
    chosen = np.unique(np.concatenate(candidates_of))
    read[1] = len(chosen)
    best = np.empty((len(chosen), len(step)), np.float32)
    for i, item in enumerate(chosen.tolist()):
        own = slice(offsets[item], offsets[item + 1])
        for p in range(len(step)):
            best[i, p] = (_similarities(rows[own], row_factors[own], query, middle, p) * step[p]).max()
    estimates = np.zeros(len(chosen), np.float32)
    for element, (a, z) in enumerate(pairwise(first_row.tolist())):
        if combine == 1:
            estimates += _share(w, best[:, a:z] + shift[element], threshold).mean(axis=1)
        else:
            estimates += _share(w, best[:, a:z].max(axis=1) + shift[element], threshold)
    order = np.lexsort((chosen, -estimates))[:candidates]
    found[: len(order)], scores[: len(order)] = chosen[order], estimates[order]
    return len(order)


def _sums(codes: NDArray[np.uint8], even: NDArray[np.int64], odd: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sums of products of rows of codes with rows of a query."""
    return (codes & 15).astype(np.int64) @ even.T + (codes >> 4).astype(np.int64) @ odd.T


def _similarities(
    codes: NDArray[np.uint8],
    factors: NDArray[np.uint16],
    query: NDArray[np.int8],
    middle: NDArray[np.int32],
    p: int,
) -> NDArray[np.float32]:
    """Return similarities to a row of the query, in units of its step."""
    sums = _sums(codes, query[p : p + 1, 0].astype(np.int64), query[p : p + 1, 1].astype(np.int64))[:, 0]
    scale = (factors.astype(np.uint32) << 16).view(np.float32)
    return np.asarray((2 * sums - middle[p]).astype(np.float32) * scale, np.float32)


def _share(w: float, similarity: NDArray[Any], threshold: float) -> NDArray[Any]:
    """Return probabilities, or without a steepness what is positive of similarities."""
    if not w:
        return np.asarray(np.maximum(similarity, 0))
    return np.asarray(1.0 / (1.0 + np.exp(-w * (similarity - threshold))), np.float32)
