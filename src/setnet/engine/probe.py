"""Reading inverted lists: items whose elements lie near a query's, and what share of the best they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels import backend
from setnet.engine.lists import DEPTHS, PROBES, code_units
from setnet.engine.query import Query
from setnet.engine.segment import Segment
from setnet.engine.snapshot import Allowed, Snapshot

Floats = NDArray[np.float32]
READ_ALL = 0.6  # of the products of all elements: from there on scoring everything is faster
SCATTERED = 2.0  # what a product costs with an element that lies somewhere else
CLEAR = 0.9  # of a score: an item of which an element surely matches
ROWS = 4  # of a query: from there on scoring everything takes longer for each of them, too
LISTED = 0.5  # of an index's items: where fewer are in lists, scoring everything is as fast


class ListsRead(NamedTuple):
    """What was read of inverted lists, of the whole index or of a part of it.

    ``expected`` of the ``items`` are in the ``read`` of ``lists``, or in none at all, as measured; ``listed``
    of the items are in lists.
    """

    read: int
    lists: int
    expected: float
    items: int
    listed: int

    def plus(self, other: ListsRead) -> ListsRead:
        """Return what was read of two parts of an index."""
        return self._replace(
            read=self.read + other.read,
            lists=self.lists + other.lists,
            expected=self.expected + other.expected,
        )

    @property
    def recall(self) -> float:
        """The share of the best items that this is expected to find."""
        return (self.expected + self.items - self.listed) / self.items

    def __str__(self) -> str:
        return f"{self.read} of {self.lists} lists for each example"


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """How many lists of each segment are read, and what share of the best that finds.

    ``open_rows`` says, by segment, which rows may be found where not all may. Of the ``items`` of the index,
    ``listed`` are in lists.
    """

    probes: dict[int, tuple[int, float]]
    open_rows: dict[int, NDArray[np.bool_]]
    items: int
    listed: int

    def candidates(
        self, snapshot: Snapshot, query: Query
    ) -> tuple[list[tuple[int, NDArray[np.int64], Floats]], list[int], ListsRead]:
        """Return the segment, rows and estimated scores of what promises most in each segment's lists.

        Where too few of a segment's are clear hits, the others are as good as thousands more, of which the
        same lists hold a smaller share: then more are read, or its number is returned, as all of it is to
        be scored.
        """
        near, unread, read, lists, expected = [], list[int](), 0, 0, 0.0
        clear = CLEAR if query.w else float(query.row_least.sum())
        for s, (probes, recall) in self.probes.items():
            segment, is_open = snapshot.segments[s], self.open_rows.get(s)
            found = probe_lists(segment, query, probes, is_open)
            own = -(-query.k * len(segment) // self.items)
            if np.count_nonzero(found[1] >= clear) < own:
                if deeper := _fewest_probes(segment, query, len(DEPTHS) - 1):
                    probes, recall = deeper
                    found = probe_lists(segment, query, probes, is_open)
                else:
                    unread.append(s)
                    probes, recall = len(segment.array("list_half_squares")), 1.0
            if s not in unread:
                near.append((s, *found))
            read, lists = read + probes, lists + len(segment.array("list_half_squares"))
            expected += len(segment) * recall
        return near, unread, ListsRead(read, lists, expected, self.items, self.listed)


def plan_probes(snapshot: Snapshot, allowed: Allowed, query: Query) -> ProbePlan | None:
    """Return the least effort that finds so much of the best as the query asks for, by its own measurements.

    None when scoring everything is as fast. The best k of Q query elements are taken to be among the Q k best
    of one, and, under a condition that leaves a share of the items open, among the Q k / share best of all.
    Which elements of an item no query element matches, lists do not tell at all.
    """
    items, in_lists = snapshot.listed_items
    if query.only or not query.k or query.recall == 1 or in_lists <= LISTED * items:
        return None
    probes, open_rows = dict[int, tuple[int, float]](), dict[int, NDArray[np.bool_]]()
    for s, segment in enumerate(snapshot.segments):
        if not segment.listed:
            continue
        dead, share = snapshot.dead[s], 1.0
        if allowed is not None or dead is not None:
            mask = np.ones(len(segment), bool) if allowed is None else allowed[s]
            open_rows[s] = mask if dead is None else mask & ~dead
            share = np.count_nonzero(open_rows[s]) / len(segment)
        depth = int(np.searchsorted(DEPTHS, query.k * query.size / max(share, 1e-9)))
        effort = _fewest_probes(segment, query, depth) if depth < len(DEPTHS) else None
        if effort is None:
            return None
        probes[s] = effort
    return ProbePlan(probes, open_rows, items, in_lists)


def _fewest_probes(segment: Segment, query: Query, depth: int) -> tuple[int, float] | None:
    """Return how many lists give the wanted recall at one of `DEPTHS`, and the recall measured for them.

    None where reading so many takes longer than scoring everything.
    """
    recalls = segment.array("list_recall")[depth]
    at = int(np.argmax(recalls >= query.recall))
    if recalls[at] < query.recall or _products(segment, query, int(PROBES[at])) > READ_ALL:
        return None
    return int(PROBES[at]), float(recalls[at])


def candidates_for(k: int) -> int:
    """Return how many items are scored by floats: more than k, since estimates are not scores."""
    return k + k // 2 + 40


def _products(segment: Segment, query: Query, probes: int) -> float:
    """Return how many products of codes are formed, as a share of those with all elements."""
    rows, elements = len(query.wanted), max(1, int(segment.offsets[-1]))
    lists = len(segment.array("list_half_squares"))
    again = min(1.0, rows * 4 * candidates_for(query.k) / max(1, len(segment)))
    return min(1.0, probes / lists) * min(rows, ROWS) + 2 * lists / elements + SCATTERED * again


@dataclass(frozen=True, slots=True)
class QueryRows:
    """A query's rows in eight bits, even and odd dimensions apart, as the kernel reads them.

    A similarity is ``step`` times the factor of a code times (twice the sum of products less ``middle``).
    """

    codes: NDArray[np.int8]
    middle: NDArray[np.int32]
    step: Floats
    least: Floats

    @classmethod
    def of(cls, query: Query) -> QueryRows:
        """Quantise a query."""
        rows = query.wanted
        step = np.maximum(np.abs(rows).max(axis=1), 1e-30) / 127
        levels = np.zeros((len(rows), code_units(rows.shape[1]) * 8))
        levels[:, : rows.shape[1]] = np.rint(rows / step[:, None])
        codes = np.ascontiguousarray(levels.reshape(len(rows), -1, 2).swapaxes(1, 2), np.int8)
        half = (step / 2).astype(np.float32)
        # of matches all are read, but a sum of maxima has none
        least = query.row_least.astype(np.float32) / half if query.w else np.full_like(half, np.inf)
        return cls(codes, (15 * levels.sum(axis=1)).astype(np.int32), half, least)

    def arguments(self, query: Query) -> tuple[Any, ...]:
        """Return the arguments of the kernel that say what is asked."""
        logistic = query.logistic
        return (self.codes, self.middle, self.step, self.least, query.first_row, query.combine,
                query.shift.astype(np.float32), query.w, logistic.threshold)  # fmt: skip


def probe_lists(
    segment: Segment, query: Query, probes: int, is_open: NDArray[np.bool_] | None
) -> tuple[NDArray[np.int64], Floats]:
    """Return the rows of a segment that promise most, and their estimated scores; only open ones."""
    names = ("centres", "half_squares", "start", "codes", "factors", "items")
    lists = [segment.array(f"list_{name}") for name in names]
    rows, factors = segment.array("list_rows"), segment.array("list_row_factors")
    most = candidates_for(query.k)
    found = np.empty(most, np.int64), np.empty(most, np.float32)
    n = backend.kernels.search_lists(
        code_units(query.dim), *lists, segment.offsets, rows, factors, b"" if is_open is None else is_open,
        *QueryRows.of(query).arguments(query), probes, 4 * most, most, *found, np.empty(2, np.int64),
    )  # fmt: skip
    return found[0][:n], found[1][:n]
