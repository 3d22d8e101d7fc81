"""Pre-tagging (paper 5.3): known people are recognised once, and an inverted index answers by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.errors import InvalidInputError, one_of
from setnet.index.results import Hit, Match
from setnet.index.search.modes import Allowed, Rows
from setnet.index.search.options import Options
from setnet.index.search.query import Query, as_people, merged
from setnet.index.search.ranking import Top, hits_of, score_elements
from setnet.index.storage.catalog import Catalog
from setnet.index.storage.snapshot import Snapshot
from setnet.sets import Logistic

__all__ = ["EXAMPLE_LIMIT", "TagQuery", "Tagged", "gallery_rows", "tagged", "write_tags"]

EXAMPLE_LIMIT = 10
ROWS = 16384  # elements compared at once

Tagged = tuple[int, int, int, float]  # tag, item, element, similarity


def gallery_rows(gallery: Mapping[str, ArrayLike], dim: int) -> tuple[list[str], NDArray[np.float32]]:
    """Return the names and one descriptor for each, from up to 10 examples per known person."""
    if not gallery:
        raise InvalidInputError("the gallery is empty: give at least one name with its examples")
    rows = []
    for name, examples in gallery.items():
        if not isinstance(name, str) or not name:
            raise InvalidInputError(f"gallery name {name!r} must be a string that is not empty")
        group = np.atleast_2d(np.asarray(examples, dtype=np.float32))
        if len(group) > EXAMPLE_LIMIT:
            raise InvalidInputError(f"{len(group)} examples of {name!r}: at most {EXAMPLE_LIMIT} are used")
        rows.append(merged(as_people([group], dim, f"gallery {name!r}")[0]))
    return list(gallery), np.concatenate(rows)


def tagged(
    snapshot: Snapshot, people: NDArray[np.float32], threshold: float, logistic: Logistic
) -> Iterator[list[Tagged]]:
    """Yield, chunk by chunk, who is in which item: each element is at most the one it resembles most."""
    if not 0 < threshold < 1:
        raise InvalidInputError(f"threshold {threshold} must lie between 0 and 1: it is a probability")
    least = (np.log(threshold / (1 - threshold)) - logistic.b) / logistic.w
    for s, segment in enumerate(snapshot.segments):
        owner = np.repeat(np.arange(len(segment)), segment.counts)
        dead = snapshot.dead[s]
        for at in range(0, len(owner), ROWS):
            sims = segment.elements[at : at + ROWS].astype(np.float32) @ people.T
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


def write_tags(
    catalog: Catalog, names: list[str], rows: NDArray[np.float32], found: Iterator[list[Tagged]]
) -> int:
    """Replace the inverted index; return how many (person, item) entries it has."""
    catalog.db.execute("DELETE FROM tags")
    catalog.db.execute("DELETE FROM tag_names")
    entries: list[tuple[Any, ...]] = [
        (i, name, row.tobytes()) for i, (name, row) in enumerate(zip(names, rows, strict=True))
    ]
    catalog.db.executemany("INSERT INTO tag_names VALUES (?, ?, ?)", entries)
    sql = (
        "INSERT INTO tags VALUES (?, ?, ?, ?) ON CONFLICT (tag, seq) DO UPDATE "
        "SET element = excluded.element, similarity = excluded.similarity "
        "WHERE similarity < excluded.similarity"
    )
    for part in found:
        catalog.db.executemany(sql, part)
    return catalog.count("tags")


@dataclass(frozen=True)
class TagQuery:
    """A search by names on one state of the index."""

    catalog: Catalog
    snapshot: Snapshot
    allowed: Allowed
    options: Options
    logistic: Logistic
    unwanted: list[NDArray[np.float32]]

    def hits(self, people: Any) -> list[Hit]:
        """Return the items tagged with most of the people; re-ranked when descriptors are given."""
        names = [people] if isinstance(people, str) else list(people)
        if not names or not all(isinstance(name, str) for name in names):
            raise InvalidInputError("in mode 'tags' people are names, or a mapping from names to descriptors")
        ranked = self._ranked(names)
        order = {seq: at for at, (seq, _) in enumerate(ranked)}
        living = self.snapshot.find(np.array(sorted(order), np.int64))
        if self.allowed is not None:
            living = [(s, rows[self.allowed[s][rows]]) for s, rows in living]
        if isinstance(people, Mapping) or self.unwanted or self.options.of_elements:
            given = list(people.values()) if isinstance(people, Mapping) else self._gallery(names)
            return self._reranked(living, order, given)
        hits = []
        for s, rows in living:
            segment = self.snapshot.segments[s]
            for seq, item in zip(segment.seq[rows].tolist(), segment.ids_of(rows), strict=True):
                pairs = tuple(Match(names[p], e, similarity) for p, e, similarity in ranked[order[seq]][1])
                hits.append((order[seq], Hit(item, float(len(pairs)), pairs)))
        return [hit for _, hit in sorted(hits, key=lambda hit: hit[0])[: self.options.k]]

    def _ranked(self, names: Sequence[str]) -> list[tuple[int, list[tuple[int, int, float]]]]:
        """Return (item, [(person, element, similarity)]), most of the people first.

        Equal items go by the sum of similarities, then by order of insertion.
        """
        known = dict(self.catalog.db.execute("SELECT name, tag FROM tag_names").fetchall())
        found: dict[int, list[tuple[int, int, float]]] = {}
        for person, name in enumerate(names):
            if name not in known:
                raise one_of("tag", name, sorted(known)[:20] or ["(the index has no tags: call tag() first)"])
            sql = "SELECT seq, element, similarity FROM tags WHERE tag = ?"
            for seq, element, similarity in self.catalog.db.execute(sql, (known[name],)):
                found.setdefault(seq, []).append((person, element, similarity))
        return sorted(found.items(), key=lambda item: (-len(item[1]), -sum(m[2] for m in item[1]), item[0]))

    def _gallery(self, names: Sequence[str]) -> list[NDArray[np.float32]]:
        rows = dict(self.catalog.db.execute("SELECT name, descriptor FROM tag_names").fetchall())
        return [np.frombuffer(rows[name], np.float32)[None, :] for name in names]

    def _reranked(self, living: Rows, order: dict[int, int], people: list[Any]) -> list[Hit]:
        """Re-rank the first candidates by their elements."""
        segments = self.snapshot.segments
        places = [
            (s, rows, np.array([order[q] for q in segments[s].seq[rows].tolist()])) for s, rows in living
        ]
        ranks = np.sort(np.concatenate([at for _, _, at in places])) if places else np.empty(0)
        cut = ranks[: self.options.candidates][-1] if len(ranks) else -1
        first = [(s, rows[at <= cut]) for s, rows, at in places if (at <= cut).any()]
        groups = as_people(people, self.snapshot.shape.dim)
        query = Query.of(groups, self.unwanted, self.options.examples, self.logistic)
        scored = score_elements(self.snapshot, first, query, self.options.matching)
        top = Top(self.options.k)
        top.add(scored.take(scored.passing(self.options.at_least, self.options.only)))
        return hits_of(self.snapshot, top.best_found())
