"""The first pass: an upper bound of every item's score, and the lanes worth a second look, best first."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

from setnet.index import backend, lanes
from setnet.index.contents import Segment
from setnet.index.query import Codes, Query
from setnet.index.snapshot import Field, Snapshot

__all__ = ["best_first", "element_bounds", "set_bounds", "thread_count"]

NO_STARTS = np.empty(0, np.int64)
TILE = 768 * 1024  # bytes of codes that stay in the cache while several queries pass over them
TASK = 4 * 1024 * 1024  # bytes of codes given to a thread at a time

Bounds = NDArray[np.float32]
_local = threading.local()


def thread_count(threads: int | None) -> int:
    """Return how many threads to use: as asked, or one per core."""
    return threads if threads is not None else len(os.sched_getaffinity(0))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=max(1, (os.cpu_count() or 1)), thread_name_prefix="setnet-scan")


def _buffer(i: int, lanes: int) -> Bounds:
    """Return the i-th array of bounds of this thread; made anew they would cost a page fault per 4 kB."""
    kept: dict[int, Bounds] = _local.__dict__.setdefault("kept", {})
    if i not in kept or len(kept[i]) < lanes or len(kept[i]) > 4 * lanes + 1024:
        kept[i] = np.empty(lanes, np.float32)
    return kept[i][:lanes]


def element_bounds(snapshot: Snapshot, queries: list[Query], threads: int | None) -> list[Bounds]:
    """Return, per query, an upper bound of each element lane's exact score."""
    field = snapshot.elements
    coded = [Codes.of(q, 8, field.residual_norm, field.code_norm) for q in queries]
    task_bytes = _task_bytes(len(queries), threads)

    def tasks(s: int, segment: Segment, out: list[Bounds]) -> Iterator[Callable[[], None]]:
        if not segment.coded:  # small: every row deserves the second look
            for bounds, query in zip(out, queries, strict=True):
                bounds[:] = query.people + 1.0
            return
        info = segment.file.info
        codes, scales = segment.file.hot("codes"), segment.file.hot("scales")
        row_start = segment.file.array("row_start")
        row_bytes = codes.shape[1] * 64
        for first, last in lanes.block_ranges(row_start, max(1, task_bytes // row_bytes)):
            yield _task(
                8, codes, scales, row_start, info["first_wide"], codes.shape[1], coded, first, last, out
            )

    return _run(snapshot, field, queries, tasks, threads)


def set_bounds(snapshot: Snapshot, queries: list[Query], threads: int | None) -> list[Bounds]:
    """Return, per query, an upper bound of each set vector's score."""
    assert snapshot.shape.sets is not None
    bits = min(8, snapshot.shape.sets.bits)
    field = snapshot.sets
    coded = [Codes.of(q, bits, field.residual_norm, field.code_norm) for q in queries]
    task_bytes = _task_bytes(len(queries), threads)

    def tasks(s: int, segment: Segment, out: list[Bounds]) -> Iterator[Callable[[], None]]:
        codes, scales = segment.file.hot("set_codes"), segment.file.hot("set_scales")
        blocks = len(codes)
        groups = codes.shape[1] // 8 if bits == 1 else codes.shape[1]
        step = max(1, task_bytes // (groups * (8 if bits == 1 else 64)))
        for first in range(0, blocks, step):
            last = min(first + step, blocks)
            yield _task(bits, codes, scales, NO_STARTS, blocks, groups, coded, first, last, out)

    return _run(snapshot, field, queries, tasks, threads)


def _task_bytes(queries: int, threads: int | None) -> int:
    """Return how many bytes of codes to do at a time: what fits the cache, or what keeps threads busy."""
    if queries > 1:
        return TILE
    return TASK if thread_count(threads) > 1 else 1 << 62


def _task(
    bits: int, codes: NDArray[np.uint8], scales: NDArray[np.float32], row_start: NDArray[np.int64],
    first_wide: int, groups: int, queries: list[Codes], first: int, last: int, out: list[Bounds],
) -> Callable[[], None]:  # fmt: skip
    def run() -> None:
        for q, bounds in zip(queries, out, strict=True):
            backend.kernels.scan(
                bits, codes, scales, row_start, first_wide, groups, q.codes, q.start, q.step, q.slack,
                q.weight, q.w, q.threshold, q.inflate, first, last, bounds,
            )  # fmt: skip

    return run


def _run(
    snapshot: Snapshot,
    field: Field,
    queries: list[Query],
    tasks: Callable[[int, Segment, list[Bounds]], Iterator[Callable[[], None]]],
    threads: int | None,
) -> list[Bounds]:
    """Do all tasks on the asked number of threads, then close the lanes of deleted and empty items."""
    bounds = [_buffer(i, field.lanes) for i in range(len(queries))]
    work: list[Callable[[], None]] = []
    for s, segment in enumerate(snapshot.segments):
        here = slice(field.start[s], field.start[s + 1])
        work += tasks(s, segment, [b[here] for b in bounds])
    workers = min(thread_count(threads), len(work))
    if workers <= 1:
        for task in work:
            task()
    else:
        shared = iter(work)  # list iterators hand out each task once, also to several threads

        def drain() -> None:
            for task in shared:
                task()

        for done in [_pool().submit(drain) for _ in range(workers - 1)]:
            drain()
            done.result()
    for b in bounds:
        b[field.excluded] = -1.0
    return bounds


def best_first(bounds: Bounds, wanted: int, floor: Callable[[], float]) -> Iterator[NDArray[np.int64]]:
    """Yield lanes in falling order of their bounds until none left can reach ``floor()``.

    The first batch holds about ``wanted`` lanes. After each batch ``floor`` must return the score that a
    new item has to reach, or a negative number while anything may enter. A lane is skipped only when its
    bound lies below that floor: no item that belongs to the answer is ever left out.
    """
    stride = max(1, len(bounds) // 8192)
    sample = bounds[::stride]
    done, high = 0, np.inf
    while True:
        low, must = _cut(sample, wanted, stride), floor()
        found = None
        if must > 0:
            # what may still enter is usually little: then look at all of it
            found = _collect(bounds, must, high, 4 * max(done, 256))
            low = must if found is not None else max(low, must)
        if found is None and low < high:
            found = _collect(bounds, low, high, len(bounds))
        if found is not None and len(found):
            yield found
            done += len(found)
        high = min(low, high)
        if low <= 0 or floor() >= low:
            return
        wanted = 4 * max(done, wanted)


def _collect(bounds: Bounds, low: float, high: float, most: int) -> NDArray[np.int64] | None:
    """Return the lanes with a bound from ``low`` up to but not including ``high``; None if over ``most``."""
    room = np.empty(min(most, 8192), np.int64)
    found = backend.kernels.collect(bounds, low, high, room)
    if found > most:
        return None
    if found > len(room):
        room = np.empty(found, np.int64)
        backend.kernels.collect(bounds, low, high, room)
    return room[:found]


def _cut(sample: Bounds, wanted: int, stride: int) -> float:
    """Return the bound that about ``wanted`` lanes reach; 0, which all open lanes reach, near the end."""
    at = len(sample) - wanted // stride - 2
    return max(0.0, float(np.partition(sample, at)[at])) if at >= 0 else 0.0
