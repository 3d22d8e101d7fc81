"""Passes over the codes of all segments: bounds that leave few items to score."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from setnet.engine.budget import scan_tables, turned
from setnet.engine.kernels import backend
from setnet.engine.kernels.backend import threads as kept_threads
from setnet.engine.kernels.lanes import LANES, PANEL
from setnet.engine.query import Query
from setnet.engine.segment import Segment
from setnet.engine.snapshot import Snapshot
from setnet.system import usable_cores

TASK = 4 * 1024 * 1024  # bytes of codes given to a thread at a time
SAMPLED = 16  # one block in so many tells how crowded an index is
RUNS = 32  # of blocks that the sample consists of
LEAST_SAMPLE = 1024  # lanes; a smaller index is soon read
SCATTERED = 0.55  # of the blocks: when more are open, reading all in order is faster
CROWDED = 1 / 32  # of the lanes: when more pass the bounds of five bits, reading all nine is faster

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
    """Bounds of every open lane's score for several queries; blocks without an open lane are not read.

    The lanes are those of the elements, or ``of_sets``. ``lanes`` says which of them conditions leave open,
    all that hold an item by default. The others are closed: their bounds are below zero. Of what is open, the
    caller leaves out all but a ``share``.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        queries: list[Query],
        lanes: NDArray[np.bool_] | None = None,
        *,
        of_sets: bool = False,
        share: float = 1.0,
    ) -> None:
        self.snapshot, self.queries, self._of_sets = snapshot, queries, of_sets
        self.table = snapshot.sets if of_sets else snapshot.elements
        self.bounds = _buffer(len(queries), self.table.lanes)
        self._is_budget, self._share = bool(snapshot.shape.bytes_per_item), share
        self._fine: set[int] = set()  # queries whose bounds are tight already
        self._is_open: NDArray[np.bool_] | None = None  # the lanes that conditions leave open, where they do
        counts = [
            -(-len(rows) // LANES) * self._has_codes(segment)
            for segment, rows in zip(snapshot.segments, self.table.lane_rows, strict=True)
        ]
        self._blocks = [np.arange(count) for count in counts]
        if lanes is not None:
            self._leave_open(lanes)

    def _leave_open(self, is_open: NDArray[np.bool_]) -> None:
        """Close all lanes but these."""
        self._is_open = is_open
        if np.count_nonzero(is_open) >= SCATTERED * len(is_open):
            return  # so many blocks are open, or more
        for s, (first, end) in enumerate(pairwise(self.table.start.tolist())):
            if len(self._blocks[s]):
                lanes = np.append(is_open[first:end], np.zeros((first - end) % LANES, bool))
                some = np.flatnonzero((lanes.view(np.int64) != 0).view(np.int16))  # 16 lanes to a block
                if len(some) < SCATTERED * len(self._blocks[s]):
                    self._blocks[s] = some
                    self.bounds[:, first:end] = -1.0  # of blocks that are not read

    def _has_codes(self, segment: Segment) -> bool:
        return self._of_sets or segment.coded or bool(segment.budget)

    def read(self, kind: Kind) -> None:
        """Bound all open lanes, or estimate them, by codes of one kind."""
        self._bound(kind, self.queries, self.bounds, self._blocks)
        self._close()

    def _close(self) -> None:
        """Open lanes of segments without codes; close those that are not open."""
        for s, segment in enumerate(self.snapshot.segments):
            if not self._has_codes(segment):  # a small one: every row deserves the second look
                self.bounds[:, self.table.start[s] : self.table.start[s + 1]] = np.inf
        if self._is_open is None:
            self.bounds[:, self.table.excluded] = -1.0
        else:
            for bounds in self.bounds:
                backend.kernels.close_lanes(bounds, self._is_open)

    def _bound(
        self,
        kind: Kind,
        queries: list[Query],
        bounds: Bounds,
        blocks: list[Blocks],
        *,
        least: bool = False,
    ) -> None:
        """Write the bounds of the lanes of some blocks of each segment; see the kernel for ``least``."""
        coded = CodedQueries(self.snapshot, queries, kind)
        threads, work = queries[0].threads, list[Task]()
        for s, segment in enumerate(self.snapshot.segments):
            if len(blocks[s]):
                scan, size = coded.scan(segment)
                place = (bounds, int(self.table.start[s]), bounds.shape[1], least)
                parts = size * len(blocks[s]) * LANES // (len(self.table.lane_rows[s]) * TASK)
                for part in np.array_split(blocks[s], max(1, parts)) if threads != 1 else [blocks[s]]:
                    work.append(partial(scan, part, *place))
        _drain(work, threads)

    def read_bounds(self, k: int, floor: Floor) -> None:
        """Bound all open lanes for the best ``k``, from as many bits as tell most of them from the best.

        Five bits are read of a sample. Where they leave too many lanes that might be among the best, to judge
        by the exact scores of its first (``floor``), all nine are read of everything at once.
        """
        if self._is_budget:
            self.read("budget")
            return
        runs = [_some_runs(len(blocks)) for blocks in self._blocks]
        sample = [blocks[some] for blocks, (some, _) in zip(self._blocks, runs, strict=True)]
        lanes = self._lanes(sample)
        if len(lanes) < LEAST_SAMPLE or self._is_crowded(lanes, k, floor, sample):
            self._fine.update(range(len(self.queries)))
            self.read("fine")
        else:
            others = [blocks[rest] for blocks, (_, rest) in zip(self._blocks, runs, strict=True)]
            self._bound("coarse", self.queries, self.bounds, others)
            self._close()

    def leave_matched(self) -> NDArray[np.int64]:
        """Close the lanes of items with an element that no query element can match; return the open ones.

        Of the one query of this scan. An item is left out by its own elements, not by how many of them match:
        several may match one query element.
        """
        if any(len(blocks) for blocks in self._blocks):
            kind: Kind = "budget" if self._is_budget else "coarse"
            self._bound(kind, self.queries, self.bounds, self._blocks, least=True)
        self._close()
        is_open = self.bounds[0] >= 0
        self._leave_open(is_open)
        return np.flatnonzero(is_open)

    def tighten(self, i: int, lanes: int) -> bool:
        """Read nine bits for query ``i``, once, if scoring so many lanes takes longer; tell whether."""
        if (
            self._of_sets
            or self._is_budget
            or i in self._fine
            or lanes * self._share <= CROWDED * self.table.lanes
        ):
            return False
        self._fine.add(i)
        before = self.bounds[i].copy()
        self._bound("fine", [self.queries[i]], self.bounds[i : i + 1], self._blocks)
        np.minimum(before, self.bounds[i], out=self.bounds[i])  # lanes that are closed stay so
        return True

    def _lanes(self, blocks: list[Blocks]) -> NDArray[np.int64]:
        """Return the lanes of blocks of each segment."""
        found = [
            (start + b[:, None] * LANES + np.arange(LANES)).reshape(-1)
            for b, start in zip(blocks, self.table.start, strict=False)
        ]
        return np.concatenate([np.empty(0, np.int64), *found])

    def _is_crowded(self, lanes: NDArray[np.int64], k: int, floor: Floor, blocks: list[Blocks]) -> bool:
        """Read a sample, and tell whether too many of its bounds reach the scores of its best."""
        self._bound("coarse", self.queries, self.bounds, blocks)
        self.bounds[0, self.table.excluded] = -1.0
        bounds = self.bounds[0, lanes]
        if self._is_open is not None:
            bounds[~self._is_open[lanes]] = -1.0
        wanted = max(2, min(k // SAMPLED, len(lanes) // 4))
        looked_at = min(len(lanes) - 1, int(2 * wanted / self._share) + 1)
        best = np.argpartition(-bounds, looked_at)[:looked_at]
        best = np.sort(lanes[best[bounds[best] >= 0]])  # fewer lanes may be open
        return bool((bounds >= floor(best, wanted)).mean() * self._share > CROWDED)


@lru_cache(8)  # arrays as long as the index has blocks
def _some_runs(blocks: int) -> tuple[Blocks, Blocks]:
    """Return one block in ``SAMPLED``, and the others; in runs, since scattered blocks are slow to read."""
    run = max(1, blocks // (SAMPLED * RUNS))
    chosen = np.arange(blocks) // run % SAMPLED == 0
    return np.flatnonzero(chosen), np.flatnonzero(~chosen)


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


SIGNS = (np.arange(16)[:, None] >> np.arange(4) & 1) * 2.0 - 1.0  # of the four dimensions behind four bits


@dataclass(frozen=True, slots=True)
class QueryCodes:
    """A query's rows as the kernels read them, with the terms that make quantised scores upper bounds.

    Against codes of one bit a row is a table of sums, else 8-bit codes. ``terms`` has step, slack, shift,
    weight, length, what is lost, and the least similarity of a match for each row.
    """

    codes: NDArray[np.int8]
    start: NDArray[np.int32]
    terms: NDArray[np.float32]

    @classmethod
    def against_elements(cls, query: Query, bits: int) -> QueryCodes:
        """Quantise a query against codes of five or nine bits, or eight of the nine, with norms of their own.

        For a stored x = scale c + r and a query q = step k + d: q.x = scale step k.c + d.scale c + q.r, which
        exceeds its first term by |d| |scale c| + |q| |r| at most. A little more of |d| covers the rounding of
        float32. A code stands for the middle of its cell: that is taken off as a whole, as far as possible
        from the integer sum. The ninth bit, if it is not read, is half a unit to either side.
        """
        unit, middle = {5: (16.0, 15.5), 8: (2.0, 127.5), 9: (1.0, 255.5)}[bits]
        codes, step, length, lost = _levels(query.wanted, 127, PANEL)
        total = codes.sum(axis=1, dtype=np.float64) * middle
        start = np.floor(total)
        slack = step * unit * (start - total)
        if bits == 8:
            slack += step * 0.5 * (1 + 1e-6) * np.abs(codes).sum(axis=1, dtype=np.float64)
        return cls.of(query, codes, step * unit, slack, -start, length * (1 + 1e-6), lost + 1e-6 * length)

    @classmethod
    def against_sets(cls, query: Query, bits: int, norms: tuple[float, float]) -> QueryCodes:
        """Quantise a query against set codes, with the largest norms of a residual and of a code.

        For a stored x = scale (c + r) and a query q = step k + d: q.x = scale (step k.c + rest), and the rest
        is at most |q| |r| + |d| |c|. A little more covers the rounding of float32.
        """
        residual, norm = norms
        if bits == 1:
            tables = _Tables.of(query.wanted)
            length = np.linalg.norm(query.wanted, axis=1)
            return cls.of(query, tables.codes, tables.step, tables.least + tables.lost + 1e-6 * length * norm)
        middle, group = (128.0, 4) if bits == 8 else (7.5, 8)
        # two products with eight bits must fit 16, as 255 x 64 x 2 does
        peak = 64 if bits == 8 and backend.level() == "avx2" else 127
        codes, step, length, lost = _levels(query.wanted, peak, group)
        total = codes.sum(axis=1, dtype=np.float64) * middle
        start = np.floor(total)
        slack = length * residual + lost * norm + 1e-6 * length * (norm + residual)
        slack = (slack + step * (start - total)) * (1 + 1e-6)
        return cls.of(query, codes, step, slack, -start)

    @classmethod
    def of(
        cls,
        query: Query,
        codes: NDArray[np.int8],
        step: NDArray[np.float64],
        slack: NDArray[np.float64],
        start: NDArray[np.float64] | int = 0,
        length: NDArray[np.float64] | int = 0,
        lost: NDArray[np.float64] | int = 0,
    ) -> QueryCodes:
        """Put codes and terms together with those that do not depend on the codes."""
        terms = terms_of(query)
        for at, term in {STEP: step, SLACK: slack, LENGTH: length, LOST: lost}.items():
            terms[at] = term
        return cls(codes, np.broadcast_to(start, len(codes)).astype(np.int32), terms)


STEP, SLACK, SHIFT, WEIGHT, LENGTH, LOST, LEAST = range(7)  # the terms of a query's rows


def terms_of(query: Query) -> NDArray[np.float32]:
    """Return the terms that do not depend on codes, and zeros for the others."""
    terms = np.zeros((7, len(query.wanted)), np.float32)
    terms[WEIGHT] = query.weights * (1 + 4e-6 + 1.2e-7 * query.size)  # for the rounding of sums
    terms[LEAST] = np.nextafter(query.row_least.astype(np.float32), np.float32(-np.inf))
    return terms


def _levels(
    q: NDArray[np.float64], peak: int, group: int
) -> tuple[NDArray[np.int8], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return codes of each row up to ``peak``, their unit, the row's length and that of what they lose."""
    step = np.maximum(np.abs(q).max(axis=1), 1e-30) / peak
    levels = np.rint(q / step[:, None])
    codes = np.zeros((len(q), -(-q.shape[1] // group) * group), np.int8)
    codes[:, : q.shape[1]] = levels
    return codes, step, np.linalg.norm(q, axis=1), np.linalg.norm(q - levels * step[:, None], axis=1)


@dataclass(frozen=True, slots=True)
class _Tables:
    """What four dimensions of a query add to a dot product with signs, for each of their 16 signs.

    A sum is ``step`` times the numbers looked up plus ``least``, wrong by at most ``lost``. In a row the
    tables of four bytes follow each other, those of their low halves first, as the kernels load them.
    """

    codes: NDArray[np.int8]
    step: NDArray[np.float64]
    least: NDArray[np.float64]
    lost: NDArray[np.float64]

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> _Tables:
        n, dim = rows.shape
        padded = np.zeros((n, -(-dim // 64) * 64))
        padded[:, :dim] = rows
        fours = padded.reshape(n, -1, 4)
        sums = fours @ SIGNS.T
        reach = np.abs(fours).sum(axis=2)
        step = np.maximum(2 * reach.max(axis=1), 1e-30) / 63
        levels = np.rint((sums + reach[:, :, None]) / step[:, None, None])
        off = np.abs(levels * step[:, None, None] - reach[:, :, None] - sums)
        ordered = levels.reshape(n, -1, 4, 2, 16).swapaxes(2, 3)
        codes = np.ascontiguousarray(ordered.reshape(n, -1)).astype(np.int8)
        return cls(codes, step, -reach.sum(axis=1), off.max(axis=2).sum(axis=1))


NO_BLOCKS = np.empty(0, np.int64)
NOTHING = np.empty(0, np.uint8)

# Bounds come from five bits of the elements, from all nine, from budget codes, and from codes of set vectors.
Kind = Literal["coarse", "fine", "budget", "sets"]


class CodedQueries:
    """Queries for the kernel that scans one kind of codes.

    They lie in one array, so that a stored vector is loaded once for all of them.
    """

    def __init__(self, snapshot: Snapshot, queries: list[Query], kind: Kind) -> None:
        self._kind, sets, self._queries = kind, snapshot.shape.sets, queries
        logistic = queries[0].logistic  # queries of one search have the same
        # float32 cannot tell similarities nearer than this apart where the sigmoid is not yet flat
        inflate = 2.4e-7 * (logistic.w * abs(logistic.threshold) + 100.0)
        owner = np.repeat(np.arange(len(queries)), [len(query.wanted) for query in queries])
        self._shares = (queries[0].w, logistic.threshold, inflate, owner)
        if kind == "budget":
            return
        if kind == "sets":
            assert sets is not None
            self._bits = min(8, sets.bits)
            coded = [QueryCodes.against_sets(q, self._bits, snapshot.set_norms()) for q in queries]
        else:
            self._bits = 5 if kind == "coarse" else backend.fine_bits()
            coded = [QueryCodes.against_elements(query, self._bits) for query in queries]
        self._codes = np.concatenate([one.codes for one in coded])
        self._start = np.concatenate([one.start for one in coded])
        self._terms = np.concatenate([one.terms for one in coded], axis=1)

    def scan(self, segment: Segment) -> tuple[Callable[..., None], int]:
        """Return the kernel that scans blocks of a segment, and how many bytes all of them have."""
        if self._kind == "budget":
            return self._budget_scan(segment)
        fine, starts = (NOTHING, NOTHING), NO_BLOCKS
        if self._kind == "sets":
            codes, norms = segment.array("set_codes"), segment.array("set_scales")
            wide = -1 if self._bits == 1 else len(codes)
        else:
            codes, norms = segment.array("codes"), segment.array("code_norms")
            starts, wide = segment.array("row_start"), segment.file.info["first_wide"]
        if self._kind == "fine":
            fine = segment.array("fine_codes"), segment.array("fine_norms")
        place = starts, wide, codes.shape[1]
        stored = (self._bits, codes, norms, *fine, *place, self._codes, self._start, self._terms)
        return partial(backend.kernels.scan, *stored, *self._shares), codes.nbytes

    def _budget_scan(self, segment: Segment) -> tuple[Callable[..., None], int]:
        codes, sizes = segment.array("budget_codes"), segment.run_sizes()
        wanted = np.concatenate([turned(query).wanted for query in self._queries])
        tables, starts, off = scan_tables(wanted, sizes.tolist())
        terms = np.concatenate([terms_of(query) for query in self._queries], axis=1)
        terms[SHIFT] = off
        runs = np.column_stack([segment.runs[:, [1, 0]], sizes, segment.runs[:, 2], starts])
        lanes = int(np.count_nonzero(segment.lane_rows >= 0))
        stored = (codes, np.ascontiguousarray(runs), lanes, tables, terms)
        return partial(backend.kernels.scan_budget, *stored, *self._shares), codes.nbytes
