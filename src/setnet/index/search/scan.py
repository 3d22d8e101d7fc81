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

__all__ = ["Bounds", "ElementScan", "SetScan", "best_first"]

NO_STARTS = np.empty(0, np.int64)
TASK = 4 * 1024 * 1024  # bytes of codes given to a thread at a time
REFINED = 4096  # items refined at a time

Bounds = NDArray[np.float32]
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


class ElementScan:
    """Bounds of the elements' scores for several queries: coarse for all lanes, finer where it matters.

    The first pass reads the high four bits of every code; `refine` looks at all eight of chosen items.
    """

    reach = 4  # lanes to refine for each one wanted in the first batch

    def __init__(self, snapshot: Snapshot, queries: list[Query], threads: int | None) -> None:
        self.snapshot, self.threads = snapshot, threads
        high = _Together([Codes.of(q, "high", snapshot.norms("high_norms")) for q in queries])
        self.whole = [Codes.of(q, "bytes", snapshot.norms("norms")) for q in queries]
        task_bytes = _task_bytes(threads)

        def tasks(segment: Segment, out: Bounds, offset: int) -> Iterator[Callable[[], None]]:
            if not segment.coded:  # small: every row deserves the second look
                for bounds, query in zip(out, queries, strict=True):
                    bounds[offset : offset + len(segment.lane_rows)] = query.size + 1.0
                return
            codes, scales = segment.hot("high_codes"), segment.hot("scales")
            row_start, wide = segment.array("row_start"), segment.file.info["first_wide"]
            rows = max(1, task_bytes // (codes.shape[1] * 64))
            for first, last in lanes.block_ranges(row_start, rows):
                yield high.task(4, codes, scales, row_start, wide, codes.shape[1], first, last, out, offset)

        self.bounds = _run(snapshot, snapshot.elements, len(queries), tasks, threads)

    def refine(self, i: int, which: NDArray[np.int64]) -> None:
        """Tighten the bounds of query ``i`` for these lanes."""
        q, work = self.whole[i], list[Callable[[], None]]()
        for s, rows, mine in self.snapshot.elements.split(which):
            segment = self.snapshot.segments[s]
            if segment.coded:
                args = _whole_codes(segment, q)
                for at in range(0, len(rows), REFINED):
                    part = slice(at, at + REFINED)
                    work.append(partial(_refine, self.bounds[i], mine[part], (*args, rows[part])))
        _drain(work, self.threads)


def _whole_codes(segment: Segment, q: Codes) -> tuple[Any, ...]:
    """Return what the kernel needs to know of a segment's whole codes and of a query."""
    codes = segment.array("codes")
    query = (q.codes, q.start, q.step, q.slack, q.weight, q.w, q.threshold, q.inflate)
    return (codes, codes.shape[1] - 4, segment.offsets, *query)


def _refine(bounds: Bounds, which: NDArray[np.int64], args: tuple[Any, ...]) -> None:
    tighter = np.empty(len(which), np.float32)
    backend.kernels.refine(*args, tighter)
    bounds[which] = np.minimum(tighter, bounds[which])


class SetScan:
    """Bounds of the set vectors' scores for several queries."""

    reach = 1

    def __init__(self, snapshot: Snapshot, queries: list[Query], threads: int | None) -> None:
        assert snapshot.shape.sets is not None
        bits = min(8, snapshot.shape.sets.bits)
        kind = {8: "bytes", 4: "nibbles", 1: "bits"}[bits]
        coded = _Together([Codes.of(q, kind, snapshot.norms("set_norms")) for q in queries])
        task_bytes = _task_bytes(threads)

        def tasks(segment: Segment, out: Bounds, offset: int) -> Iterator[Callable[[], None]]:
            codes, scales = segment.hot("set_codes"), segment.hot("set_scales")
            blocks = len(codes)
            groups = codes.shape[1] // 8 if bits == 1 else codes.shape[1]
            step = max(1, task_bytes // (groups * (8 if bits == 1 else 64)))
            for first in range(0, blocks, step):
                last = min(first + step, blocks)
                yield coded.task(bits, codes, scales, NO_STARTS, blocks, groups, first, last, out, offset)

        self.bounds = _run(snapshot, snapshot.sets, len(queries), tasks, threads)

    def refine(self, i: int, which: NDArray[np.int64]) -> None:
        """Do nothing: these bounds are as tight as their codes."""


def _task_bytes(threads: int | None) -> int:
    """Return how many bytes of codes to do at a time: all, or what keeps threads busy."""
    return TASK if (threads or usable_cores()) > 1 else 1 << 62


class _Together:
    """Several queries' codes in one array: the kernel loads each stored vector once for all of them."""

    def __init__(self, queries: list[Codes]) -> None:
        def joined(name: str) -> NDArray[Any]:
            return np.concatenate([getattr(q, name) for q in queries])

        rows = tuple(joined(name) for name in ("codes", "start", "step", "slack", "weight"))
        one = queries[0]  # the logistic is the index's own
        owner = np.repeat(np.arange(len(queries)), [len(q.start) for q in queries])
        self._query = (*rows, one.w, one.threshold, one.inflate, owner)

    def task(
        self, bits: int, codes: NDArray[np.uint8], scales: NDArray[np.float32], row_start: NDArray[np.int64],
        first_wide: int, groups: int, first: int, last: int, out: Bounds, offset: int,
    ) -> Callable[[], None]:  # fmt: skip
        """Return the work of bounding blocks ``first`` to ``last``, whose lanes begin at ``offset``."""
        stored = (bits, codes, scales, row_start, first_wide, groups)
        place = (first, last, out, offset, out.shape[1])
        return partial(backend.kernels.scan, *stored, *self._query, *place)


def _run(
    snapshot: Snapshot,
    field: Field,
    queries: int,
    tasks: Callable[[Segment, Bounds, int], Iterator[Callable[[], None]]],
    threads: int | None,
) -> Bounds:
    """Do all tasks, then close the lanes of deleted and empty items; return a row of bounds per query."""
    bounds = _buffer(queries, field.lanes)
    work: list[Callable[[], None]] = []
    for s, segment in enumerate(snapshot.segments):
        work += tasks(segment, bounds, int(field.start[s]))
    _drain(work, threads)
    bounds[:, field.excluded] = -1.0
    return bounds


def _drain(work: list[Callable[[], Any]], threads: int | None) -> None:
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


def best_first(
    look: ElementScan | SetScan, i: int, wanted: int, floor: Callable[[], float]
) -> Iterator[NDArray[np.int64]]:
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
