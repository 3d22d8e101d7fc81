"""What one search runs on: a snapshot of the index, the rows its conditions leave, and its options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from setnet.index.search.known_pairs import KnownPair, score_known
from setnet.index.search.options import SearchOptions
from setnet.index.search.query import Query
from setnet.index.search.ranking import Rows, Scored, score_elements
from setnet.index.storage.snapshot import Snapshot

Allowed = list[NDArray[np.bool_]] | None


@dataclass(frozen=True, slots=True)
class Scope:
    """One search on one state of an index.

    ``allowed`` says, per segment, which rows satisfy the conditions on attributes; None without conditions.
    ``known`` has what is known of pairs, by the items' sequence numbers.
    """

    snapshot: Snapshot
    options: SearchOptions
    allowed: Allowed = None
    known: Mapping[int, Sequence[KnownPair]] = field(default_factory=dict)

    def score_all(self, rows: Rows, query: Query) -> Scored:
        """Score rows by the matching of their elements, with regard to what is known of pairs."""
        scored = score_elements(self.snapshot, rows, query, self.options.matching)
        return score_known(self.snapshot, scored, query, self.known) if self.known else scored

    def sure_rows(self) -> Rows:
        """Return the rows with a pair that is known to match: their scores may exceed their bounds."""
        seqs = [seq for seq, pairs in self.known.items() if any(pair.is_match for pair in pairs)]
        return self.snapshot.find(np.array(sorted(seqs), np.int64)) if seqs else []

    def score(self, rows: Rows, query: Query) -> Scored:
        """Score rows by the matching of their elements, leaving out those that fail a condition."""
        scored = self.score_all(rows, query)
        return scored.those(scored.passing(self.options.at_least, self.options.only))

    def best_of(self, rows: Rows, query: Query) -> Scored:
        """Return the best k of some rows, by the matching of their elements."""
        return self.score(rows, query).ranked(self.options.k)
