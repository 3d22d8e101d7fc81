"""Answering queries: exact, by set vectors, or by a coarse first pass and re-ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from setnet.index.search import scan
from setnet.index.search.passes import Estimates
from setnet.index.search.probing import probed
from setnet.index.search.query import Query
from setnet.index.search.ranking import Rows, Scored, Top, score_sets
from setnet.index.search.scope import Allowed, Scope
from setnet.index.storage.snapshot import Field

FEW = 50  # when conditions leave less than one item in FEW, the first pass is not worth its time
TOGETHER = 16  # queries that pass over the vectors together, at most
BOUNDS = 64 * 1024 * 1024  # bytes of their bounds, at most
AT_ONCE = 65536  # items whose scores are held at once

AnyScan = TypeVar("AnyScan", scan.ElementScan, scan.SetScan)


def exact(scope: Scope, queries: list[Query]) -> list[Scored]:
    """Rank all items by the matching of their elements; identical to scoring every one of them."""
    return _by_elements(scope, queries, lambda look, floor: look.read_bounds(scope.options.k, floor))


def set_only(scope: Scope, set_queries: list[Query], queries: Sequence[Query] = ()) -> list[Scored]:
    """Rank all items by their set vectors; ``queries`` are the same ones for conditions on elements."""
    options = scope.options
    plain = not (options.of_elements or any(query.without for query in queries))

    def second_look(i: int, rows: Rows) -> Scored:
        scored = score_sets(scope.snapshot, rows, set_queries[i])
        if plain:
            return scored
        by_elements = scope.score_all(rows, queries[i])
        return scored.those(by_elements.passing(options.at_least, options.only))

    least = [-1.0] * len(set_queries)
    ranking = _Ranking(scope, scope.snapshot.sets, set_queries, second_look, least)
    for look, at in ranking.scans(scan.SetScan):
        look.read_bounds()
        ranking.finish(look, at)
    return ranking.best


def fast(scope: Scope, queries: list[Query]) -> list[Scored]:
    """Rank by estimates from one bit per dimension, then the first ``candidates`` by their elements.

    Where segments have inverted lists only the elements near the query's are estimated.
    """
    if scope.options.probes != 0 and any(segment.listed for segment in scope.snapshot.segments):
        return [probed(scope, query) for query in queries]
    candidates = max(scope.options.k, scope.options.candidates)
    return _by_elements(scope, queries, lambda look, _: look.read(Estimates), candidates)


def _by_elements(
    scope: Scope,
    queries: list[Query],
    read: Callable[[scan.ElementScan, scan.Floor], None],
    candidates: int | None = None,
) -> list[Scored]:
    """Rank items by the matching of their elements after a pass that ``read`` makes over these."""

    def second_look(i: int, rows: Rows) -> Scored:
        return scope.score(rows, queries[i])

    least = [query.least_score(scope.options.at_least) for query in queries]
    ranking = _Ranking(scope, scope.snapshot.elements, queries, second_look, least)
    for look, at in ranking.scans(scan.ElementScan):
        read(look, partial(ranking.floor_among, at))
        ranking.finish(look, at, candidates)
    return ranking.best


def fast_by_sets(scope: Scope, set_queries: list[Query], queries: list[Query]) -> list[Scored]:
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


class _Ranking:
    """The best k of each query so far: lanes are bounded, then scored best first while they can enter.

    ``second_look`` scores rows for the query at a position; ``least`` is the score each query's hits need.
    """

    def __init__(
        self,
        scope: Scope,
        field: Field,
        queries: list[Query],
        second_look: Callable[[int, Rows], Scored],
        least: list[float],
    ) -> None:
        self._scope, self._field, self._queries, self._second_look = scope, field, queries, second_look
        self._least = least
        self._tops = [Top(scope.options.k, floor, second_look(i, [])) for i, floor in enumerate(least)]
        self._lanes = open_lanes(field, scope.allowed) if scope.allowed is not None else None
        self._first = field.lanes_of(scope.sure_rows())

    @property
    def best(self) -> list[Scored]:
        return [top.best for top in self._tops]

    def scans(self, kind: type[AnyScan]) -> Iterator[tuple[AnyScan, int]]:
        """Yield scans of some queries each, with the first's position; none where scoring all is faster."""
        k, field, lanes = self._scope.options.k, self._field, self._lanes
        if k == 0 or not field.lanes:
            return
        open_items = field.items if lanes is None else len(lanes)
        if looks_at_all(k, field.items, open_items, max(self._least)):
            for i in range(len(self._queries)):
                self._offer(i, open_lanes(field, None) if lanes is None else lanes)
            return
        together = max(1, min(TOGETHER, BOUNDS // (4 * field.lanes)))
        for at in range(0, len(self._queries), together):
            yield (
                kind(self._scope.snapshot, self._queries[at : at + together], self._scope.options.threads),
                at,
            )

    def finish(self, look: scan.Scan, at: int, candidates: int | None = None) -> None:
        """Score the lanes of a scan best first, or so many candidates where it has estimates only."""
        if self._lanes is not None:
            closed = np.ones(self._field.lanes, bool)
            closed[self._lanes] = False
            look.bounds[:, closed] = -1.0
        for i, top in enumerate(self._tops[at : at + len(look.queries)]):
            first = self._first[look.bounds[i, self._first] >= 0]
            self._offer(at + i, first)
            look.bounds[i, first] = -1.0
            if candidates is not None:
                self._offer(at + i, look.best(i, candidates))
                continue
            for found in scan.best_first(look, i, _some(self._scope.options.k), top.floor):
                self._offer(at + i, found)

    def floor_among(self, i: int, lanes: NDArray[np.int64], wanted: int) -> float:
        """Return the score with which a hit of query ``i`` is one of the ``wanted`` best of some lanes."""
        scores = np.sort(self._second_look(i, [(s, rows) for s, rows, _ in self._field.split(lanes)]).score)
        return max(self._least[i], float(scores[-wanted]) if len(scores) >= wanted else 0.0)

    def _offer(self, i: int, lanes: NDArray[np.int64]) -> None:
        for at in range(0, len(lanes), AT_ONCE):
            rows = [(s, rows) for s, rows, _ in self._field.split(lanes[at : at + AT_ONCE])]
            self._tops[i].add(self._second_look(i, rows))


def looks_at_all(k: int, items: int, open_items: int, least: float) -> bool:
    """Return whether scoring all open items is faster than a first pass, or hardly leaves one out.

    ``least`` is a score that hits need: it rules most items out. Counting items, not lanes, makes this the
    same for the same items in other segments.
    """
    return open_items * FEW <= items or (2 * k >= items and least <= 0)


def open_lanes(field: Field, allowed: Allowed) -> NDArray[np.int64]:
    """Return the lanes of living items that the conditions on attributes, if any, leave open."""
    is_open = np.ones(field.lanes, bool)
    for s, (rows, mask) in enumerate(zip(field.lane_rows, allowed or [], strict=False)):
        is_open[field.start[s] : field.start[s + 1]] = mask[rows] if len(mask) else False
    is_open[field.excluded] = False
    return np.flatnonzero(is_open)
