"""Answering a query: exact, by set vectors, or by set vectors and re-ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from setnet.index.search import scan
from setnet.index.search.query import EXAMPLES, Query
from setnet.index.search.ranking import Scored, Top, score_elements, score_sets
from setnet.index.storage.snapshot import Field, Snapshot

__all__ = ["Allowed", "Conditions", "Rows", "best_of", "exact", "fast", "rerank", "set_only"]

FEW = 50  # when conditions leave less than one item in FEW, the first pass is not worth its time
TOGETHER = 16  # queries that pass over the vectors together, at most
BOUNDS = 64 * 1024 * 1024  # bytes of their bounds, at most
AT_ONCE = 65536  # items whose scores are held at once
NO_LANES = np.empty(0, np.int64)

Allowed = list[NDArray[np.bool_]] | None
Rows = list[tuple[int, NDArray[np.int64]]]


@dataclass(frozen=True, slots=True)
class Conditions:
    """What an item must satisfy besides its score."""

    allowed: Allowed = None
    at_least: int = 0
    only: bool = False
    matching: str = "greedy"

    def least_score(self, query: Query) -> float:
        """Return the lowest score that ``at_least`` matches can have: one half each."""
        mean = query.combine == EXAMPLES.index("mean")
        return -1.0 if mean or not self.at_least else 0.5 * self.at_least * (1 - 1e-9)


def exact(
    snapshot: Snapshot, queries: list[Query], k: int, conditions: Conditions, threads: int | None
) -> list[Scored]:
    """Rank all items by the matching of their elements; identical to scoring every one of them."""

    def second_look(query: Query, rows: Rows) -> Scored:
        scored = score_elements(snapshot, rows, query, conditions.matching)
        return scored.those(scored.passing(conditions.at_least, conditions.only))

    def first_look(group: list[Query]) -> scan.ElementScan:
        return scan.ElementScan(snapshot, group, threads)

    least = [conditions.least_score(q) for q in queries]
    return _ranked(snapshot.elements, queries, k, conditions.allowed, first_look, second_look, least)


def set_only(
    snapshot: Snapshot,
    queries: list[Query],
    k: int,
    conditions: Conditions,
    threads: int | None,
    elements: list[Query] | None = None,
) -> list[Scored]:
    """Rank all items by their set vectors; ``elements`` are the same queries for conditions on elements."""
    plain = not (conditions.at_least or conditions.only or any(q.without for q in elements or []))
    of_elements = dict(zip(map(id, queries), elements or [], strict=False))

    def second_look(query: Query, rows: Rows) -> Scored:
        scored = score_sets(snapshot, rows, query)
        if plain:
            return scored
        judged = score_elements(snapshot, rows, of_elements[id(query)])
        return scored.those(judged.passing(conditions.at_least, conditions.only))

    def first_look(group: list[Query]) -> scan.SetScan:
        return scan.SetScan(snapshot, group, threads)

    return _ranked(
        snapshot.sets, queries, k, conditions.allowed, first_look, second_look, [-1.0] * len(queries)
    )


def fast(
    snapshot: Snapshot,
    set_queries: list[Query],
    queries: list[Query],
    k: int,
    candidates: int,
    conditions: Conditions,
    threads: int | None,
) -> list[Scored]:
    """Rank by set vectors, then re-rank the first ``candidates`` by their elements (paper 5.3)."""
    first = set_only(snapshot, set_queries, max(k, candidates), Conditions(conditions.allowed), threads)
    return [
        rerank(snapshot, found, query, k, conditions) for found, query in zip(first, queries, strict=True)
    ]


def rerank(snapshot: Snapshot, found: Scored, query: Query, k: int, conditions: Conditions) -> Scored:
    """Return the best k of the items found, by the matching of their elements."""
    order = np.argsort(found.segment, kind="stable")
    return best_of(snapshot, _grouped(found.segment[order], found.row[order]), query, k, conditions)


def best_of(snapshot: Snapshot, rows: Rows, query: Query, k: int, conditions: Conditions) -> Scored:
    """Return the best k of some rows, by the matching of their elements."""
    scored = score_elements(snapshot, rows, query, conditions.matching)
    return scored.those(scored.passing(conditions.at_least, conditions.only)).ranked(k)


def _grouped(segment: NDArray[np.int64], row: NDArray[np.int64]) -> Rows:
    """Return rows by segment, from parallel arrays sorted by segment."""
    cuts = [0, *(np.flatnonzero(segment[1:] != segment[:-1]) + 1).tolist(), len(segment)]
    return [(int(segment[a]), row[a:z]) for a, z in pairwise(cuts) if a < z]


def _some(k: int) -> int:
    """Return how many items to score first when k are wanted: a few more, since bounds are not scores."""
    return k + k // 2 + 64


def _ranked(
    field: Field,
    queries: list[Query],
    k: int,
    allowed: Allowed,
    first_look: Callable[[list[Query]], scan.ElementScan | scan.SetScan],
    second_look: Callable[[Query, Rows], Scored],
    least: list[float],
) -> list[Scored]:
    """Bound every lane, then score lanes best first until the rest cannot enter the top k."""
    tops = [Top(k, floor) for floor in least]
    lanes = _open_lanes(field, allowed) if allowed is not None else None
    if k == 0 or (lanes is not None and len(lanes) * FEW <= field.lanes) or 2 * k >= field.lanes:
        lanes = _open_lanes(field, allowed) if lanes is None and k else lanes
        for top, query in zip(tops, queries, strict=True):
            for batch in _batches(lanes if k and lanes is not None else NO_LANES):
                top.add(second_look(query, _rows(field, batch)))
        return [top.best_found() for top in tops]
    together = max(1, min(TOGETHER, BOUNDS // (4 * field.lanes)))
    for at in range(0, len(queries), together):
        group = queries[at : at + together]
        look = first_look(group)
        for i, (query, top) in enumerate(zip(group, tops[at : at + together], strict=True)):
            if lanes is not None:
                closed = np.ones(field.lanes, bool)
                closed[lanes] = False
                look.bounds[i][closed] = -1.0
            for found in scan.best_first(look, i, _some(k), top.floor):
                for batch in _batches(found):
                    top.add(second_look(query, _rows(field, batch)))
            if top.best is None:
                top.add(second_look(query, []))
    return [top.best_found() for top in tops]


def _batches(lanes: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Cut lanes into runs whose scores take little memory; at least one, though it be empty."""
    for at in range(0, max(1, len(lanes)), AT_ONCE):
        yield lanes[at : at + AT_ONCE]


def _open_lanes(field: Field, allowed: Allowed) -> NDArray[np.int64]:
    """Return the lanes of living items that the conditions on attributes, if any, leave open."""
    is_open = np.ones(field.lanes, bool)
    for s, (rows, mask) in enumerate(zip(field.lane_rows, allowed or [], strict=False)):
        is_open[field.start[s] : field.start[s + 1]] = mask[rows] if len(mask) else False
    is_open[field.excluded] = False
    return np.flatnonzero(is_open)


def _rows(field: Field, lanes: NDArray[np.int64]) -> Rows:
    return [(s, rows) for s, rows, _ in field.split(lanes)]
