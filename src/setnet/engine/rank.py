"""From candidates to ranked items: matching one to one, scores, the best k."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from setnet.engine.assignment import best_pairs
from setnet.engine.kernels import backend
from setnet.engine.kernels.reference import greedy_pairs
from setnet.engine.query import KnownPair, Query, QueryLike, SearchOptions, query_elements
from setnet.engine.results import Hit, Match
from setnet.engine.segment import Segment
from setnet.engine.snapshot import Snapshot
from setnet.errors import InvalidInputError, StorageError
from setnet.heads import Logistic


@dataclass(frozen=True, slots=True, eq=False)
class RankedItems(Sequence[Hit]):
    """The hits of a query, best first: arrays, of which objects are made when somebody asks for them.

    Attributes
    ----------
    ids, scores
        Of each item, as in `Hit`.
    matched
        How many query elements are matched in the item; 0 in ``set`` mode, where elements are not looked at.
    elements, similarities
        (items, query elements): the element of the item that each query element is paired with, -1 for
        none, and their similarity.
    sums
        The sum of each item's similarities, by which items of equal scores are ordered.
    """

    ids: list[str]
    scores: NDArray[np.float64]
    matched: NDArray[np.int32]
    elements: NDArray[np.int32]
    similarities: NDArray[np.float64]
    sums: NDArray[np.float64]

    @classmethod
    def none(cls, size: int) -> RankedItems:
        """Return no items, found by a query of `size` elements."""
        pairs = np.zeros((0, size), np.int32)
        return cls([], np.zeros(0), np.zeros(0, np.int32), pairs, np.zeros((0, size)), np.zeros(0))

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, which: int) -> Hit: ...

    @overload
    def __getitem__(self, which: slice) -> RankedItems: ...

    def __getitem__(self, which: int | slice) -> Hit | RankedItems:
        if isinstance(which, slice):
            return RankedItems(self.ids[which], *(array[which] for array in self._arrays))
        at = range(len(self))[which]  # an index beyond the end is an IndexError
        return self.hits(at, at + 1)[0]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.hits() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.hits())

    @property
    def nbytes(self) -> int:
        """Bytes of memory, about."""
        return sum(array.nbytes for array in self._arrays) + 64 * len(self.ids)

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return (self.scores, self.matched, self.elements, self.similarities, self.sums)

    def take(self, which: NDArray[np.int64] | slice) -> RankedItems:
        """Return the items at some places."""
        ids = self.ids[which] if isinstance(which, slice) else [self.ids[i] for i in which.tolist()]
        return RankedItems(ids, *(array[which] for array in self._arrays))

    def first(self, n: int) -> RankedItems:
        """Return the first n items, without the memory of the others."""
        return self if len(self) <= n else self.take(np.arange(n))

    def followed_by(self, others: RankedItems) -> RankedItems:
        """Return these items and then those of `others` that are not among them."""
        known = set(self.ids)
        new = others.take(np.array([i for i, name in enumerate(others.ids) if name not in known], np.int64))
        pairs = zip(self._arrays, new._arrays, strict=True)
        return RankedItems(self.ids + new.ids, *map(np.concatenate, pairs))

    def hits(self, start: int = 0, stop: int | None = None) -> list[Hit]:
        """Return the items from `start` to before `stop` as hits."""
        part = slice(start, stop)
        ids, scores, elements = self.ids[part], self.scores[part].tolist(), self.elements[part]
        if not (elements >= 0).any():  # by set vectors: no elements were looked at
            return [Hit(name, score, ()) for name, score in zip(ids, scores, strict=True)]
        similarities = self.similarities[part].tolist()
        return [
            Hit(name, score, tuple(Match(p, e, s[p]) for p, e in enumerate(pairs) if e >= 0))
            for name, score, pairs, s in zip(ids, scores, elements.tolist(), similarities, strict=True)
        ]


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

    def passing(self, at_least: int, only: bool) -> NDArray[np.bool_]:
        """Return which entries satisfy the conditions on their elements."""
        keep: NDArray[np.bool_] = (self.matched >= at_least) & ~self.unwanted
        return keep & ~self.unmatched if only else keep

    def those(self, which: NDArray[np.bool_]) -> Scored:
        """Return the entries that are True in a mask; all of them without a copy."""
        return self if which.all() else self.take(which)


_FIELDS = tuple(f.name for f in fields(Scored))


class TopK:
    """The best k items seen so far; ``best`` has none of them in the beginning."""

    def __init__(self, k: int, least: float, best: Scored) -> None:
        self.k, self.best, self._least = k, best, least

    def add(self, scored: Scored) -> None:
        """Offer items."""
        both = (np.concatenate([getattr(self.best, name), getattr(scored, name)]) for name in _FIELDS)
        self.best = Scored(*both).ranked(self.k)

    def floor(self) -> float:
        """Return the score a further item must reach to enter."""
        if len(self.best) < self.k:
            return self._least
        return max(self._least, float(self.best.score[-1]))


def score_elements(snapshot: Snapshot, rows: Rows, query: Query, matching: str = "greedy") -> Scored:
    """Score rows of segments by one-to-one matching of their elements with the query's."""
    out = no_scores(query.size, sum(len(which) for _, which in rows))
    logistic = query.logistic
    for segment, which, part in _parts(snapshot, rows, out):
        backend.kernels.evaluate(
            segment.elements, int(segment.elements.dtype.itemsize == 2), query.dim, segment.offsets,
            query.rows, query.first_row, query.combine, query.without, logistic.w, logistic.b, query.shift,
            query.least, which, out.score[part], out.similarity_sum[part], out.similarity[part],
            out.element[part], out.matched[part], out.unmatched[part], out.unwanted[part],
        )  # fmt: skip
        if not np.isfinite(out.similarity_sum[part]).all():
            raise segment.not_finite()
    return _optimal(snapshot, out, query) if matching == "optimal" else out


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
    wanted = query.rows[: query.first_row[-1], : query.dim]
    for i in range(len(scored)):
        segment = snapshot.segments[scored.segment[i]]
        stored = segment.elements_of(scored.row[i : i + 1]).astype(np.float64)
        sims = wanted @ stored.T
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


def _merge(examples: NDArray[np.float64], mean: bool) -> NDArray[np.float64]:
    merged: NDArray[np.float64] = examples.mean(axis=0) if mean else examples.max(axis=0)
    return merged


def score_sets(snapshot: Snapshot, rows: Rows, query: Query) -> Scored:
    """Score rows by their set vectors: the sum of the query elements' probabilities of being in the set."""
    assert snapshot.shape.sets is not None
    sets = snapshot.shape.sets
    examples = int(query.first_row[-1])
    sims = np.empty((sum(len(which) for _, which in rows), examples))
    out = no_scores(query.size, len(sims))
    for segment, which, part in _parts(snapshot, rows, out):
        stored, scales = segment.set_rows, segment.array("set_scales").reshape(-1)
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


def ranked_items(snapshot: Snapshot, scored: Scored) -> RankedItems:
    """Return ranked entries with the ids of their items."""
    ids = [""] * len(scored)
    for s in set(scored.segment.tolist()):
        places = np.flatnonzero(scored.segment == s)
        for at, name in zip(places.tolist(), snapshot.segments[s].ids_of(scored.row[places]), strict=True):
            ids[at] = name
    arrays = (scored.score, scored.matched, scored.element, scored.similarity, scored.similarity_sum)
    return RankedItems(ids, *arrays)


def score_known(
    snapshot: Snapshot, scored: Scored, query: Query, known: Mapping[int, Sequence[KnownPair]]
) -> Scored:
    """Return the entries with the scores of items of which pairs are known computed again.

    A pair that matches comes before all others and adds 1 to the score; one that does not is never formed,
    whatever its similarity.
    """
    for i in np.flatnonzero(np.isin(scored.seq, list(known))).tolist():
        segment = snapshot.segments[scored.segment[i]]
        stored = segment.elements_of(scored.row[i : i + 1]).astype(np.float64)
        _Item(query, stored, known[int(scored.seq[i])]).write(scored, i)
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
        for pair in known:
            self._learn(pair)

    def _learn(self, pair: KnownPair) -> None:
        member, element, is_match = pair
        if not 0 <= element < self.pair.shape[1] or member < 0:
            return  # of an item that has changed since
        if member < self.query.size:
            self.key[member, element] = np.inf if is_match else -np.inf
            self.share[member, element] = float(is_match)
            self.matches[member, element] = is_match
        elif member < self.query.size + self.query.without:
            self.unwanted[member - self.query.size, element] = is_match

    def write(self, scored: Scored, i: int) -> None:
        """Enter the item's scores into its place."""
        pairs = [(p, e) for p, e in greedy_pairs(self.key) if self.key[p, e] > -np.inf]
        scored.element[i], scored.similarity[i] = -1, 0.0
        for p, e in pairs:
            scored.element[i, p], scored.similarity[i, p] = e, self.pair[p, e]
        scored.score[i] = sum(float(self.share[p, e]) for p, e in pairs)
        scored.similarity_sum[i] = sum(float(self.pair[p, e]) for p, e in pairs)
        scored.matched[i] = sum(bool(self.matches[p, e]) for p, e in pairs)
        scored.unmatched[i] = bool((~self.matches).all(axis=0).any())
        scored.unwanted[i] = bool(self.unwanted.any())


def rank_given(
    ids: Sequence[str],
    elements: NDArray[np.float32],
    counts: NDArray[np.int64],
    query: QueryLike,
    options: SearchOptions,
    logistic: Logistic,
) -> RankedItems:
    """Return the best of some items by the matching of their elements, as `SetIndex.rerank` does.

    Of equal items the one given first comes first. Of the options, those on elements count; ``known`` and
    optimal matching are for items of an index.

    Parameters
    ----------
    ids, elements, counts
        The items, as `SetIndex.add` takes them; each has an element at least.
    query, options
        As in `SetIndex.search`.
    logistic
        (w, b) of the score of a pair of elements.

    Examples
    --------
    >>> elements = np.eye(3, dtype=np.float32)
    >>> found = rank_given(["a", "b"], elements, np.array([1, 2]), elements[1:], SearchOptions(k=1),
    ...                    Logistic(20.0, -8.0))
    >>> found.ids, found.matched.tolist()
    (['b'], [2])
    """
    if options.known or options.matching != "greedy":
        raise InvalidInputError("known pairs and optimal matching are for items of an index: leave them out")
    dim = elements.shape[1]
    unwanted = [] if options.without is None else query_elements(options.without, dim, "without")
    wanted = query_elements(query, dim)
    asked = Query.of(wanted, unwanted, options.examples, logistic, options.scoring)
    out = no_scores(asked.size, len(ids))
    out.row[:] = out.seq[:] = np.arange(len(ids))
    if len(ids):
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        backend.kernels.evaluate(
            np.ascontiguousarray(elements, np.float32), 0, dim, offsets, asked.rows, asked.first_row,
            asked.combine, asked.without, asked.logistic.w, asked.logistic.b, asked.shift, asked.least,
            out.row, out.score, out.similarity_sum, out.similarity, out.element, out.matched, out.unmatched,
            out.unwanted,
        )  # fmt: skip
    finite = np.isfinite(out.similarity_sum)
    if not finite.all():
        raise StorageError(f"item {ids[int(finite.argmin())]!r} holds NaN or infinity: store it again")
    best = out.those(out.passing(options.at_least, options.only)).ranked(options.k)
    names = [ids[i] for i in best.row.tolist()]
    arrays = (best.score, best.matched, best.element, best.similarity, best.similarity_sum)
    return RankedItems(names, *arrays)
