"""Reading inverted lists: the rows whose elements lie near a query's, with estimates of their scores."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels import backend
from setnet.engine.kernels.lanes import LANES
from setnet.engine.lists import half_squares
from setnet.engine.query import Query
from setnet.engine.scan import Allowed, CodedQueries, collect, reached_by
from setnet.engine.segment import Segment
from setnet.engine.snapshot import Snapshot

PROBES = 256  # lists read for each row of a query, unless the options say another number
MORE = 4  # elements taken from the lists for each candidate wanted

Floats = NDArray[np.float32]
Found = tuple[NDArray[np.int64], Floats]  # rows and their estimated scores


def probed_rows(
    snapshot: Snapshot, allowed: Allowed, query: Query, wanted: int
) -> list[tuple[int, NDArray[np.int64], Floats]]:
    """Return the ``wanted`` most promising rows by segment, with their estimates; more where these tie."""
    found = [_candidates(snapshot, allowed, s, query, wanted) for s in range(len(snapshot.segments))]
    scores = np.concatenate([scores for _, scores in found])
    low = np.partition(scores, len(scores) - wanted)[len(scores) - wanted] if len(scores) > wanted else -1.0
    best = ((s, rows, scores, scores >= low) for s, (rows, scores) in enumerate(found))
    return [(s, rows[keep], scores[keep]) for s, rows, scores, keep in best if keep.any()]


def _candidates(snapshot: Snapshot, allowed: Allowed, s: int, query: Query, wanted: int) -> Found:
    """Return the most promising rows of a segment that are neither deleted nor closed by conditions."""
    segment, dead = snapshot.segments[s], snapshot.dead[s]
    if segment.listed:
        rows, scores = _from_lists(snapshot, segment, query, wanted)
    elif segment.coded:
        rows, scores = _from_all(snapshot, segment, query, wanted)
    else:
        rows = np.flatnonzero(segment.counts)
        scores = np.full(len(rows), query.size + 1.0, np.float32)
    keep = np.ones(len(rows), bool) if dead is None else ~dead[rows]
    if allowed is not None:
        keep &= allowed[s][rows]
    return rows[keep], scores[keep]


def _from_all(snapshot: Snapshot, segment: Segment, query: Query, wanted: int) -> Found:
    """Return the best rows by the estimates of all elements."""
    lane_rows = segment.lane_rows
    bounds = np.empty((1, len(lane_rows)), np.float32)
    blocks = np.arange(len(lane_rows) // LANES)
    stored = CodedQueries(snapshot, [query], "bits").arguments(segment)
    backend.kernels.scan(*stored, blocks, bounds, 0, bounds.shape[1])
    bounds[:, lane_rows < 0] = -1.0
    lanes = collect(bounds[0], reached_by(bounds[0], wanted))
    return lane_rows[lanes].astype(np.int64), bounds[0, lanes]


def _from_lists(snapshot: Snapshot, segment: Segment, query: Query, wanted: int) -> Found:
    """Return the rows of the most similar elements in the lists near each query row."""
    centres = segment.array("list_centres")
    # elements lie in the list of the nearest centre, so the nearest are probed: centres differ in length
    likeness = query.wanted.astype(np.float32) @ centres.T - half_squares(centres)
    probes = min(query.probes or PROBES, likeness.shape[1])
    near = np.unique(np.argpartition(-likeness, probes - 1, axis=1)[:, :probes])
    starts = segment.array("list_start")
    blocks = np.concatenate([np.arange(a, z) for a, z in zip(starts[near], starts[near + 1], strict=True)])
    shares = read_lists(snapshot, segment, query, blocks)
    best = [collect(row, reached_by(row, MORE * wanted)) for row in shares]
    slot, row = np.concatenate(best), np.repeat(np.arange(len(best)), [len(found) for found in best])
    lanes = segment.array("list_lanes").reshape(-1, LANES)[blocks[slot // LANES], slot % LANES]
    used = lanes >= 0  # the last block of a list may have gaps
    slot, row, lanes = slot[used], row[used], lanes[used]
    rows, place = np.unique(segment.lane_rows[lanes], return_inverse=True)
    most = np.zeros((len(shares), len(rows)), np.float32)
    np.maximum.at(most, (row, place), shares[row, slot])
    return rows.astype(np.int64), most.sum(axis=0)


def read_lists(snapshot: Snapshot, segment: Segment, query: Query, blocks: NDArray[np.int64]) -> Floats:
    """Return what the elements in some blocks of the lists add to a score, one row for each row of the query.

    Which row of the query an element serves is known only per item.
    """
    *stored, _ = CodedQueries(snapshot, [query], "lists").arguments(segment)
    shares = np.empty((len(query.wanted), len(blocks) * LANES), np.float32)
    backend.kernels.scan(*stored, np.arange(len(shares)), blocks, shares, 0, shares.shape[1], True)
    return shares
