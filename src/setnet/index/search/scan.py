"""The first pass: an upper bound of every item's score, and the lanes worth a second look, best first."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels import backend, lanes
from setnet.index.search.codes import Codes
from setnet.index.search.query import Query
from setnet.index.storage.segments.segment import Segment
from setnet.index.storage.snapshot import Field, Snapshot
from setnet.system import usable_cores

NO_STARTS = np.empty(0, np.int64)
TASK = 4 * 1024 * 1024  # bytes of codes given to a thread at a time
REFINED = 4096  # items refined at a time

Bounds = NDArray[np.float32]
Task = Callable[[], None]
_local = threading.local()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=usable_cores(), thread_name_prefix="setnet-scan")


def _buffer(queries: int, lanes: int) -> Bounds:
    """Return this thread's (queries, lanes) bounds; new ones would cost a page fault per 4 kB."""
    kept: Bounds | None = getattr(_local, "kept", None)
    if kept is None or len(kept) < queries * lanes or len(kept) > 64 * lanes + 16384:
        kept = _local.kept = np.empty(queries * lanes, np.float32)
    return kept[: queries * lanes].reshape(queries, lanes)


class Scan:
    """Bounds of every lane's score for several queries; a kind of scan says how it reads a segment."""

    reach = 1  # lanes to refine for each one wanted in the first batch

    def __init__(
        self,
        snapshot: Snapshot,
        field: Field,
        queries: list[Query],
        threads: int | None,
        kind: str,
        norms: str,
    ) -> None:
        self.snapshot, self.queries, self.threads = snapshot, queries, threads
        # all, or what keeps threads busy
        self._task_bytes = TASK if (threads or usable_cores()) > 1 else 1 << 62
        coded = [Codes.of(query, kind, snapshot.norms(norms)) for query in queries]
        # in one array: the kernel loads each stored vector once for all queries
        rows = [
            np.concatenate([getattr(codes, name) for codes in coded])
            for name in ("codes", "start", "step", "slack", "weight")
        ]
        owner = np.repeat(np.arange(len(queries)), [len(codes.start) for codes in coded])
        one = coded[0]  # the logistic is the index's own
        self._query = (*rows, one.w, one.threshold, one.inflate, owner)
        self.bounds = _buffer(len(queries), field.lanes)
        work: list[Task] = []
        for s, segment in enumerate(snapshot.segments):
            work += self._tasks(segment, int(field.start[s]))
        _drain(work, threads)
        self.bounds[:, field.excluded] = -1.0  # lanes of deleted and empty items

    def _tasks(self, segment: Segment, offset: int) -> Iterator[Task]:
        """Yield the work of bounding a segment whose lanes begin at ``offset``."""
        raise NotImplementedError

    def _task(self, stored: tuple[Any, ...], first: int, last: int, offset: int) -> Task:
        place = (first, last, self.bounds, offset, self.bounds.shape[1])
        return partial(backend.kernels.scan, *stored, *self._query, *place)

    def refine(self, i: int, which: NDArray[np.int64]) -> None:
        """Tighten the bounds of query ``i`` for these lanes, where there is more to read."""


class ElementScan(Scan):
    """Bounds of the elements' scores: coarse for all lanes, finer where it matters.

    The first pass reads the high four bits of every code; `refine` looks at all eight of chosen items.
    """

    reach = 4

    def __init__(self, snapshot: Snapshot, queries: list[Query], threads: int | None) -> None:
        super().__init__(snapshot, snapshot.elements, queries, threads, "high", "high_norms")
        self.whole = [Codes.of(query, "bytes", snapshot.norms("norms")) for query in queries]

    def _tasks(self, segment: Segment, offset: int) -> Iterator[Task]:
        if not segment.coded:  # small: every row deserves the second look
            sizes = np.array([[query.size + 1.0] for query in self.queries], np.float32)
            self.bounds[:, offset : offset + len(segment.lane_rows)] = sizes
            return
        codes, scales = segment.hot("high_codes"), segment.hot("scales")
        row_start, groups = segment.array("row_start"), codes.shape[1]
        stored = (4, codes, scales, row_start, segment.file.info["first_wide"], groups)
        for first, last in lanes.block_ranges(row_start, max(1, self._task_bytes // (groups * 64))):
            yield self._task(stored, first, last, offset)

    def refine(self, i: int, which: NDArray[np.int64]) -> None:
        """Tighten the bounds of query ``i`` for these lanes."""
        q, work = self.whole[i], list[Task]()
        query = (q.codes, q.start, q.step, q.slack, q.weight, q.w, q.threshold, q.inflate)
        for s, rows, mine in self.snapshot.elements.split(which):
            segment = self.snapshot.segments[s]
            if segment.coded:
                codes = segment.array("codes")
                args = (codes, codes.shape[1] - 4, segment.offsets, *query)
                for at in range(0, len(rows), REFINED):
                    part = slice(at, at + REFINED)
                    work.append(partial(_refine, self.bounds[i], mine[part], (*args, rows[part])))
        _drain(work, self.threads)


def _refine(bounds: Bounds, which: NDArray[np.int64], args: tuple[Any, ...]) -> None:
    tighter = np.empty(len(which), np.float32)
    backend.kernels.refine(*args, tighter)
    bounds[which] = np.minimum(tighter, bounds[which])


class SetScan(Scan):
    """Bounds of the set vectors' scores, as tight as their codes."""

    def __init__(self, snapshot: Snapshot, queries: list[Query], threads: int | None) -> None:
        assert snapshot.shape.sets is not None
        self._bits = min(8, snapshot.shape.sets.bits)
        kind = {8: "bytes", 4: "nibbles", 1: "bits"}[self._bits]
        super().__init__(snapshot, snapshot.sets, queries, threads, kind, "set_norms")

    def _tasks(self, segment: Segment, offset: int) -> Iterator[Task]:
        codes, scales = segment.hot("set_codes"), segment.hot("set_scales")
        blocks, groups, width = len(codes), codes.shape[1], 64
        if self._bits == 1:
            groups, width = groups // 8, 8
        stored = (self._bits, codes, scales, NO_STARTS, blocks, groups)
        step = max(1, self._task_bytes // (groups * width))
        for first in range(0, blocks, step):
            yield self._task(stored, first, min(first + step, blocks), offset)


def _drain(work: list[Task], threads: int | None) -> None:
    """Do all work on so many threads, this one included."""
    workers = min(threads or usable_cores(), len(work))
    shared = iter(work)  # list iterators hand out each piece once, also to several threads

    def drain() -> None:
        for task in shared:
            task()

    helpers = [_pool().submit(drain) for _ in range(workers - 1)]
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
    stride = max(1, len(bounds) // 8192)
    reach, done = look.reach * wanted, 0
    while True:
        enough = floor()
        low = max(enough, _cut(bounds[::stride], reach, stride))
        found = _collect(bounds, low)
        look.refine(i, found)
        values = bounds[found]
        if enough > 0:
            high = values >= np.float32(enough)
            found, values = found[high], values[high]
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


def _collect(bounds: Bounds, low: float) -> NDArray[np.int64]:
    """Return the lanes whose bound reaches ``low``."""
    room = np.empty(32768, np.int64)
    found = backend.kernels.collect(bounds, low, room)
    if found > len(room):
        room = np.empty(found, np.int64)
        backend.kernels.collect(bounds, low, room)
    return room[:found]


def _cut(sample: Bounds, wanted: int, stride: int) -> float:
    """Return the bound that about ``wanted`` lanes reach; 0, which all open lanes reach, near the end."""
    at = len(sample) - wanted // stride - 2
    return max(0.0, float(np.partition(sample, at)[at])) if at >= 0 else 0.0
