"""What one search runs on: a snapshot of the index, the rows its conditions leave, and its options."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.index.search.options import SearchOptions
from setnet.index.search.query import Query
from setnet.index.search.ranking import Rows, Scored, score_elements
from setnet.index.storage.snapshot import Snapshot

Allowed = list[NDArray[np.bool_]] | None


@dataclass(frozen=True, slots=True)
class Scope:
    """One search on one state of an index.

    ``allowed`` says, per segment, which rows satisfy the conditions on attributes; None without conditions.
    """

    snapshot: Snapshot
    options: SearchOptions
    allowed: Allowed = None

    def least_score(self, query: Query) -> float:
        """Return the lowest score that ``at_least`` matches can have: one half each."""
        at_least = self.options.at_least
        return -1.0 if query.averages or not at_least else 0.5 * at_least * (1 - 1e-9)

    def score(self, rows: Rows, query: Query) -> Scored:
        """Score rows by the matching of their elements, leaving out those that fail a condition."""
        scored = score_elements(self.snapshot, rows, query, self.options.matching)
        return scored.those(scored.passing(self.options.at_least, self.options.only))

    def best_of(self, rows: Rows, query: Query) -> Scored:
        """Return the best k of some rows, by the matching of their elements."""
        return self.score(rows, query).ranked(self.options.k)
