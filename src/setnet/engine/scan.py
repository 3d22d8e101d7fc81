"""Passes over the codes of all segments: bounds and estimates that leave few items to score."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from setnet.engine.codes import Codes
from setnet.engine.kernels import backend
from setnet.engine.kernels.backend import threads as kept_threads
from setnet.engine.kernels.lanes import LANES
from setnet.engine.query import KnownPair, Query, SearchOptions
from setnet.engine.rank import Rows, Scored, score_elements, score_known
from setnet.engine.segment import Segment
from setnet.engine.snapshot import Field, Snapshot
from setnet.heads.bit_codes import BitCodec
from setnet.system import usable_cores

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


TASK = 4 * 1024 * 1024  # bytes of codes given to a thread at a time
SAMPLED = 16  # one block in so many tells how crowded an index is
RUNS = 32  # of blocks that the sample consists of
LEAST_SAMPLE = 1024  # lanes; a smaller index is soon read
CROWDED = 1 / 64  # of the lanes: when more pass the bounds of four bits, reading all eight is faster

Bounds = NDArray[np.float32]
Blocks = NDArray[np.int64]
Task = Callable[[], None]
Floor = Callable[[NDArray[np.int64], int], float]  # the score that makes one of so many best of some lanes
_local = threading.local()


def _buffer(queries: int, lanes: int) -> Bounds:
    """Return this thread's (queries, lanes) bounds; new ones would cost a page fault per 4 kB."""
    kept: Bounds | None = getattr(_local, "kept", None)
    if kept is None or len(kept) < queries * lanes or len(kept) > 64 * lanes + 16384:
        kept = _local.kept = np.empty(queries * lanes, np.float32)
    return kept[: queries * lanes].reshape(queries, lanes)


class Scan:
    """Bounds of every lane's score for several queries."""

    finer: type[Pass] | None = None  # what tightens bounds

    def __init__(self, snapshot: Snapshot, field: Field, queries: list[Query], threads: int | None) -> None:
        self.snapshot, self.field, self.queries, self.threads = snapshot, field, queries, threads
        self.bounds = _buffer(len(queries), field.lanes)
        self._fine: set[int] = set()  # queries whose bounds are tight already
        self._spread = (threads or usable_cores()) > 1
        self._blocks = [
            -(-len(rows) // LANES) * self._has_codes(segment)
            for segment, rows in zip(snapshot.segments, field.lane_rows, strict=True)
        ]

    def _has_codes(self, segment: Segment) -> bool:
        return True

    def read(self, kind: type[Pass]) -> None:
        """Bound all lanes but those of deleted and empty items, which are closed."""
        self._bound(kind, self.queries, self.bounds, [np.arange(count) for count in self._blocks])
        self._close()

    def _close(self) -> None:
        """Open all lanes of segments without codes; close those of deleted and of empty items."""
        for count, start, end in zip(self._blocks, self.field.start, self.field.start[1:], strict=False):
            if not count:  # a small segment: every row deserves the second look
                self.bounds[:, start:end] = np.array([[query.size + 1.0] for query in self.queries])
        self.bounds[:, self.field.excluded] = -1.0

    def tighten(self, i: int, lanes: int) -> bool:
        """Read the finer bounds of query ``i``, once, if scoring so many lanes takes longer; tell whether."""
        if self.finer is None or i in self._fine or lanes <= CROWDED * self.field.lanes:
            return False
        self._fine.add(i)
        before = self.bounds[i].copy()
        blocks = [np.arange(count) for count in self._blocks]
        self._bound(self.finer, [self.queries[i]], self.bounds[i : i + 1], blocks)
        np.minimum(before, self.bounds[i], out=self.bounds[i])  # lanes that are closed stay so
        return True

    def best(self, i: int, wanted: int) -> NDArray[np.int64]:
        """Return the lanes of the highest bounds of query ``i``, in order."""
        bounds, reach = self.bounds[i], wanted
        while True:
            low = reached_by(bounds, reach + reach // 4)
            found = collect(bounds, low)
            if len(found) >= wanted or low <= 0.0:
                break
            reach *= 2
        if len(found) > wanted:
            found = np.sort(found[np.argpartition(-bounds[found], wanted - 1)[:wanted]])
        return found

    def _lanes(self, blocks: list[Blocks]) -> NDArray[np.int64]:
        """Return the lanes of blocks of each segment."""
        found = [
            (start + b[:, None] * LANES + np.arange(LANES)).reshape(-1)
            for b, start in zip(blocks, self.field.start, strict=False)
        ]
        return np.concatenate([np.empty(0, np.int64), *found])

    def _bound(self, kind: type[Pass], queries: list[Query], bounds: Bounds, blocks: list[Blocks]) -> None:
        """Write the bounds of the lanes of some blocks of each segment."""
        one = kind(self.snapshot, queries)
        work: list[Task] = []
        for s, segment in enumerate(self.snapshot.segments):
            if len(blocks[s]):
                use = one if one.reads(segment) else High(self.snapshot, queries)
                stored = use.arguments(segment)
                place = (bounds, int(self.field.start[s]), bounds.shape[1])
                parts = len(blocks[s]) * stored[1].nbytes // (self._blocks[s] * TASK)
                for part in np.array_split(blocks[s], max(1, parts)) if self._spread else [blocks[s]]:
                    work.append(partial(backend.kernels.scan, *stored, part, *place))
        _drain(work, self.threads)


class ElementScan(Scan):
    """Bounds of the elements' scores: from four bits per dimension, and from eight where it matters."""

    def __init__(self, snapshot: Snapshot, queries: list[Query], threads: int | None) -> None:
        super().__init__(snapshot, snapshot.elements, queries, threads)

    def _has_codes(self, segment: Segment) -> bool:
        return segment.coded

    def read_bounds(self, k: int, floor: Floor) -> None:
        """Bound all lanes for the best ``k``, from as many bits as tell most of them from the best.

        Four bits are read of a sample. Where they leave too many lanes that might be among the best, to judge
        by the exact scores of its first (``floor``), all eight are read of everything at once.
        """
        runs = [_some_runs(count) for count in self._blocks]
        lanes = self._lanes([some for some, _ in runs])
        if len(lanes) < LEAST_SAMPLE or self._is_crowded(lanes, k, floor, [some for some, _ in runs]):
            self.read(Whole)
        else:
            self.finer = Whole
            self._bound(High, self.queries, self.bounds, [others for _, others in runs])
            self._close()

    def _is_crowded(self, lanes: NDArray[np.int64], k: int, floor: Floor, blocks: list[Blocks]) -> bool:
        """Read a sample, and tell whether too many of its bounds reach the scores of its best."""
        self._bound(High, self.queries, self.bounds, blocks)
        self._close()
        bounds = self.bounds[0, lanes]
        wanted = max(2, min(k // SAMPLED, len(lanes) // 4))
        best = np.sort(lanes[np.argpartition(-bounds, 2 * wanted)[: 2 * wanted]])
        return bool((bounds >= floor(best, wanted)).mean() > CROWDED)


@lru_cache(8)  # arrays as long as the index has blocks
def _some_runs(blocks: int) -> tuple[Blocks, Blocks]:
    """Return one block in ``SAMPLED``, and the others; in runs, since scattered blocks are slow to read."""
    run = max(1, blocks // (SAMPLED * RUNS))
    chosen = np.arange(blocks) // run % SAMPLED == 0
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


class SetScan(Scan):
    """Bounds of the set vectors' scores, as tight as their codes."""

    def __init__(self, snapshot: Snapshot, queries: list[Query], threads: int | None) -> None:
        super().__init__(snapshot, snapshot.sets, queries, threads)

    def read_bounds(self) -> None:
        """Bound all lanes."""
        self.read(SetVectors)


def _drain(work: list[Task], threads: int | None) -> None:
    """Do all work on so many threads, this one included."""
    workers = min(threads or usable_cores(), len(work))
    shared = iter(work)  # list iterators hand out each piece once, also to several threads

    def drain() -> None:
        for task in shared:
            task()

    helpers = [kept_threads("scan").submit(drain) for _ in range(workers - 1)]
    drain()
    for helper in helpers:
        helper.result()


def best_first(look: Scan, i: int, wanted: int, floor: Callable[[], float]) -> Iterator[NDArray[np.int64]]:
    """Yield lanes of query ``i`` in falling order of their bounds until none left can reach ``floor()``.

    After each batch ``floor`` must return the score that a new item has to reach, or a negative number while
    anything may enter. Lanes handed out are closed in the bounds. A lane is skipped only when its bound lies
    below the floor: no item that belongs to the answer is left out.
    """
    bounds = look.bounds[i]
    reach, done = wanted, 0
    while True:
        low = max(floor(), reached_by(bounds, reach))
        found = collect(bounds, low)
        if look.tighten(i, len(found)):
            continue
        values = bounds[found]
        most = max(wanted, 4 * done)
        if len(found) > most:  # take the best of them and see how far the floor rises
            cut = np.partition(values, len(values) - most)[len(values) - most]
            found, low = found[values >= cut], max(low, float(cut))
        if len(found):
            bounds[found] = -1.0
            done += len(found)
            yield found
        if low <= max(0.0, floor()):
            return
        reach *= 4


def collect(bounds: Bounds, low: float) -> NDArray[np.int64]:
    """Return the lanes whose bound reaches ``low``."""
    room = np.empty(32768, np.int64)
    found = backend.kernels.collect(bounds, low, room)
    if found > len(room):
        room = np.empty(found, np.int64)
        backend.kernels.collect(bounds, low, room)
    return room[:found]


def reached_by(bounds: Bounds, wanted: int) -> float:
    """Return a bound that about ``wanted`` lanes reach, by a sample; 0, as all open ones do, near the end."""
    stride = max(1, len(bounds) // 8192)
    sample = bounds[::stride]
    at = len(sample) - wanted // stride - 2
    return max(0.0, float(np.partition(sample, at)[at])) if at >= 0 else 0.0


NO_BLOCKS = np.empty(0, np.int64)
NOTHING = np.empty(0, np.uint8)


class Pass:
    """A way of reading segments; its queries lie in one array, so that a vector is loaded once for all."""

    bits: int

    def __init__(self, snapshot: Snapshot, queries: list[Query]) -> None:
        coded = [self._coded(query, snapshot) for query in queries]
        rows = [np.concatenate([getattr(codes, name) for codes in coded]) for name in ROWS]
        owner = np.repeat(np.arange(len(queries)), [len(codes.start) for codes in coded])
        one = coded[0]  # queries of one search have the same logistic
        self._query, self._weight = rows[:-1], rows[-1]
        self._shares = (one.w, one.threshold, one.inflate, owner)

    def _coded(self, query: Query, snapshot: Snapshot) -> Codes:
        raise NotImplementedError

    def reads(self, segment: Segment) -> bool:
        """Return whether a segment has what this pass reads."""
        return True

    def arguments(self, segment: Segment) -> tuple[Any, ...]:
        """Return the first arguments of the scan kernel for a segment."""
        stored = self._stored(segment)
        shift = np.zeros(len(self._weight), np.float32) + self._shift(segment)
        return (self.bits, *stored, *self._query, shift, self._weight, *self._shares)

    def _stored(self, segment: Segment) -> tuple[Any, ...]:
        """Return codes, their low halves, scales, first rows of blocks, first wide block, groups."""
        raise NotImplementedError

    def _shift(self, segment: Segment) -> NDArray[np.float32] | float:
        """Return what is added to the similarities of each query row."""
        return 0.0


ROWS = ("codes", "start", "step", "slack", "weight")


class High(Pass):
    """The high four bits of the elements' codes: bounds of their scores."""

    bits = 4
    kind = "high"
    norms = "high_norms"
    needed: ClassVar[tuple[str, ...]] = ("high_codes", "scales")

    def _coded(self, query: Query, snapshot: Snapshot) -> Codes:
        return Codes.of(query, self.kind, snapshot.norms(self.norms))

    def reads(self, segment: Segment) -> bool:
        """Return whether a segment has the codes that this pass reads."""
        return all(name in segment.file for name in self.needed)

    def _stored(self, segment: Segment) -> tuple[Any, ...]:
        codes, scales = (segment.hot(name) for name in self.needed[:2])
        low = segment.hot(self.needed[2]) if len(self.needed) > 2 else NOTHING
        return codes, low, scales, segment.array("row_start"), segment.file.info["first_wide"], codes.shape[1]


class Whole(High):
    """All eight bits of the elements' codes, in two halves."""

    kind = "whole"
    norms = "norms"
    needed = ("high_codes", "scales", "low_codes")


class Estimates(High):
    """One bit per dimension of the elements: estimates of their scores instead of bounds."""

    bits = 1
    needed = ("bit_codes", "bit_factors")

    def __init__(self, snapshot: Snapshot, queries: list[Query]) -> None:
        super().__init__(snapshot, queries)
        self._wanted = np.concatenate([query.wanted for query in queries]).astype(np.float32)
        self._moved = np.concatenate([query.row_shift for query in queries]).astype(np.float32)

    def reads(self, segment: Segment) -> bool:
        """Return whether a segment has one-bit codes in a rotation that is known here."""
        return segment.bit_coded

    def _coded(self, query: Query, snapshot: Snapshot) -> Codes:
        return Codes.estimating(query, BitCodec.rotated(query.wanted.astype(np.float32)))

    def _shift(self, segment: Segment) -> NDArray[np.float32] | float:
        shift: NDArray[np.float32] = self._wanted @ segment.array("bit_centre")
        return shift + self._moved


class Listed(Estimates):
    """The one-bit codes in the inverted lists of elements, each query row's share by itself."""

    needed = ("list_codes", "list_factors")

    def read(self, segment: Segment, blocks: NDArray[np.int64], shares: NDArray[np.float32]) -> None:
        """Write what the elements in some blocks add to a score, one row for each row of the query."""
        rows = np.arange(len(self._weight))
        *query, _ = self.arguments(segment)
        backend.kernels.scan(*query, rows, blocks, shares, 0, shares.shape[1], True)

    def _stored(self, segment: Segment) -> tuple[Any, ...]:
        codes, scales = (segment.array(name) for name in self.needed)
        return codes, NOTHING, scales, NO_BLOCKS, len(codes), codes.shape[1]


class SetVectors(Pass):
    """The codes of the set vectors: bounds of their scores."""

    def __init__(self, snapshot: Snapshot, queries: list[Query]) -> None:
        assert snapshot.shape.sets is not None
        self.bits = min(8, snapshot.shape.sets.bits)
        super().__init__(snapshot, queries)

    def _coded(self, query: Query, snapshot: Snapshot) -> Codes:
        kind = {8: "bytes", 4: "nibbles", 1: "bits"}[self.bits]
        return Codes.of(query, kind, snapshot.norms("set_norms"))

    def _stored(self, segment: Segment) -> tuple[Any, ...]:
        codes = segment.hot("set_codes")
        wide = -1 if self.bits == 1 else len(codes)
        return codes, NOTHING, segment.hot("set_scales"), NO_BLOCKS, wide, codes.shape[1]
