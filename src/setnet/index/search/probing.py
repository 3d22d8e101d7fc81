"""Fast search through inverted lists: of a large segment only the lists near the query elements are read."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels import backend
from setnet.index.kernels.lanes import LANES
from setnet.index.search.passes import Estimates, Listed
from setnet.index.search.query import Query
from setnet.index.search.ranking import Rows, Scored
from setnet.index.search.scan import collect, reached_by
from setnet.index.search.scope import Scope
from setnet.index.storage.segments.segment import Segment

PROBES = 256  # lists read for each row of a query, unless the options say another number
MORE = 4  # elements taken from the lists for each candidate wanted

Floats = NDArray[np.float32]
Found = tuple[NDArray[np.int64], Floats]  # rows and their estimated scores


def probed(scope: Scope, query: Query) -> Scored:
    """Rank the rows that the lists near the query elements hold, by estimates and then by their elements."""
    wanted = max(scope.options.k, scope.options.candidates)
    rows: Rows = [(s, np.sort(rows)) for s, rows, _ in probed_rows(scope, query, wanted)]
    return scope.best_of(_with_sure(scope, rows), query)


def probed_rows(
    scope: Scope, query: Query, wanted: int
) -> list[tuple[int, NDArray[np.int64], NDArray[np.float32]]]:
    """Return the ``wanted`` most promising rows by segment, with their estimates; more where these tie."""
    found = [_candidates(scope, s, query, wanted) for s in range(len(scope.snapshot.segments))]
    scores = np.concatenate([scores for _, scores in found])
    low = np.partition(scores, len(scores) - wanted)[len(scores) - wanted] if len(scores) > wanted else -1.0
    best = ((s, rows, scores, scores >= low) for s, (rows, scores) in enumerate(found))
    return [(s, rows[keep], scores[keep]) for s, rows, scores, keep in best if keep.any()]


def _with_sure(scope: Scope, rows: Rows) -> Rows:
    """Return the rows and those of pairs that are known to match, wherever these lie."""
    both = dict(rows)
    for s, sure in scope.sure_rows():
        more = sure if scope.allowed is None else sure[scope.allowed[s][sure]]
        both[s] = np.union1d(both.get(s, more), more)
    return sorted(both.items(), key=lambda part: part[0])


def _candidates(scope: Scope, s: int, query: Query, wanted: int) -> Found:
    """Return the most promising rows of a segment that are neither deleted nor closed by conditions."""
    segment, dead = scope.snapshot.segments[s], scope.snapshot.dead[s]
    if segment.listed:
        rows, scores = _from_lists(scope, segment, query, wanted)
    elif segment.bit_coded:
        rows, scores = _from_all(scope, segment, query, wanted)
    else:
        rows = np.flatnonzero(segment.counts)
        scores = np.full(len(rows), query.size + 1.0, np.float32)
    keep = np.ones(len(rows), bool) if dead is None else ~dead[rows]
    if scope.allowed is not None:
        keep &= scope.allowed[s][rows]
    return rows[keep], scores[keep]


def _from_all(scope: Scope, segment: Segment, query: Query, wanted: int) -> Found:
    """Return the best rows by the estimates of all elements."""
    lane_rows = segment.lane_rows
    bounds = np.empty((1, len(lane_rows)), np.float32)
    blocks = np.arange(len(lane_rows) // LANES)
    stored = Estimates(scope.snapshot, [query]).arguments(segment)
    backend.kernels.scan(*stored, blocks, bounds, 0, bounds.shape[1])
    bounds[:, lane_rows < 0] = -1.0
    lanes = collect(bounds[0], reached_by(bounds[0], wanted))
    return lane_rows[lanes].astype(np.int64), bounds[0, lanes]


def _from_lists(scope: Scope, segment: Segment, query: Query, wanted: int) -> Found:
    """Return the rows of the most similar elements in the lists near each query row."""
    likeness = query.wanted.astype(np.float32) @ segment.array("list_centres").T
    probes = min(scope.options.probes or PROBES, likeness.shape[1])
    near = np.unique(np.argpartition(-likeness, probes - 1, axis=1)[:, :probes])
    starts = segment.array("list_start")
    blocks = np.concatenate([np.arange(a, z) for a, z in zip(starts[near], starts[near + 1], strict=True)])
    listed = Listed(scope.snapshot, [query])
    # one row of shares for each row of the query: which of them an element serves is known only per item
    shares = np.empty((len(query.wanted), len(blocks) * LANES), np.float32)
    listed.read(segment, blocks, shares)
    best = [collect(row, reached_by(row, MORE * wanted)) for row in shares]
    slot, row = np.concatenate(best), np.repeat(np.arange(len(best)), [len(found) for found in best])
    lanes = segment.array("list_lanes").reshape(-1, LANES)[blocks[slot // LANES], slot % LANES]
    used = lanes >= 0  # the last block of a list may have gaps
    slot, row, lanes = slot[used], row[used], lanes[used]
    rows, place = np.unique(segment.lane_rows[lanes], return_inverse=True)
    most = np.zeros((len(shares), len(rows)), np.float32)
    np.maximum.at(most, (row, place), shares[row, slot])
    return rows.astype(np.int64), most.sum(axis=0)
