"""A fixed number of worker processes; a task that kills or blocks one costs a new process, no more."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from setnet.errors import ModelError, WorkerError
from setnet.workers.limits import Limits
from setnet.workers.message import Message
from setnet.workers.process import WorkerProcess
from setnet.workers.service import Service, Tasks, answer, failure_in

__all__ = ["WorkerPool", "default_workers"]

_START_ATTEMPTS = 3

T = TypeVar("T")


def default_workers() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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
    """

    def __init__(self, service: Service, workers: int, limits: Limits | None = None) -> None:
        self._service, self._limits = service, limits or Limits()
        self._tasks: Tasks | None = None if workers else service.tasks()
        self._places = threading.BoundedSemaphore(max(1, workers))
        self._lock = threading.Lock()
        self._processes: set[WorkerProcess] = set()
        self._idle: list[WorkerProcess] = []
        self.is_closed = False

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

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
        if self._tasks is not None:
            reply = answer(self._tasks, task)
            failure = failure_in(reply, self._limits)
            if failure is None:
                return parse(reply)
            raise failure
        with self._borrowed() as process:
            reply = process.call(task)
            failure = failure_in(reply, self._limits)
            if failure is None:
                return parse(reply)
        raise failure

    def warm_up(self) -> None:
        """Start a process before the first task comes."""
        if self._tasks is None:
            with self._borrowed():
                pass

    @contextmanager
    def _borrowed(self) -> Iterator[WorkerProcess]:
        with self._places:
            process = self._idle_process() or self._new_process()
            try:
                yield process
            except BaseException:  # whatever it says next would be taken for the reply to another task
                self._drop(process)
                raise
            with self._lock:
                self._idle.append(process)

    def _idle_process(self) -> WorkerProcess | None:
        while True:
            with self._lock:
                if self.is_closed or not self._idle:
                    return None
                process = self._idle.pop()
            if process.is_alive:
                return process
            self._drop(process)

    def _new_process(self) -> WorkerProcess:
        for _ in range(_START_ATTEMPTS):
            with self._lock:
                if self.is_closed:
                    raise WorkerError("is not processed: its worker pool is closed")
                process = WorkerProcess(self._service, self._limits)
                self._processes.add(process)
            try:
                process.wait_until_ready()
            except BaseException as error:
                self._drop(process)
                if not isinstance(error, WorkerError):
                    raise
            else:
                return process
        raise ModelError("worker processes die as soon as they start: --workers 0 shows why")

    def _drop(self, process: WorkerProcess) -> None:
        with self._lock:
            self._processes.discard(process)
        process.stop()

    def close(self) -> None:
        """End the processes, also in the middle of a task, which then fails."""
        with self._lock:
            self.is_closed = True
            processes, idle = list(self._processes), list(self._idle)
            self._idle.clear()
        for process in processes:
            process.kill()
        for process in idle:  # the others are dropped by the threads that use them
            self._drop(process)
