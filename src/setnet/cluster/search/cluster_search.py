"""One search over all shards of a published state, in as few rounds as give the answer of one index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.cluster.search import calls, merging
from setnet.cluster.search.dispatch import Dispatcher
from setnet.cluster.storage.places import shard_of
from setnet.cluster.storage.published import Published
from setnet.errors import InvalidInputError
from setnet.index import (
    Candidates,
    Hit,
    ItemsLike,
    QueryLike,
    RankedItems,
    SearchOptions,
    Settings,
    query_elements,
)
from setnet.workers import Message

Groups = list[NDArray[np.float32]]  # one array of examples per query element


@dataclass(frozen=True, slots=True)
class View:
    """What searches see: a version of each shard of an epoch, and the settings of all."""

    epoch: int
    published: Published
    settings: Settings

    def address(self, shard: int) -> dict[str, Any]:
        """Return the fields that name a shard's version."""
        return {"epoch": self.epoch, "shard": shard, "version": self.published.versions[shard].name}


@dataclass
class ClusterSearch:
    """A search under way; ``missing`` grows with the shards that did not answer, where that is allowed."""

    view: View
    dispatcher: Dispatcher
    options: SearchOptions
    partial: bool = False
    missing: set[int] = field(default_factory=set)

    def ranked(self, queries: Sequence[QueryLike]) -> list[RankedItems]:
        """Return the best k items of each query, in every mode but tags."""
        if self.options.mode == "tags":
            raise InvalidInputError("mode 'tags' has no ranked(): use search()")
        dim = calls.query_dim(self.options, self.view.settings)
        groups = [query_elements(query, dim) for query in queries]
        if not self._shards:  # nothing was published yet
            return [RankedItems.none(len(query)) for query in groups]
        if self.options.mode != "fast":
            return self._best(groups, self.options)
        if self.options.first == "sets" or self.options.aggregate_query:
            return self._fast_by_sets(groups)
        return self._fast(groups)

    def tagged(self, queries: Sequence[QueryLike]) -> list[list[Hit]]:
        """Return the hits of each query by names."""
        return [self._tagged(query) for query in queries]

    def _best(self, queries: Sequence[Groups], options: SearchOptions) -> list[RankedItems]:
        """Return the best k of all shards: a share of k from each, and all k where that was too few."""
        k = options.k
        share = merging.first_k(k, len(self._shards))
        found = self._ask(queries, replace(options, k=share))
        asked = dict.fromkeys(found, share)
        while True:
            per_query = [{shard: parts[i] for shard, parts in found.items()} for i in range(len(queries))]
            best = [merging.merged(parts, k, len(q)) for parts, q in zip(per_query, queries, strict=True)]
            short = [
                shard
                for shard, parts in found.items()
                if any(merging.may_have_more(p, asked[shard], b, k) for p, b in zip(parts, best, strict=True))
            ]
            if not short:
                return best
            again = self._ask(queries, options, short)
            for shard in short:  # one that is silent now is missing as a whole
                found.pop(shard)
            found |= again
            asked |= dict.fromkeys(again, k)

    def _fast_by_sets(self, queries: Sequence[Groups]) -> list[RankedItems]:
        options = self.options
        most = max(options.k, options.candidates)
        coarse = replace(
            options, mode="set", k=most, at_least=0, only=False, without=None, scoring=None, known=None
        )
        chosen = [self._by_shard(items.ids) for items in self._best(queries, coarse)]
        return self._reranked(queries, chosen)

    def among(self, query: QueryLike, ids: Sequence[str]) -> RankedItems:
        """Return the best k of the items named by ``ids``, by the matching of their elements."""
        groups = query_elements(query, self.view.settings.shape.dim)
        if not self._shards:
            raise InvalidInputError("the cluster is empty: publish() shows what was added")
        return self._reranked([groups], [self._by_shard(ids)])[0]

    def _by_shard(self, ids: Sequence[str]) -> dict[int, list[str]]:
        found: dict[int, list[str]] = {}
        for name in ids:
            found.setdefault(shard_of(name, len(self._shards)), []).append(name)
        return found

    def _fast(self, queries: Sequence[Groups]) -> list[RankedItems]:
        """Score what one index would: the best estimates of all shards, from each a share at first."""
        options, wanted = self.options, max(self.options.k, self.options.candidates)
        share = merging.first_k(wanted, len(self._shards))
        found = self._candidates(queries, share, self._shards)
        parts = [{shard: some[i] for shard, some in found.items()} for i in range(len(queries))]
        if all(p and Candidates.are_all_scored(list(p.values()), options.k) for p in parts):
            return self._best(queries, replace(options, mode="exact"))
        low = [merging.least_estimate(p, wanted) if p else 0.0 for p in parts]
        short = [
            shard
            for shard, some in found.items()
            if share < wanted
            and any(merging.may_estimate_more(c, share, least) for c, least in zip(some, low, strict=True))
        ]
        if short:
            found |= self._candidates(queries, wanted, short)
            parts = [{shard: some[i] for shard, some in found.items()} for i in range(len(queries))]
            low = [merging.least_estimate(p, wanted) if p else 0.0 for p in parts]
        return self._reranked(
            queries,
            [
                {shard: merging.chosen(c, least) for shard, c in p.items()}
                for p, least in zip(parts, low, strict=True)
            ],
        )

    def _candidates(
        self, queries: Sequence[Groups], wanted: int, shards: Sequence[int]
    ) -> dict[int, list[Candidates]]:
        message = self._message(
            "candidates", queries, replace(self.options, k=wanted, candidates=max(1, wanted))
        )
        replies = self._replies(dict.fromkeys(shards, message))
        return {shard: calls.candidates_in(reply) for shard, reply in replies.items()}

    def _reranked(
        self, queries: Sequence[Groups], chosen: Sequence[Mapping[int, ItemsLike]]
    ) -> list[RankedItems]:
        """Return the best k of chosen items, of each query in each shard, by their elements."""
        options = replace(self.options, mode="exact", aggregate_query=False, where=None)
        shards = sorted({shard for items in chosen for shard, some in items.items() if len(some)})
        message = {
            shard: calls.with_items(
                self._message("rerank", queries, options), [items.get(shard, []) for items in chosen]
            )
            for shard in shards
        }
        found = {shard: calls.ranked_in(reply) for shard, reply in self._replies(message).items()}
        return [
            merging.merged({shard: parts[i] for shard, parts in found.items()}, options.k, len(query))
            for i, query in enumerate(queries)
        ]

    def _tagged(self, query: QueryLike) -> list[Hit]:
        """Rank by tags; then, where elements matter, those among the first candidates by their elements.

        A shard's share of the first candidates are its own first ones, so that their number says which.
        """
        options = self.options
        with_elements = isinstance(query, Mapping) or options.without is not None or options.of_elements
        if not with_elements:
            return [hit for _, hit in self._by_tags(query, options)][: options.k]
        names: Any = [query] if isinstance(query, str) else list(query)
        plain = replace(
            options, k=options.candidates, at_least=0, only=False, without=None, known=None, scoring=None
        )
        first = [shard for shard, _ in self._by_tags(names, plain)][: options.candidates]
        counts = {shard: first.count(shard) for shard in set(first)}
        parts = self._hits(query, {shard: replace(options, candidates=n) for shard, n in counts.items()})
        return [hit for _, hit in merging.merged_tags(parts)][: options.k]

    def _by_tags(self, query: QueryLike, options: SearchOptions) -> list[tuple[int, Hit]]:
        return merging.merged_tags(self._hits(query, dict.fromkeys(self._shards, options)))

    def _hits(self, query: QueryLike, options: Mapping[int, SearchOptions]) -> dict[int, list[Hit]]:
        messages = {shard: self._message("search", [query], chosen) for shard, chosen in options.items()}
        return {shard: calls.hits_in(reply)[0] for shard, reply in self._replies(messages).items()}

    def _ask(
        self, queries: Sequence[QueryLike], options: SearchOptions, shards: Sequence[int] | None = None
    ) -> dict[int, list[RankedItems]]:
        message = self._message("search", queries, options)
        replies = self._replies(dict.fromkeys(self._shards if shards is None else shards, message))
        return {shard: calls.ranked_in(reply) for shard, reply in replies.items()}

    def _message(
        self, name: str, queries: Sequence[QueryLike], options: SearchOptions, **more: Any
    ) -> Message:
        return calls.call(name, queries, options, self.view.settings, **more)

    def _replies(self, messages: Mapping[int, Message]) -> dict[int, Message]:
        addressed = {
            shard: replace(message, fields={**message.fields, **self.view.address(shard)})
            for shard, message in messages.items()
        }
        replies, missing = self.dispatcher.ask(addressed, partial=self.partial)
        self.missing.update(missing)
        unknown = [reply.fields.get("unknown") for reply in replies.values()]
        if unknown and all(unknown):  # an attribute that no item of any shard has
            raise InvalidInputError(unknown[0])
        return replies

    @property
    def _shards(self) -> range:
        return range(len(self.view.published.versions))
