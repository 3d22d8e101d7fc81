"""A pool of worker processes, and a map over it that keeps all of them busy."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from queue import Empty, SimpleQueue
from typing import TypeVar

from setnet.errors import ModelError, SetNetError, WorkerError
from setnet.sandbox.messages import Message
from setnet.sandbox.process import (
    Limits,
    NotStartedError,
    Service,
    Tasks,
    WorkerProcess,
    answer,
    failure_in,
)

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


_START_ATTEMPTS = 3


class WorkerPool:
    """Runs the tasks of a service in processes, which are started when they are needed.

    Parameters
    ----------
    service
        What the processes can do.
    workers
        Number of processes; 0 works in this process, without any protection or limit.
    limits
        What one task may take.
    ahead
        Tasks that a busy process is given, so that it need not wait for its parent between two tasks; for
        tasks that are short messages and long work.
    """

    def __init__(
        self, service: Service, workers: int, limits: Limits | None = None, *, ahead: int = 0
    ) -> None:
        self._service, self._limits = service, limits or Limits()
        self._tasks: Tasks | None = None if workers else service.tasks()
        self._workers, self._max_calls = workers, 1 + ahead
        self._calls: dict[WorkerProcess, int] = {}  # under way in each process
        self._changed = threading.Condition()
        self.is_closed = False

    @property
    def capacity(self) -> int:
        """How many threads can have a call under way."""
        return self._workers * self._max_calls

    def call(self, task: Message, parse: Callable[[Message], T]) -> T:
        """Return what `parse` makes of the reply to a task; many threads may call.

        Raises
        ------
        SetNetError
            As the task raised it in the process.
        WorkerError
            When the process died, took too long or needed too much memory, when the task raised an error of
            another kind, or when `parse` refused the reply with a `WorkerError`.
        ModelError
            When processes die before they are ready.
        """

        def parsed(reply: Message) -> T | SetNetError:
            return failure_in(reply, self._limits) or parse(reply)

        result = self._send(task, parsed) if self._tasks is None else parsed(answer(self._tasks, task))
        if isinstance(result, SetNetError):
            raise result
        return result

    def _send(self, task: Message, parse: Callable[[Message], T]) -> T:
        while True:
            process = self._ready_process()
            try:
                return process.call(task, parse)
            except NotStartedError:
                continue
            finally:
                self._give_back(process)

    def warm_up(self) -> None:
        """Start a process before the first task comes."""
        if self._tasks is None:
            self._give_back(self._ready_process())

    def _ready_process(self) -> WorkerProcess:
        for _ in range(_START_ATTEMPTS):
            process = self._take()
            if not process.is_ready:
                try:
                    process.wait_until_ready()
                finally:
                    self._give_back(process, self._max_calls - process.is_ready)
            if process.is_ready:
                return process
        raise ModelError("worker processes die as soon as they start: --workers 0 shows why")

    def _take(self) -> WorkerProcess:
        """Return a process that is idle, else a new one, else one that is busy; wait until there is one."""
        with self._changed:
            while True:
                if self.is_closed:
                    raise WorkerError("is not processed: its worker pool is closed")
                for process in [p for p, calls in self._calls.items() if not calls and not p.is_alive]:
                    del self._calls[process]
                    process.stop()
                free = [p for p, calls in self._calls.items() if calls < self._max_calls and p.is_alive]
                best = min(free, key=lambda process: self._calls[process], default=None)
                if len(self._calls) < self._workers and (best is None or self._calls[best]):
                    new = WorkerProcess(self._service, self._limits)
                    self._calls[new] = self._max_calls  # others must not use it before it is ready
                    return new
                if best is not None:
                    self._calls[best] += 1
                    return best
                self._changed.wait()

    def _give_back(self, process: WorkerProcess, calls: int = 1) -> None:
        with self._changed:
            self._calls[process] -= calls
            is_over = not self._calls[process] and (self.is_closed or not process.is_alive)
            if is_over:
                del self._calls[process]
            self._changed.notify_all()
        if is_over:
            process.stop()

    def close(self) -> None:
        """End the processes, also in the middle of a task, which then fails."""
        with self._changed:
            self.is_closed = True
            processes = list(self._calls)
            idle = [process for process in processes if not self._calls[process]]
            for process in idle:  # the others are given back by the threads that use them
                del self._calls[process]
            self._changed.notify_all()
        for process in processes:
            process.kill()
        for process in idle:
            process.stop()
