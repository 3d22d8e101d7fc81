"""The second pass: exact scores of chosen items, and the best k of them so far."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels import backend
from setnet.index.search.query import Query
from setnet.index.search.ranked_items import RankedItems
from setnet.index.storage.segments.segment import Segment
from setnet.index.storage.snapshot import Snapshot

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


class Top:
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
    from scipy.optimize import linear_sum_assignment  # slow to import, rarely needed

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
        chosen, element = linear_sum_assignment(-value)
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
