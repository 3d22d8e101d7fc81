"""Nearest neighbours of all faces, by which they are grouped."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels.backend import threads
from setnet.engine.lists import centres_of, nearest_centres
from setnet.system import usable_cores

SAMPLE = 32  # vectors for each cell that the centres are made from

Floats = NDArray[np.float32]


def cells_of(vectors: Floats, count: int) -> tuple[list[NDArray[np.int64]], Floats]:
    """Return the rows of each of ``count`` cells, in ascending order, and the cells' centres."""
    step = max(1, len(vectors) // (SAMPLE * count))
    centres = centres_of(vectors[::step].copy(), min(count, len(vectors)))
    cell = nearest_centres(vectors, centres)
    ends = np.cumsum(np.bincount(cell, minlength=len(centres)))
    return np.split(np.argsort(cell, kind="stable"), ends[:-1]), centres


EXACT = 300_000  # vectors up to which all are compared with all
CELL = 400  # vectors in a cell, on average
MOST_CELLS = 4096
PROBES = 160  # cells looked into for each cell, its own among them
ROWS = 512  # vectors compared with others at once
COLUMNS = 1 << 15  # others
CROWDED = 16  # times k above the floor in a row, on average: then the largest are picked before the rest

OnProgress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """Who is near each of some vectors, most similar first.

    The neighbours of row i are ``other[start[i] : start[i + 1]]``, with these similarities.
    """

    start: NDArray[np.int64]
    other: NDArray[np.int32]
    similarity: Floats

    def __len__(self) -> int:
        return len(self.start) - 1

    @property
    def row(self) -> NDArray[np.int64]:
        """The row of each entry of ``other``."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))


def nearest_neighbours(
    vectors: Floats,
    k: int,
    floor: float,
    *,
    rows: NDArray[np.int64] | None = None,
    exact: int = EXACT,
    probes: int = PROBES,
    progress: OnProgress | None = None,
) -> Neighbours:
    """Return the k most similar others of each vector, as far as their dot product reaches ``floor``.

    Parameters
    ----------
    vectors
        (n, dim) float32.
    rows
        Only the neighbours of these are wanted; they are compared with all vectors.
    exact
        Up to so many vectors all are compared with all; more are divided into cells.
    probes
        How many cells are looked into for each cell.
    progress
        Called with how many vectors are done, and how many there are.
    """
    wanted = np.arange(len(vectors)) if rows is None else rows
    parts: Iterator[_Part]
    if rows is not None or len(vectors) <= exact:
        parts = ((wanted[at : at + ROWS], None) for at in range(0, len(wanted), ROWS))
    else:
        parts = _cells(vectors, probes)
    found: list[_Found] = []
    done = 0
    for some in _in_threads(vectors, parts, k, floor):
        found.append(some)
        done += len(some.rows)
        if progress is not None:
            progress(done, len(wanted))
    place = np.empty(len(vectors), np.int64)
    place[wanted] = np.arange(len(wanted))
    return _collected(found, place, len(wanted))


_Part = tuple[NDArray[np.int64], NDArray[np.int64] | None]  # rows, and the others they are compared with


@dataclass(frozen=True, slots=True, eq=False)
class _Found:
    """The neighbours of some rows, one row after another."""

    rows: NDArray[np.int64]
    counts: NDArray[np.int64]
    other: NDArray[np.int32]
    similarity: Floats


def _cells(vectors: Floats, probes: int) -> Iterator[_Part]:
    """Yield the vectors of each cell, with those of the cells nearest to it."""
    members, centres = cells_of(vectors, min(MOST_CELLS, max(1, len(vectors) // CELL)))
    count = len(centres)
    apart = -2 * (centres @ centres.T) + np.einsum("cd,cd->c", centres, centres)
    for own, away in zip(members, apart, strict=True):
        near = np.sort(np.argpartition(away, min(probes, count) - 1)[:probes])
        others = np.sort(np.concatenate([members[c] for c in near]))
        for at in range(0, len(own), ROWS):
            yield own[at : at + ROWS], others


def _in_threads(vectors: Floats, parts: Iterator[_Part], k: int, floor: float) -> Iterator[_Found]:
    """Yield what is found for each part, in order, a few of them under way at a time."""
    pool, under_way = threads("neighbours"), deque[Future[_Found]]()
    try:
        for part in parts:
            under_way.append(pool.submit(_nearest_of, vectors, part, k, floor))
            if len(under_way) > 2 * usable_cores():
                yield under_way.popleft().result()
        while under_way:
            yield under_way.popleft().result()
    finally:
        for future in under_way:
            future.cancel()


def _nearest_of(vectors: Floats, part: _Part, k: int, floor: float) -> _Found:
    rows, others = part
    mine = vectors[rows]
    total = len(vectors) if others is None else len(others)
    row, other, similarity = [], [], []
    for at in range(0, total, COLUMNS):
        some = np.arange(at, min(at + COLUMNS, total)) if others is None else others[at : at + COLUMNS]
        r, c, s = _above(mine @ vectors[some].T, rows, some, k, floor)
        row.append(r)
        other.append(some[c])
        similarity.append(s)
    return _best(rows, np.concatenate(row), np.concatenate(other), np.concatenate(similarity), k)


def _above(
    table: Floats, rows: NDArray[np.int64], others: NDArray[np.int64], k: int, floor: float
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return row, column and value of what reaches the floor; of crowded rows only enough of the largest."""
    near = table >= np.float32(floor)
    if np.count_nonzero(near) > CROWDED * k * len(table):
        largest = np.argpartition(-table, k, axis=1)[:, : k + 1]  # one may be the row itself
        kept = np.zeros_like(near)
        np.put_along_axis(kept, largest, True, axis=1)
        near &= kept
    r, c = np.divmod(np.flatnonzero(near), near.shape[1])  # several times as fast as `nonzero` of a table
    apart = rows[r] != others[c]
    r, c = r[apart], c[apart]
    return r, c, table[r, c]


def _best(
    rows: NDArray[np.int64], row: NDArray[np.int64], other: NDArray[np.int64], similarity: Floats, k: int
) -> _Found:
    """Return the k most similar others of each row; of equals the first ones, as they are given in order."""
    order = np.argsort((row << 32) - _ranked(similarity), kind="stable")  # a fifth of the time of `lexsort`
    counts = np.bincount(row, minlength=len(rows))
    rank = np.arange(len(order)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = order[rank < k]
    return _Found(rows, np.minimum(counts, k), other[kept].astype(np.int32), similarity[kept])


def _ranked(numbers: Floats) -> NDArray[np.int64]:
    """Return integers of 32 bits that are in the same order as these numbers.

    >>> _ranked(np.array([-2.0, -1.0, 0.0, 0.5], np.float32)).argsort().tolist()
    [0, 1, 2, 3]
    """
    bits = numbers.view(np.int32).astype(np.int64)
    return np.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def _collected(found: list[_Found], place: NDArray[np.int64], n: int) -> Neighbours:
    """Return all neighbours in the order of rows; what was found is given up on the way."""
    counts = np.zeros(n, np.int64)
    for some in found:
        counts[place[some.rows]] = some.counts
    start = np.concatenate([[0], np.cumsum(counts)])
    other, similarity = np.empty(start[-1], np.int32), np.empty(start[-1], np.float32)
    found.reverse()
    while found:
        some = found.pop()
        ends = np.cumsum(some.counts)
        first = start[place[some.rows]] - (ends - some.counts)
        at = np.arange(len(some.other)) + np.repeat(first, some.counts)
        other[at], similarity[at] = some.other, some.similarity
    return Neighbours(start, other, similarity)
