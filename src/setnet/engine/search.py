"""The modes of a search, `exact`, `fast` and `set`, and who runs them over one snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels import backend
from setnet.engine.kernels.lanes import LANES
from setnet.engine.lists import half_squares
from setnet.engine.query import Query, QueryLike, aggregated, query_elements
from setnet.engine.rank import RankedItems, Rows, Scored, TopK, ranked_items, score_sets
from setnet.engine.scan import (
    Allowed,
    ElementScan,
    Estimates,
    Floor,
    Listed,
    Scan,
    Scope,
    SetScan,
    SetVectors,
    best_first,
    collect,
    reached_by,
)
from setnet.engine.segment import Segment
from setnet.engine.settings import GIVEN, Settings
from setnet.engine.snapshot import LaneTable
from setnet.errors import InvalidInputError
from setnet.heads import Aggregator

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
    elif segment.coded:
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
    centres = segment.array("list_centres")
    # elements lie in the list of the nearest centre, so the nearest are probed: centres differ in length
    likeness = query.wanted.astype(np.float32) @ centres.T - half_squares(centres)
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


FEW = 50  # when conditions leave less than one item in FEW, the first pass is not worth its time
TOGETHER = 16  # queries that pass over the vectors together, at most
BOUNDS = 64 * 1024 * 1024  # bytes of their bounds, at most
AT_ONCE = 65536  # items whose scores are held at once

AnyScan = TypeVar("AnyScan", ElementScan, SetScan)


def run_exact(scope: Scope, queries: list[Query]) -> list[Scored]:
    """Rank all items by the matching of their elements; identical to scoring every one of them."""
    return _by_elements(scope, queries, lambda look, floor: look.read_bounds(scope.options.k, floor))


def run_sets(scope: Scope, set_queries: list[Query], queries: Sequence[Query] = ()) -> list[Scored]:
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
    for look, at in ranking.scans(SetScan):
        look.read(SetVectors)
        ranking.finish(look, at)
    return ranking.best


def run_fast(scope: Scope, queries: list[Query]) -> list[Scored]:
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
    read: Callable[[ElementScan, Floor], None],
    candidates: int | None = None,
) -> list[Scored]:
    """Rank items by the matching of their elements after a pass that ``read`` makes over these."""

    def second_look(i: int, rows: Rows) -> Scored:
        return scope.score(rows, queries[i])

    least = [query.least_score(scope.options.at_least) for query in queries]
    ranking = _Ranking(scope, scope.snapshot.elements, queries, second_look, least)
    for look, at in ranking.scans(ElementScan):
        if scope.options.only and ranking.scored_matched(look, at):
            continue
        read(look, partial(ranking.floor_among, at))
        ranking.finish(look, at, candidates)
    return ranking.best


def run_fast_by_sets(scope: Scope, set_queries: list[Query], queries: list[Query]) -> list[Scored]:
    """Rank by set vectors, then re-rank the first ``candidates`` by their elements (paper 5.3)."""
    most = max(scope.options.k, scope.options.candidates)
    coarse = replace(scope.options, k=most, at_least=0, only=False)
    first = run_sets(replace(scope, options=coarse), set_queries)
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
        table: LaneTable,
        queries: list[Query],
        second_look: Callable[[int, Rows], Scored],
        least: list[float],
    ) -> None:
        self._scope, self._table, self._queries, self._second_look = scope, table, queries, second_look
        self._least = least
        self._tops = [TopK(scope.options.k, floor, second_look(i, [])) for i, floor in enumerate(least)]
        self._lanes = open_lanes(table, scope.allowed) if scope.allowed is not None else None
        self._first = table.lanes_of(scope.sure_rows())
        if len(self._first):
            self._first = np.intersect1d(self._first, open_lanes(table, scope.allowed))

    @property
    def best(self) -> list[Scored]:
        return [top.best for top in self._tops]

    def scans(self, kind: type[AnyScan]) -> Iterator[tuple[AnyScan, int]]:
        """Yield scans of some queries each, with the first's position; none where scoring all is faster."""
        k, table, lanes = self._scope.options.k, self._table, self._lanes
        if k == 0 or not table.lanes:
            return
        open_items = table.items if lanes is None else len(lanes)
        if looks_at_all(k, table.items, open_items, max(self._least)):
            for i in range(len(self._queries)):
                self._offer(i, open_lanes(table, None) if lanes is None else lanes)
            return
        # what `only` leaves open depends on the query
        together = 1 if self._scope.options.only else max(1, min(TOGETHER, BOUNDS // (4 * table.lanes)))
        for at in range(0, len(self._queries), together):
            some = self._queries[at : at + together]
            yield kind(self._scope.snapshot, some, self._scope.options.threads, lanes), at

    def scored_matched(self, look: ElementScan, at: int) -> bool:
        """Close what has elements that cannot match; if little is left, score all of it and tell so."""
        matched = look.leave_matched()
        if not looks_at_all(self._scope.options.k, self._table.items, len(matched), self._least[at]):
            return False
        self._offer(at, np.union1d(matched, self._first))
        return True

    def finish(self, look: Scan, at: int, candidates: int | None = None) -> None:
        """Score the lanes of a scan best first, or so many candidates where it has estimates only."""
        for i, top in enumerate(self._tops[at : at + len(look.queries)]):
            self._offer(at + i, self._first)
            look.bounds[i, self._first] = -1.0
            if candidates is not None:
                self._offer(at + i, look.best(i, candidates))
                continue
            for found in best_first(look, i, _some(self._scope.options.k), top.floor):
                self._offer(at + i, found)

    def floor_among(self, i: int, lanes: NDArray[np.int64], wanted: int) -> float:
        """Return the score with which a hit of query ``i`` is one of the ``wanted`` best of some lanes."""
        scores = np.sort(self._second_look(i, [(s, rows) for s, rows, _ in self._table.split(lanes)]).score)
        return max(self._least[i], float(scores[-wanted]) if len(scores) >= wanted else 0.0)

    def _offer(self, i: int, lanes: NDArray[np.int64]) -> None:
        for at in range(0, len(lanes), AT_ONCE):
            rows = [(s, rows) for s, rows, _ in self._table.split(lanes[at : at + AT_ONCE])]
            self._tops[i].add(self._second_look(i, rows))


def looks_at_all(k: int, items: int, open_items: int, least: float) -> bool:
    """Return whether scoring all open items is faster than a first pass, or hardly leaves one out.

    ``least`` is a score that hits need: it rules most items out. Counting items, not lanes, makes this the
    same for the same items in other segments.
    """
    return open_items * FEW <= items or (2 * k >= items and least <= 0)


def open_lanes(table: LaneTable, allowed: Allowed) -> NDArray[np.int64]:
    """Return the lanes of living items that the conditions on attributes, if any, leave open."""
    is_open = np.ones(table.lanes, bool)
    for s, (rows, mask) in enumerate(zip(table.lane_rows, allowed or [], strict=False)):
        is_open[table.start[s] : table.start[s + 1]] = mask[rows] if len(mask) else False
    is_open[table.excluded] = False
    return np.flatnonzero(is_open)


@dataclass(frozen=True, slots=True)
class Searcher:
    """Answers queries within a scope; ``head`` makes their set vectors where a mode needs them."""

    scope: Scope
    settings: Settings
    head: Aggregator | None = None

    def ranked(self, queries: Sequence[QueryLike]) -> list[RankedItems]:
        """Return the items found by each query, as arrays, in one pass over the vectors."""
        options, sets = self.scope.options, self.settings.shape.sets
        by_codes = options.mode == "fast" and options.first == "codes"
        by_codes = by_codes and not options.aggregate_query
        if options.mode != "exact" and not by_codes and sets is None:
            raise InvalidInputError(
                f"this index has no set vectors: mode {options.mode!r} needs them, use 'exact'"
            )
        exact: list[Query] = []
        given: Sequence[Any] = queries
        set_space = options.mode == "set" and sets is not None and sets.name == GIVEN
        if not set_space or options.without is not None or options.of_elements:
            given = [query_elements(query, self.settings.shape.dim) for query in queries]
            unwanted = self._unwanted()
            exact = [self._query(q, unwanted) for q in given]
        if options.mode == "exact":
            found = run_exact(self.scope, exact)
        elif options.mode == "set":
            found = run_sets(self.scope, [self._set_query(query) for query in given], exact)
        elif by_codes:
            found = run_fast(self.scope, exact)
        else:
            found = run_fast_by_sets(self.scope, [self._set_query(query) for query in given], exact)
        return [ranked_items(self.scope.snapshot, scored) for scored in found]

    def among(self, query: QueryLike, seqs: NDArray[np.int64]) -> RankedItems:
        """Return the best of some items that have elements, by the matching of these."""
        snapshot = self.scope.snapshot
        rows = [(s, some[snapshot.segments[s].counts[some] > 0]) for s, some in snapshot.find(seqs)]
        elements = query_elements(query, self.settings.shape.dim)
        found = self.scope.best_of(rows, self._query(elements, self._unwanted()))
        return ranked_items(snapshot, found)

    def _query(self, elements: list[NDArray[np.float32]], unwanted: list[NDArray[np.float32]]) -> Query:
        options = self.scope.options
        return Query.of(elements, unwanted, options.examples, self.settings.logistic, options.scoring)

    def _unwanted(self) -> list[NDArray[np.float32]]:
        without = self.scope.options.without
        return [] if without is None else query_elements(without, self.settings.shape.dim, "without")

    def _set_query(self, query: Any) -> Query:
        """Return a query in the space of set vectors: through the head, or as given by the caller."""
        options, sets = self.scope.options, self.settings.shape.sets
        assert sets is not None
        if self.head is None:
            rows = query_elements(query, sets.dim)
            if options.aggregate_query:
                rows = [np.concatenate(rows).mean(axis=0, keepdims=True)]
        else:
            rows = aggregated(query, self.head, options.examples, options.aggregate_query)
        return Query.of(rows, [], options.examples, self.settings.set_logistic)
