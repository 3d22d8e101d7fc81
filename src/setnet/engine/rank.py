"""From bounds to ranked items: which of them are scored, matching one to one, the best k."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial, reduce
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.conditions import Value
from setnet.engine.kernels import backend
from setnet.engine.probe import ListsRead, ProbePlan, candidates_for, plan_probes
from setnet.engine.query import KnownPair, Query
from setnet.engine.results import RankedItems
from setnet.engine.scan import Scan, best_first
from setnet.engine.segment import Segment
from setnet.engine.snapshot import Allowed, Snapshot
from setnet.errors import InvalidInputError, StorageError

Rows = list[tuple[int, NDArray[np.int64]]]  # (segment, its rows)


@dataclass(frozen=True)
class Scored:
    """Items with their exact scores: parallel arrays, one entry per item."""

    segment: NDArray[np.int64]
    row: NDArray[np.int64]
    seq: NDArray[np.int64]
    score: NDArray[np.float64]
    similarity_sum: NDArray[np.float64]
    similarity: NDArray[np.float64]
    element: NDArray[np.int32]
    matched: NDArray[np.int32]
    unmatched: NDArray[np.bool_]
    unwanted: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.seq)

    def take(self, which: NDArray[np.generic] | slice) -> Scored:
        """Return the chosen entries; a slice shares their memory."""
        return Scored(*(getattr(self, name)[which] for name in _FIELDS))

    def ranked(self, k: int) -> Scored:
        """Return the best k: by score, then sum of similarities, then order of insertion."""
        order = np.argsort(-self.score)
        score = self.score[order]
        if (score[1:] == score[:-1]).any():
            order = np.lexsort((self.seq, -self.similarity_sum, -self.score))
        return self.take(order[:k])

    def passing(self, query: Query) -> NDArray[np.bool_]:
        """Return which entries satisfy a query's conditions on their elements."""
        keep: NDArray[np.bool_] = (self.matched >= query.at_least) & ~self.unwanted
        return keep & ~self.unmatched if query.only else keep

    def those(self, which: NDArray[np.bool_]) -> Scored:
        """Return the entries that are True in a mask; all of them without a copy."""
        return self if which.all() else self.take(which)

    def items(self, ids: list[str]) -> RankedItems:
        """Return the entries, in order, under the ids of their items."""
        return RankedItems(ids, self.score, self.matched, self.element, self.similarity, self.similarity_sum)


_FIELDS = tuple(f.name for f in fields(Scored))


def concatenate(parts: Sequence[Scored]) -> Scored:
    """Return the entries of all parts."""
    return Scored(*(np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS))


class TopK:
    """The best k of the items offered so far.

    Only their scores are put together each time; the items wait in the parts they came in.
    """

    def __init__(self, k: int, least: float, nothing: Scored) -> None:
        self.k, self._least = k, least
        self._parts = [nothing]
        self._scores = nothing.score  # the k highest
        self._low = -inf  # the lowest of these, once there are k

    def add(self, scored: Scored) -> None:
        """Offer items."""
        scores = np.concatenate([self._scores, scored.score])
        if self.k and len(scores) >= self.k:
            scores = np.partition(scores, len(scores) - self.k)[len(scores) - self.k :]
            self._low = float(scores[0])
        self._scores = scores
        self._parts.append(scored.those(scored.score >= self._low))

    @property
    def best(self) -> Scored:
        """The best k, in order."""
        return concatenate([part.those(part.score >= self._low) for part in self._parts]).ranked(self.k)

    def floor(self) -> float:
        """Return the score a further item must reach to enter."""
        return max(self._least, self._low)


def score_elements(snapshot: Snapshot, rows: Rows, query: Query) -> Scored:
    """Score rows of segments by matching their elements with the query's."""
    out = no_scores(query.size, sum(len(which) for _, which in rows))
    for segment, which, part in _parts(snapshot, rows, out):
        _evaluate(*segment.comparable(which, query), out, part)
        if not np.isfinite(out.similarity_sum[part]).all():
            raise segment.not_finite()
    if query.known:
        return score_known(snapshot, out, query)
    return _optimal(snapshot, out, query) if query.matching == "optimal" else out


def _evaluate(
    elements: NDArray[Any],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int64],
    query: Query,
    out: Scored,
    part: slice,
) -> None:
    """Enter the scores of rows into a part of ``out``."""
    backend.kernels.evaluate(
        elements, int(elements.dtype.itemsize == 2), query.dim, offsets, query.rows, query.first_row,
        query.combine, query.unwanted, query.w, query.logistic.b, query.shift, query.least,
        rows, out.score[part], out.similarity_sum[part], out.similarity[part], out.element[part],
        out.matched[part], out.unmatched[part], out.unwanted[part],
    )  # fmt: skip


def no_scores(size: int, n: int) -> Scored:
    """Return n entries, still without scores, for a query of ``size`` elements."""
    return Scored(
        np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n), np.zeros(n),
        np.zeros((n, size)), np.full((n, size), -1, np.int32), np.zeros(n, np.int32),
        np.zeros(n, bool), np.zeros(n, bool),
    )  # fmt: skip


def _parts(snapshot: Snapshot, rows: Rows, out: Scored) -> Iterator[tuple[Segment, NDArray[np.int64], slice]]:
    """Yield each segment with its rows and their places in ``out``, where the items are entered."""
    at = 0
    for s, which in rows:
        segment, part = snapshot.segments[s], slice(at, at + len(which))
        out.segment[part], out.row[part], out.seq[part] = s, which, segment.seq[which]
        yield segment, which, part
        at = part.stop


def _optimal(snapshot: Snapshot, scored: Scored, query: Query) -> Scored:
    """Replace the greedy matching by the best one there is (Hungarian algorithm), for comparison."""
    logistic = query.logistic
    for i in range(len(scored)):
        segment = snapshot.segments[scored.segment[i]]
        turned, stored = _item_of(segment, scored.row[i : i + 1], query)
        sims = turned.wanted @ stored.T
        if not np.isfinite(sims).all():
            raise segment.not_finite()
        groups = [sims[a:z] for a, z in pairwise(query.first_row)]
        shifted = zip(groups, query.shift, strict=True)
        value = np.stack([_merge(logistic.probability(g + s), query.averages) for g, s in shifted])
        pair = np.stack([_merge(g, query.averages) for g in groups])
        chosen, element = best_pairs(value)
        scored.element[i], scored.similarity[i] = -1, 0.0
        scored.element[i, chosen], scored.similarity[i, chosen] = element, pair[chosen, element]
        scored.score[i] = value[chosen, element].sum()
        scored.similarity_sum[i] = pair[chosen, element].sum()
        scored.matched[i] = (pair[chosen, element] >= query.least[chosen]).sum()
    return scored


def _item_of(segment: Segment, row: NDArray[np.int64], query: Query) -> tuple[Query, NDArray[np.float64]]:
    """Return the elements of one item, and the query in their space."""
    elements, offsets, rows, turned = segment.comparable(row, query)
    return turned, elements[offsets[rows[0]] : offsets[rows[0] + 1]].astype(np.float64)


def _merge(examples: NDArray[np.float64], mean: bool) -> NDArray[np.float64]:
    merged: NDArray[np.float64] = examples.mean(axis=0) if mean else examples.max(axis=0)
    return merged


def best_pairs(value: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and columns of the pairs whose values add up to most: as many as the shorter side.

    Shortest augmenting paths (the Hungarian algorithm as Jonker and Volgenant gave it, 1987): a row at a time
    is paired, and the pairs before it move where that gains most.

    >>> [places.tolist() for places in best_pairs(np.array([[0.9, 0.8], [0.7, 0.1]]))]
    [[0, 1], [1, 0]]
    """
    if value.shape[0] > value.shape[1]:
        columns, rows = best_pairs(value.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    cost = (-value).tolist()
    n = value.shape[1]
    row_price, column_price = [0.0] * len(cost), [0.0] * (n + 1)
    row_of = [-1] * (n + 1)  # the last column is where the row that looks for a partner stands
    for new in range(len(cost)):
        row_of[n], column = new, n
        least, before, is_done = [inf] * n, [n] * n, [False] * (n + 1)
        while row_of[column] >= 0:  # until a column without a row is reached
            is_done[column] = True
            row, step, nearest = row_of[column], inf, -1
            for j in range(n):
                if is_done[j]:
                    continue
                length = cost[row][j] - row_price[row] - column_price[j]
                if length < least[j]:
                    least[j], before[j] = length, column
                if nearest < 0 or least[j] < step:
                    step, nearest = least[j], j
            for j in range(n + 1):
                if is_done[j]:
                    row_price[row_of[j]] += step
                    column_price[j] -= step
                elif j < n:
                    least[j] -= step
            column = nearest
        while column != n:
            row_of[column], column = row_of[before[column]], before[column]
    paired = np.array(row_of[:n], np.int64)
    columns = np.flatnonzero(paired >= 0)
    order = np.argsort(paired[columns])
    return paired[columns][order], columns[order]


def score_sets(snapshot: Snapshot, rows: Rows, query: Query) -> Scored:
    """Score rows by their set vectors: the sum of the query elements' probabilities of being in the set."""
    assert snapshot.shape.sets is not None
    sets = snapshot.shape.sets
    examples = int(query.first_row[-1])
    sims = np.empty((sum(len(which) for _, which in rows), examples))
    out = no_scores(query.size, len(sims))
    for segment, which, part in _parts(snapshot, rows, out):
        stored, scales = segment.sets_with(which), segment.array("set_scales").reshape(-1)
        backend.kernels.set_similarities(
            sets.bits, stored, scales, sets.dim, stored.strides[0], query.rows, examples, which, sims[part]
        )
        if not np.isfinite(sims[part]).all():
            raise segment.not_finite("set_rows")
    scores = query.logistic.probability(sims)
    if query.combine:
        groups_of = list(pairwise(query.first_row))
        scores = np.stack([_merge(scores[:, a:z].T, query.averages) for a, z in groups_of], axis=1)
        sims = np.stack([_merge(sims[:, a:z].T, query.averages) for a, z in groups_of], axis=1)
    out.score[:], out.similarity_sum[:] = _ordered_sum(scores), _ordered_sum(sims)
    return out


def _ordered_sum(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sum of each row, smallest first: the same values in another order give the same bits."""
    columns = list(values.T)
    for last in range(len(columns) - 1, 0, -1):  # whole columns change places: far faster than sorting rows
        for i in range(last):
            low = np.minimum(columns[i], columns[i + 1])
            columns[i], columns[i + 1] = low, np.maximum(columns[i], columns[i + 1])
    return np.asarray(sum(columns[1:], columns[0]))


def ranked_items(snapshot: Snapshot, scored: Scored, query: Query) -> RankedItems:
    """Return ranked entries with the ids of their items, and their attributes if the query asks for them."""
    ids, details = [""] * len(scored), [dict[str, Value]()] * (len(scored) * query.attributes)
    for s in set(scored.segment.tolist()):
        places, segment = np.flatnonzero(scored.segment == s), snapshot.segments[s]
        for at, name in zip(places.tolist(), segment.ids_of(scored.row[places]), strict=True):
            ids[at] = name
        found = segment.attributes_of(scored.row[places]) if query.attributes else []
        for at, values in zip(places.tolist(), found, strict=False):
            details[at] = values
    return replace(scored.items(ids), attributes=details)


def score_known(snapshot: Snapshot, scored: Scored, query: Query) -> Scored:
    """Return the entries with the scores of items of which pairs are known computed again.

    A pair that matches comes before all others and adds 1 to the score; one that does not is never formed,
    whatever its similarity.
    """
    for i in np.flatnonzero(np.isin(scored.seq, list(query.known))).tolist():
        segment = snapshot.segments[scored.segment[i]]
        turned, stored = _item_of(segment, scored.row[i : i + 1], query)
        _Item(turned, stored, query.known[int(scored.seq[i])]).write(scored, i)
    return scored


class _Item:
    """One item's similarities, with infinities where pairs are known."""

    def __init__(self, query: Query, stored: NDArray[np.float64], known: Sequence[KnownPair]) -> None:
        self.query = query
        self.similarity = query.rows[:, : query.dim] @ stored.T
        groups = [self.similarity[a:z] for a, z in pairwise(query.first_row)]
        shifts = query.shift[:, None]
        if query.averages:
            self.share = np.stack(
                [query.logistic.probability(g + s).mean(axis=0) for g, s in zip(groups, shifts, strict=True)]
            )
            self.pair = np.stack([g.mean(axis=0) for g in groups])
            self.key = self.share.copy()
        else:
            self.pair = np.stack([g.max(axis=0) for g in groups])
            self.share = query.logistic.probability(self.pair + shifts)
            self.key = self.pair + shifts
        self.matches = self.pair >= query.least[: query.size, None]
        self.unwanted = self.similarity[query.first_row[-1] :] >= query.least[query.size :, None]
        self.is_there = np.zeros(query.size + query.unwanted, bool)  # whatever the elements are
        for pair in known:
            self._learn(pair)
        self.is_there, excluded = np.split(self.is_there, [query.size])
        self.is_unwanted = bool(self.unwanted.any() or excluded.any())
        self.key[self.is_there[:, None] & ~self.matches] = -np.inf  # somebody else's elements

    def _learn(self, pair: KnownPair) -> None:
        member, element, is_match = pair
        if element == -1 and 0 <= member < len(self.is_there):
            self.is_there[member] |= is_match
        if not 0 <= element < self.pair.shape[1] or member < 0:
            return  # of an item that has changed since
        if member < self.query.size:
            self.key[member, element] = np.inf if is_match else -np.inf
            self.share[member, element] = float(is_match)
            self.matches[member, element] = is_match
        elif member < self.query.size + self.query.unwanted:
            self.unwanted[member - self.query.size, element] = is_match

    def write(self, scored: Scored, i: int) -> None:
        """Enter the item's scores into its place."""
        from setnet.engine.kernels.reference import (
            greedy_pairs,
        )  # of all kernels in NumPy: few searches need it

        pairs = [(p, e) for p, e in greedy_pairs(self.key) if self.key[p, e] > -np.inf]
        scored.element[i], scored.similarity[i] = -1, 0.0
        for p, e in pairs:
            scored.element[i, p], scored.similarity[i, p] = e, self.pair[p, e]
        others, there = [(p, e) for p, e in pairs if not self.is_there[p]], int(self.is_there.sum())
        scored.score[i] = there + sum(float(self.share[p, e]) for p, e in others)
        scored.similarity_sum[i] = sum(float(self.pair[p, e]) for p, e in pairs)
        scored.matched[i] = there + sum(bool(self.matches[p, e]) for p, e in others)
        scored.unmatched[i] = bool((~self.matches).all(axis=0).any())
        scored.unwanted[i] = self.is_unwanted


def rank_given(
    ids: Sequence[str], elements: NDArray[np.float32], counts: NDArray[np.int64], query: Query
) -> RankedItems:
    """Return the best of some items by the matching of their elements, as `SetIndex.rerank` does.

    Of equal items the one given first comes first. Optimal matching is for items of an index.

    Parameters
    ----------
    ids, elements, counts
        The items, as `SetIndex.add` takes them; each has an element at least.

    Examples
    --------
    >>> elements = np.eye(3, dtype=np.float32)
    >>> from setnet.heads import Logistic
    >>> query = Query.of(elements[1:], 3, Logistic(20.0, -8.0), k=1)
    >>> found = rank_given(["a", "b"], elements, np.array([1, 2]), query)
    >>> found.ids, found.matched.tolist()
    (['b'], [2])
    """
    if query.matching == "optimal":
        raise InvalidInputError("optimal matching is for items of an index: leave it out")
    out = no_scores(query.size, len(ids))
    out.row[:] = out.seq[:] = np.arange(len(ids))
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    if len(ids):
        _evaluate(np.ascontiguousarray(elements, np.float32), offsets, out.row, query, out, slice(None))
    finite = np.isfinite(out.similarity_sum)
    if not finite.all():
        raise StorageError(f"item {ids[int(finite.argmin())]!r} holds NaN or infinity: store it again")
    best = out.those(out.passing(query)).ranked(query.k)
    return best.items([ids[i] for i in best.row.tolist()])


LATE = 0.2  # of the rows: where more satisfy conditions, few are looked up
FEW = 50  # when conditions leave less than one item in FEW, the first pass is not worth its time
TOGETHER = 16  # queries that pass over the vectors together, at most
BOUNDS = 64 * 1024 * 1024  # bytes of their bounds, at most
AT_ONCE = 65536  # items whose scores are held at once


@dataclass(frozen=True)
class Proposed:
    """What an index, or a part of one, proposes for a query.

    The best items of several parts are among those that the parts propose: `join` finds them.

    Attributes
    ----------
    items
        With their exact scores; those that fail a condition are left out.
    how
        ``exact``, ``set vectors`` or ``lists``.
    limit
        A first pass lets at most so many items of all parts be scored.
    first
        Score, sum of similarities and number of each item that the first pass found here.
    place
        Where in ``first`` each of the items is; -1 for those that need no first pass.
    read
        What was read of inverted lists.
    """

    items: Scored
    how: str = "exact"
    limit: int = 0
    first: NDArray[np.float64] = field(default_factory=lambda: np.empty((0, 3)))
    place: NDArray[np.int64] | None = None
    read: ListsRead | None = None

    def ranked(self, k: int) -> tuple[Scored, dict[str, Any]]:
        """Return the best k, and how they were found."""
        items = self.items
        if self.place is not None and len(self.first) > self.limit:
            score, total, number = self.first.T
            passed = np.zeros(len(score), bool)
            passed[np.lexsort((number, -total, -score))[: self.limit]] = True
            items = items.those((self.place < 0) | passed[self.place])
        items = items.ranked(k)
        if self.read is None:
            return items, {} if self.how == "exact" else {"how": self.how, "recall": None}
        return items, {"how": str(self.read), "recall": self.read.recall}


def join(parts: Sequence[Proposed]) -> Proposed:
    """Return what all parts of an index propose together; all of them by the same kind of search."""
    start = np.cumsum([0, *(len(part.first) for part in parts)]).tolist()
    places = [
        np.where(part.place < 0, -1, part.place + at)
        for part, at in zip(parts, start, strict=False)
        if part.place is not None
    ]
    reads = [part.read for part in parts if part.read is not None]
    return Proposed(
        concatenate([part.items for part in parts]),
        parts[0].how,
        parts[0].limit,
        np.concatenate([part.first for part in parts]),
        np.concatenate(places) if places else None,
        reduce(ListsRead.plus, reads) if reads else None,
    )


def best_items(snapshot: Snapshot, allowed: Allowed, queries: list[Query]) -> list[RankedItems]:
    """Return the best items of each of some queries with the same options, in one pass over the vectors.

    ``allowed`` says, per segment, which rows satisfy the conditions on attributes; None without conditions.
    """
    found = [one.ranked(queries[0].k) for one in proposed_items(snapshot, allowed, queries)]
    return [
        replace(ranked_items(snapshot, items, query), **how)
        for (items, how), query in zip(found, queries, strict=True)
    ]


def proposed_items(snapshot: Snapshot, allowed: Allowed, queries: list[Query]) -> list[Proposed]:
    """Return what an index or a part of one proposes for each of some queries with the same options."""
    first = queries[0] if queries else None
    if first is None:
        return []
    if first.mode == "exact":
        return [Proposed(one) for one in _Ranking(snapshot, allowed, queries).best()]
    if first.mode == "set":
        found = _Ranking(snapshot, allowed, queries, by_sets=True).best()
        return [Proposed(one, "set vectors") for one in found]
    if first.sets is None:
        return _from_lists(snapshot, allowed, queries)
    # set vectors first, then the elements of the best (paper 5.3)
    limit = max(first.k, first.candidates)
    coarse = [replace(query, k=limit, at_least=0, only=False, unwanted=0) for query in queries]
    found = _Ranking(snapshot, allowed, coarse, by_sets=True).best()
    return [_rescored(snapshot, one, query, limit) for one, query in zip(found, queries, strict=True)]


def _rescored(snapshot: Snapshot, found: Scored, query: Query, limit: int) -> Proposed:
    """Return items that set vectors found, with the scores of their elements."""
    found = found.take(np.argsort(found.segment, kind="stable"))
    scored = score_elements(snapshot, _by_segment(found), query)
    passing = scored.passing(query)
    first = np.stack([found.score, found.similarity_sum, found.seq], axis=1)
    return Proposed(scored.those(passing), "set vectors", limit, first, np.flatnonzero(passing))


def _from_lists(snapshot: Snapshot, allowed: Allowed, queries: list[Query]) -> list[Proposed]:
    """Return the best items of those that inverted lists hold near each query, and of all that are in none.

    Where reading lists would take as long as scoring everything, all items are scored.
    """
    plans = [plan_probes(snapshot, allowed, query) for query in queries]
    exact = iter(proposed_items(snapshot, allowed, [
        replace(query, mode="exact") for query, plan in zip(queries, plans, strict=True) if plan is None
    ]))  # fmt: skip
    return [
        next(exact) if plan is None else _probe(snapshot, allowed, query, plan)
        for query, plan in zip(queries, plans, strict=True)
    ]


def best_of(snapshot: Snapshot, rows: Rows, query: Query) -> Scored:
    """Return the best k of some rows, by the matching of their elements."""
    scored = score_elements(snapshot, rows, query)
    return scored.those(scored.passing(query)).ranked(query.k)


def _by_segment(found: Scored) -> Rows:
    """Return the rows of items that are in order of segments."""
    segment, row = found.segment, found.row
    cuts = [0, *(np.flatnonzero(segment[1:] != segment[:-1]) + 1).tolist(), len(segment)]
    return [(int(segment[a]), row[a:z]) for a, z in pairwise(cuts) if a < z]


def _probe(snapshot: Snapshot, allowed: Allowed, query: Query, plan: ProbePlan) -> Proposed:
    """Rank what lists hold near the query, what has pairs that surely match, and what was read in no list."""
    (near, unread, read), limit = plan.candidates(snapshot, query), candidates_for(query.k)
    first = np.empty((0, 3))
    for s, rows, scores in near:
        own = np.stack([scores, np.zeros(len(rows)), snapshot.segments[s].seq[rows]], axis=1)
        first = np.concatenate([first, own])
    kept = np.zeros(len(first), bool)
    kept[np.lexsort((first[:, 2], -first[:, 0]))[:limit]] = True
    number, start = np.cumsum(kept) - 1, 0
    sure = dict(_sure_rows(snapshot, query))
    chosen: Rows = []
    places = [np.empty(0, np.int64)]
    for s, rows, _ in near:
        own = np.flatnonzero(kept[start : start + len(rows)])
        more = sure.get(s, np.empty(0, np.int64))
        more = more if allowed is None else more[allowed.of_rows(s, more)]
        both = np.union1d(rows[own], more)
        place = np.full(len(both), -1)
        place[np.searchsorted(both, rows[own])] = number[start + own]
        place[np.searchsorted(both, more)] = -1
        chosen.append((s, both))
        places.append(place)
        start += len(rows)
    scored = score_elements(snapshot, chosen, query)
    passing = scored.passing(query)
    items, place = scored.those(passing), np.concatenate(places)[passing]
    if numbers := sorted([*unread, *(s for s, one in enumerate(snapshot.segments) if not one.listed)]):
        rest = snapshot.part(tuple(numbers))
        open_rows = None if allowed is None else allowed.part(numbers)
        (others,) = _Ranking(rest, open_rows, [query]).best()
        items = concatenate([items, replace(others, segment=np.array(numbers)[others.segment])])
        place = np.concatenate([place, np.full(len(others), -1)])
    return Proposed(items, "lists", limit, first[kept], place, read)


def _sure_rows(snapshot: Snapshot, query: Query) -> Rows:
    """Return the rows with a pair that is known to match: their scores may exceed their bounds."""
    seqs = [seq for seq, pairs in query.known.items() if any(pair.is_match for pair in pairs)]
    found = snapshot.find(np.array(sorted(seqs), np.int64)) if seqs else []
    return comparable(snapshot, found, query)


def comparable(snapshot: Snapshot, rows: Rows, query: Query) -> Rows:
    """Return the rows that have elements, or in which a query element is known to be all the same."""
    there = [
        seq
        for seq, pairs in query.known.items()
        if any(pair.is_match and pair.element == -1 and pair.query_element < query.size for pair in pairs)
    ]
    return [
        (s, some[(snapshot.segments[s].counts[some] > 0) | np.isin(snapshot.segments[s].seq[some], there)])
        for s, some in rows
    ]


class _Ranking:
    """The best k of each query so far: lanes are bounded, then scored best first while they can enter.

    Items are ranked by the matching of their elements, or ``by_sets``: by their set vectors, and conditions
    on elements hold all the same.
    """

    def __init__(
        self, snapshot: Snapshot, allowed: Allowed, queries: list[Query], *, by_sets: bool = False
    ) -> None:
        self._snapshot, self._queries, self._by_sets, self._allowed = snapshot, queries, by_sets, allowed
        self._table = table = snapshot.sets if by_sets else snapshot.elements
        self._k, self._only = queries[0].k, queries[0].only and not by_sets
        self._least = [-1.0 if by_sets else query.least_score(query.at_least) for query in queries]
        self._tops = [TopK(self._k, low, self._score(i, [])) for i, low in enumerate(self._least)]
        # where most rows satisfy the conditions, only those that may be hits are looked up
        self._late = allowed if allowed is not None and allowed.share >= LATE else None
        early = None if self._late else allowed
        self._lanes = table.open_lanes(early) if early is not None else None
        self._first = table.lanes_of(_sure_rows(snapshot, queries[0]))
        if len(self._first):
            self._first = self._first[table.open_lanes(early)[self._first]]

    def best(self) -> list[Scored]:
        """Return the best of each query."""
        for scan, at in self._scans():
            if self._only and self._scored_matched(scan, at):
                continue
            if self._by_sets:
                scan.read("sets")
            else:
                scan.read_bounds(self._k, partial(self._floor_among, at))
            self._finish(scan, at)
        if not self._by_sets:
            for i, top in enumerate(self._tops):
                top.add(self._score(i, self._without_elements()))
        return [top.best for top in self._tops]

    def _without_elements(self) -> Rows:
        """Return the rows in which a query element is known to be, but that have no elements, so no lane."""
        segments, found = self._snapshot.segments, Rows()
        for s, rows in _sure_rows(self._snapshot, self._queries[0]):
            is_open = segments[s].counts[rows] == 0
            found.append(
                (s, rows[is_open if self._allowed is None else is_open & self._allowed.of_rows(s, rows)])
            )
        return found

    def _score(self, i: int, rows: Rows) -> Scored:
        """Score rows for query ``i``, leaving out those that fail a condition on elements."""
        query = self._queries[i]
        if not self._by_sets:
            scored = score_elements(self._snapshot, rows, query)
            return scored.those(scored.passing(query))
        assert query.sets is not None
        scored = score_sets(self._snapshot, rows, query.sets)
        if not (query.at_least or query.only or query.unwanted):
            return scored
        return scored.those(score_elements(self._snapshot, rows, query).passing(query))

    def _scans(self) -> Iterator[tuple[Scan, int]]:
        """Yield scans of some queries each, with the first's position; none where scoring all is faster."""
        table, lanes = self._table, self._lanes
        if self._k == 0 or not table.lanes:
            return
        open_items = int(table.items * self._share) if lanes is None else int(np.count_nonzero(lanes))
        if looks_at_all(self._k, table.items, open_items, max(self._least)):
            every = np.flatnonzero(table.open_lanes(None) if lanes is None else lanes)
            for i in range(len(self._queries)):
                self._offer(i, every)
            return
        # what `only` leaves open depends on the query
        together = 1 if self._only else max(1, min(TOGETHER, BOUNDS // (4 * table.lanes)))
        for at in range(0, len(self._queries), together):
            some = self._queries[at : at + together]
            if self._by_sets:
                some = [query.sets for query in some if query.sets is not None]
            yield Scan(self._snapshot, some, lanes, of_sets=self._by_sets, share=self._share), at

    def _scored_matched(self, scan: Scan, at: int) -> bool:
        """Close what has elements that cannot match; if little is left, score all of it and tell so."""
        matched = scan.leave_matched()
        if not looks_at_all(self._k, self._table.items, len(matched), self._least[at]):
            return False
        self._offer(at, np.union1d(matched, self._first))
        return True

    def _finish(self, scan: Scan, at: int) -> None:
        """Score the lanes of a scan best first."""
        for i, top in enumerate(self._tops[at : at + len(scan.queries)]):
            self._offer(at + i, self._first)
            scan.bounds[i, self._first] = -1.0
            # a few more than k at first, since bounds are not scores
            for found in best_first(scan, i, int((self._k + self._k // 2 + 64) / self._share), top.floor):
                self._offer(at + i, found)

    def _floor_among(self, i: int, lanes: NDArray[np.int64], wanted: int) -> float:
        """Return the score with which a hit of query ``i`` is one of the ``wanted`` best of some lanes."""
        scores = np.sort(self._score(i, self._rows(lanes)).score)
        return max(self._least[i], float(scores[-wanted]) if len(scores) >= wanted else 0.0)

    def _offer(self, i: int, lanes: NDArray[np.int64]) -> None:
        for at in range(0, len(lanes), AT_ONCE):
            self._tops[i].add(self._score(i, self._rows(lanes[at : at + AT_ONCE])))

    def _rows(self, lanes: NDArray[np.int64]) -> Rows:
        """Return the rows in some lanes that satisfy the conditions."""
        found, late = self._table.split(lanes), self._late
        return found if late is None else [(s, rows[late.of_rows(s, rows)]) for s, rows in found]

    @property
    def _share(self) -> float:
        """The share of open lanes that conditions leave when they are looked up."""
        return 1.0 if self._late is None else self._late.share


def looks_at_all(k: int, items: int, open_items: int, least: float) -> bool:
    """Return whether scoring all open items is faster than a first pass, or hardly leaves one out.

    ``least`` is a score that hits need: it rules most items out. Counting items, not lanes, makes this the
    same for the same items in other segments.
    """
    return open_items * FEW <= items or (2 * k >= items and least <= 0)
