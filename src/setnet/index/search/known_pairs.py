"""Pairs that somebody has judged: a query element and an element of an item that match, or never do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels.reference import greedy_pairs
from setnet.index.search.query import Query
from setnet.index.search.ranking import Scored
from setnet.index.storage.snapshot import Snapshot


class KnownPair(NamedTuple):
    """What is known of a query element and an element of an item: they match, or they do not.

    The vectors of ``without`` are numbered after the query elements.
    """

    query_element: int
    element: int
    is_match: bool


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
