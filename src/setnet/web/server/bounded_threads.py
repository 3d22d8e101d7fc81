"""A thread pool with a bounded queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import ParamSpec, TypeVar

from setnet.web.server.problems import too_busy

P = ParamSpec("P")
T = TypeVar("T")


class BoundedThreads:
    """Runs blocking calls beside the event loop; when too many wait, the next is refused with 503.

    The threads are never replaced, because the library keeps a database connection for each.
    """

    def __init__(self, what: str, threads: int, queue: int) -> None:
        self._what = what
        self._most = threads + queue
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"setnet-{what}")
        self.waiting = 0

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the call returns."""
        if self.waiting >= self._most:
            raise too_busy(f"too much {self._what} at once")
        self.waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, partial(call, *args, **kwargs))
        finally:
            self.waiting -= 1

    def spare(self, call: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Have a call run that nobody waits for, unless others wait; what goes wrong in it is ignored."""
        if self.waiting <= 1:  # for calls inside one of these threads, which counts as waiting
            with suppress(RuntimeError):  # closed a moment ago
                self._threads.submit(call, *args, **kwargs)

    def close(self) -> None:
        """Finish what runs, drop what waits."""
        self._threads.shutdown(wait=True, cancel_futures=True)
