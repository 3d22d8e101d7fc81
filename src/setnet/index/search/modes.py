"""Answering queries: exact, by set vectors, or by set vectors and re-ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from setnet.index.search import scan
from setnet.index.search.query import Query
from setnet.index.search.ranking import Rows, Scored, Top, score_elements, score_sets
from setnet.index.search.scope import Allowed, Scope
from setnet.index.storage.snapshot import Field

FEW = 50  # when conditions leave less than one item in FEW, the first pass is not worth its time
TOGETHER = 16  # queries that pass over the vectors together, at most
BOUNDS = 64 * 1024 * 1024  # bytes of their bounds, at most
AT_ONCE = 65536  # items whose scores are held at once


def exact(scope: Scope, queries: list[Query]) -> list[Scored]:
    """Rank all items by the matching of their elements; identical to scoring every one of them."""

    def second_look(i: int, rows: Rows) -> Scored:
        return scope.score(rows, queries[i])

    least = [scope.least_score(query) for query in queries]
    return _ranked(scope, scope.snapshot.elements, queries, scan.ElementScan, second_look, least)


def set_only(scope: Scope, set_queries: list[Query], queries: Sequence[Query] = ()) -> list[Scored]:
    """Rank all items by their set vectors; ``queries`` are the same ones for conditions on elements."""
    options = scope.options
    plain = not (options.of_elements or any(query.without for query in queries))

    def second_look(i: int, rows: Rows) -> Scored:
        scored = score_sets(scope.snapshot, rows, set_queries[i])
        if plain:
            return scored
        by_elements = score_elements(scope.snapshot, rows, queries[i])
        return scored.those(by_elements.passing(options.at_least, options.only))

    least = [-1.0] * len(set_queries)
    return _ranked(scope, scope.snapshot.sets, set_queries, scan.SetScan, second_look, least)


def fast(scope: Scope, set_queries: list[Query], queries: list[Query]) -> list[Scored]:
    """Rank by set vectors, then re-rank the first ``candidates`` by their elements (paper 5.3)."""
    most = max(scope.options.k, scope.options.candidates)
    coarse = replace(scope.options, k=most, at_least=0, only=False)
    first = set_only(replace(scope, options=coarse), set_queries)
    return [rerank(scope, found, query) for found, query in zip(first, queries, strict=True)]


def rerank(scope: Scope, found: Scored, query: Query) -> Scored:
    """Return the best k of the items found, by the matching of their elements."""
    order = np.argsort(found.segment, kind="stable")
    return scope.best_of(_grouped(found.segment[order], found.row[order]), query)


def _grouped(segment: NDArray[np.int64], row: NDArray[np.int64]) -> Rows:
    """Return rows by segment, from parallel arrays sorted by segment."""
    cuts = [0, *(np.flatnonzero(segment[1:] != segment[:-1]) + 1).tolist(), len(segment)]
    return [(int(segment[a]), row[a:z]) for a, z in pairwise(cuts) if a < z]


def _some(k: int) -> int:
    """Return how many items to score first when k are wanted: a few more, since bounds are not scores."""
    return k + k // 2 + 64


def _ranked(
    scope: Scope,
    field: Field,
    queries: list[Query],
    kind: type[scan.ElementScan] | type[scan.SetScan],
    second_look: Callable[[int, Rows], Scored],
    least: list[float],
) -> list[Scored]:
    """Bound every lane, then score lanes best first until the rest cannot enter the top k.

    ``second_look`` scores rows for the query at a position; ``least`` is the score each query's hits need.
    """
    k, allowed, threads = scope.options.k, scope.allowed, scope.options.threads
    tops = [Top(k, floor, second_look(i, [])) for i, floor in enumerate(least)]

    def offer(i: int, lanes: NDArray[np.int64]) -> None:
        for at in range(0, len(lanes), AT_ONCE):
            rows = [(s, rows) for s, rows, _ in field.split(lanes[at : at + AT_ONCE])]
            tops[i].add(second_look(i, rows))

    if k == 0 or not field.lanes:
        return [top.best for top in tops]
    lanes = _open_lanes(field, allowed) if allowed is not None else None
    all_enter = 2 * k >= field.lanes and max(least) <= 0  # where a score is needed, bounds rule most out
    if (lanes is not None and len(lanes) * FEW <= field.lanes) or all_enter:
        for i in range(len(queries)):
            offer(i, _open_lanes(field, None) if lanes is None else lanes)
    else:
        together = max(1, min(TOGETHER, BOUNDS // (4 * field.lanes)))
        for at in range(0, len(queries), together):
            look = kind(scope.snapshot, queries[at : at + together], threads)
            for i, top in enumerate(tops[at : at + together]):
                if lanes is not None:
                    closed = np.ones(field.lanes, bool)
                    closed[lanes] = False
                    look.bounds[i][closed] = -1.0
                for found in scan.best_first(look, i, _some(k), top.floor):
                    offer(at + i, found)
    return [top.best for top in tops]


def _open_lanes(field: Field, allowed: Allowed) -> NDArray[np.int64]:
    """Return the lanes of living items that the conditions on attributes, if any, leave open."""
    is_open = np.ones(field.lanes, bool)
    for s, (rows, mask) in enumerate(zip(field.lane_rows, allowed or [], strict=False)):
        is_open[field.start[s] : field.start[s + 1]] = mask[rows] if len(mask) else False
    is_open[field.excluded] = False
    return np.flatnonzero(is_open)
