"""Pre-tagging (paper 5.3): known elements are recognised once, and an inverted index answers by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.errors import InvalidInputError, StorageError, one_of
from setnet.index.results import Hit, Match
from setnet.index.search.query import QueryLike, merged, query_elements
from setnet.index.search.ranking import Rows
from setnet.index.search.scope import Scope
from setnet.index.storage.catalog import Catalog, TagEntry
from setnet.index.storage.snapshot import Snapshot
from setnet.sets import Logistic

EXAMPLE_LIMIT = 10
ROWS = 16384  # elements compared at once


def gallery_rows(gallery: Mapping[str, ArrayLike], dim: int) -> tuple[list[str], NDArray[np.float32]]:
    """Return the names and one descriptor for each, from up to 10 examples per name."""
    if not gallery:
        raise InvalidInputError("the gallery is empty: give at least one name with its examples")
    rows = []
    for name, examples in gallery.items():
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f"gallery name {name!r} must be a string that is not empty")
        group = np.atleast_2d(np.asarray(examples, dtype=np.float32))
        if len(group) > EXAMPLE_LIMIT:
            raise InvalidInputError(f"{len(group)} examples of {name!r}: at most {EXAMPLE_LIMIT} are used")
        rows.append(merged(query_elements([group], dim, f"gallery {name!r}")[0]))
    return list(gallery), np.concatenate(rows)


def tagged(
    snapshot: Snapshot, gallery: NDArray[np.float32], threshold: float, logistic: Logistic
) -> Iterator[list[TagEntry]]:
    """Yield, chunk by chunk, which tags are in which items: each element has at most its best one."""
    if not 0 < threshold < 1:
        raise InvalidInputError(f"threshold {threshold} must lie between 0 and 1: it is a probability")
    least = (np.log(threshold / (1 - threshold)) - logistic.b) / logistic.w
    for s, segment in enumerate(snapshot.segments):
        owner = np.repeat(np.arange(len(segment)), segment.counts)
        dead = snapshot.dead[s]
        for at in range(0, len(owner), ROWS):
            sims = segment.elements[at : at + ROWS].astype(np.float32) @ gallery.T
            who = sims.argmax(axis=1)
            best = sims[np.arange(len(who)), who]
            row = owner[at : at + ROWS]
            keep = best >= least if dead is None else (best >= least) & ~dead[row]
            element = np.arange(at, at + len(who)) - segment.offsets[row]
            yield list(
                zip(
                    who[keep].tolist(),
                    segment.seq[row[keep]].tolist(),
                    element[keep].tolist(),
                    best[keep].tolist(),
                    strict=True,
                )
            )


@dataclass(frozen=True)
class TagQuery:
    """A search by names on one state of the index."""

    catalog: Catalog
    scope: Scope
    rerank: Callable[[Sequence[ArrayLike], Rows], list[Hit]]

    def hits(self, query: QueryLike) -> list[Hit]:
        """Return the items tagged with most of the names; re-ranked when descriptors are given."""
        names = [query] if isinstance(query, str) else list(query)
        if not names or not all(isinstance(name, str) for name in names):
            raise InvalidInputError("in mode 'tags' a query is names, or a mapping from names to descriptors")
        scope, options = self.scope, self.scope.options
        ranked = self._ranked(names)
        order = {seq: at for at, (seq, _) in enumerate(ranked)}
        living = scope.snapshot.find(np.array(sorted(order), np.int64))
        if scope.allowed is not None:
            living = [(s, rows[scope.allowed[s][rows]]) for s, rows in living]
        if isinstance(query, Mapping) or options.without is not None or options.of_elements:
            given = list(query.values()) if isinstance(query, Mapping) else self._gallery(names)
            return self._reranked(living, order, given)
        hits = []
        for s, rows in living:
            segment = scope.snapshot.segments[s]
            for seq, item in zip(segment.seq[rows].tolist(), segment.ids_of(rows), strict=True):
                pairs = tuple(Match(names[q], e, similarity) for q, e, similarity in ranked[order[seq]][1])
                hits.append((order[seq], Hit(item, float(len(pairs)), pairs)))
        return [hit for _, hit in sorted(hits, key=lambda hit: hit[0])[: options.k]]

    def _ranked(self, names: Sequence[str]) -> list[tuple[int, list[tuple[int, int, float]]]]:
        """Return (item, [(position of the name, element, similarity)]), most of the names first.

        Equal items go by the sum of similarities, then by order of insertion.
        """
        known = dict(self.catalog.rows((str, int), "SELECT name, tag FROM tag_names"))
        found: dict[int, list[tuple[int, int, float]]] = {}
        for position, name in enumerate(names):
            if name not in known:
                raise one_of("tag", name, sorted(known)[:20] or ["(the index has no tags: call tag() first)"])
            sql = "SELECT seq, element, similarity FROM tags WHERE tag = ?"
            for seq, element, similarity in self.catalog.rows((int, int, float), sql, (known[name],)):
                found.setdefault(seq, []).append((position, element, similarity))
        return sorted(found.items(), key=lambda item: (-len(item[1]), -sum(m[2] for m in item[1]), item[0]))

    def _gallery(self, names: Sequence[str]) -> list[NDArray[np.float32]]:
        found = self.catalog.rows((str, bytes), "SELECT name, descriptor FROM tag_names")
        dim = self.scope.snapshot.shape.dim
        rows = {name: np.frombuffer(data, np.float32) for name, data in found if len(data) == 4 * dim}
        if missing := [name for name in names if name not in rows]:
            raise StorageError(f"the descriptor of tag {missing[0]!r} is damaged: make the tags again")
        return [rows[name][None, :] for name in names]

    def _reranked(self, living: Rows, order: dict[int, int], given: Sequence[ArrayLike]) -> list[Hit]:
        """Re-rank the first candidates by their elements."""
        segments, options = self.scope.snapshot.segments, self.scope.options
        places = [
            (s, rows, np.array([order[q] for q in segments[s].seq[rows].tolist()])) for s, rows in living
        ]
        ranks = np.sort(np.concatenate([at for _, _, at in places])) if places else np.empty(0)
        cut = ranks[: options.candidates][-1] if len(ranks) else -1
        first = [(s, rows[at <= cut]) for s, rows, at in places if (at <= cut).any()]
        return self.rerank(given, first)
