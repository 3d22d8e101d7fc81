"""Calls that run beside each other in threads, with their results as they come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TypeVar

_AHEAD = 8  # calls per thread that are under way, waiting, or done but not yet taken
_POLL_SECONDS = 0.2

K = TypeVar("K")
T = TypeVar("T")


def unordered_map(
    function: Callable[[K], T],
    items: Iterable[K],
    threads: int,
    should_stop: Callable[[], bool] | None = None,
) -> Iterator[T]:
    """Yield the result of the function for each item, in no fixed order.

    Threads go on while the caller is busy with a result, up to a limit. Calls that nobody waits for any more
    (`should_stop` is true, or the iterator was closed) are not begun; those under way are left to end.

    >>> sorted(unordered_map(abs, [3, -1, 2], threads=2))
    [1, 2, 3]
    """
    if not threads:
        yield from map(function, items)
        return
    done: SimpleQueue[Future[T]] = SimpleQueue()
    waiting = iter(items)
    executor = ThreadPoolExecutor(threads, thread_name_prefix="setnet-worker")

    def begin(most: int) -> int:
        calls = [executor.submit(function, item) for item in islice(waiting, most)]
        for call in calls:
            call.add_done_callback(done.put)
        return len(calls)

    try:
        left = begin(threads * _AHEAD)
        while left:
            try:
                call = done.get(timeout=_POLL_SECONDS)
            except Empty:
                if should_stop is not None and should_stop():
                    return
                continue
            left += begin(1) - 1
            yield call.result()
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
