"""The first pass of a fast search by itself, for those who re-rank the candidates of several indexes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.index.search.modes import looks_at_all, open_lanes
from setnet.index.search.passes import Estimates
from setnet.index.search.probing import probed_rows
from setnet.index.search.query import Query
from setnet.index.search.ranking import Rows
from setnet.index.search.scan import ElementScan
from setnet.index.search.scope import Scope
from setnet.index.storage.snapshot import Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """Items that a fast search may re-rank.

    Attributes
    ----------
    items, estimates
        The most promising items, by their numbers in the order of insertion, and their estimated scores, in
        no fixed order.
    sure
        Items with a pair that is known to match, which are re-ranked whatever they are estimated at.
    count, open_count
        How many items there are, and how many of them satisfy the conditions on attributes.
    least
        The score that a hit needs, below 0 if none.
    probed
        Whether inverted lists were read, so that candidates may be missing.
    """

    items: NDArray[np.int64]
    estimates: NDArray[np.float32]
    sure: NDArray[np.int64]
    count: int
    open_count: int
    least: float
    probed: bool

    @staticmethod
    def are_all_scored(parts: Sequence[Candidates], k: int) -> bool:
        """Return whether one index of all these items would score every item, without candidates."""
        count, open_count = sum(part.count for part in parts), sum(part.open_count for part in parts)
        probed = any(part.probed for part in parts)
        return not probed and looks_at_all(k, count, open_count, max(part.least for part in parts))


def candidates(scope: Scope, query: Query) -> Candidates:
    """Return what the first pass of ``fast`` finds for a query by codes of one bit."""
    snapshot, options = scope.snapshot, scope.options
    field, wanted = snapshot.elements, max(options.k, options.candidates)
    is_open = open_lanes(field, scope.allowed)
    sure = np.intersect1d(field.lanes_of(scope.sure_rows()), is_open, assume_unique=True)
    listed = options.probes != 0 and any(segment.listed for segment in snapshot.segments)
    rows: Rows = []
    estimates: list[NDArray[np.float32]] = [np.empty(0, np.float32)]
    if listed:
        for s, some, scores in probed_rows(scope, query, wanted):
            rows.append((s, some))
            estimates.append(scores)
    elif field.lanes:
        look = ElementScan(snapshot, [query], options.threads)
        look.read(Estimates)
        bounds = look.bounds[0]
        closed = np.ones(field.lanes, bool)
        closed[np.setdiff1d(is_open, sure, assume_unique=True)] = False
        bounds[closed] = -1.0
        for s, some, lanes in field.split(look.best(0, wanted)):
            rows.append((s, some))
            estimates.append(bounds[lanes])
    return Candidates(
        _numbers(snapshot, rows),
        np.concatenate(estimates),
        _numbers(snapshot, [(s, some) for s, some, _ in field.split(sure)]),
        field.items,
        len(is_open),
        query.least_score(options.at_least),
        listed,
    )


def _numbers(snapshot: Snapshot, rows: Rows) -> NDArray[np.int64]:
    return np.concatenate([np.empty(0, np.int64), *(snapshot.segments[s].seq[some] for s, some in rows)])
