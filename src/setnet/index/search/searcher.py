"""Runs queries on one state of an index, in the mode that their options name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.index.search import modes
from setnet.index.search.query import Query, QueryLike, aggregated, query_elements
from setnet.index.search.ranked_items import RankedItems
from setnet.index.search.ranking import ranked_items
from setnet.index.search.scope import Scope
from setnet.index.settings import GIVEN, Settings
from setnet.sets import Aggregator


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
        by_codes = by_codes and self.scope.snapshot.bit_coded and not options.aggregate_query
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
            found = modes.exact(self.scope, exact)
        elif options.mode == "set":
            found = modes.set_only(self.scope, [self._set_query(query) for query in given], exact)
        elif by_codes:
            found = modes.fast(self.scope, exact)
        else:
            found = modes.fast_by_sets(self.scope, [self._set_query(query) for query in given], exact)
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
