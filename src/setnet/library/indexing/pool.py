"""Worker processes with short queues: a worker that dies costs one photo, not the run."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from time import monotonic
from typing import TYPE_CHECKING, cast

from setnet.errors import ModelError
from setnet.library.indexing.child import start_child
from setnet.library.indexing.worker import PhotoResult, PhotoTask, read_photo

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

__all__ = ["WorkerPool", "default_workers"]

_QUEUE = 6  # tasks a worker holds: enough to stay busy while the writer commits a batch
_MOST_STILLBORN = 5  # workers in a row that die before their first answer: not the photos' fault
_PATIENCE_SECONDS = 300.0  # no photo takes this long; one that does is hostile


def default_workers() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Worker:
    """A process that reads photos, and the tasks it holds."""

    def __init__(self, settings: FaceSettings) -> None:
        self.process, self.pipe = start_child(
            "setnet.library.indexing.worker_process", json.dumps(settings.to_dict())
        )
        self.tasks: deque[PhotoTask] = deque()
        self.since = monotonic()
        self.has_answered = False

    def give(self, task: PhotoTask) -> None:
        if not self.tasks:
            self.since = monotonic()
        self.tasks.append(task)
        with suppress(BrokenPipeError, ConnectionResetError):  # it died: `wait` reports that, with its tasks
            self.pipe.send(task)

    def take(self) -> PhotoResult:
        result = self.pipe.recv()
        assert isinstance(result, PhotoResult)
        self.tasks.popleft()
        self.since = monotonic()
        self.has_answered = True
        return result

    def stop(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.wait()


class WorkerPool:
    """Runs tasks in processes and yields results as they come, in no fixed order.

    Parameters
    ----------
    settings
        Detector, descriptor and their limits.
    workers
        Number of processes; 0 works in this process (no protection against a crash).
    """

    def __init__(self, settings: FaceSettings, workers: int) -> None:
        self._settings = settings
        self._workers = [_Worker(settings) for _ in range(workers)]
        self._stillborn = 0

    def __enter__(self) -> WorkerPool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.stop()

    def results(self, tasks: Iterable[PhotoTask]) -> Iterator[PhotoResult]:
        """Yield one result per task."""
        if not self._workers:
            for task in tasks:
                yield read_photo(task, self._settings)
            return
        waiting = iter(tasks)
        returned: deque[PhotoTask] = deque()
        more = True
        while True:
            for worker in self._workers:
                while len(worker.tasks) < _QUEUE and (more or returned):
                    given = returned.popleft() if returned else next(waiting, None)
                    if given is None:
                        more = False
                        break
                    worker.give(given)
            if not any(worker.tasks for worker in self._workers):
                return
            yield from self._collect(returned)

    def _collect(self, returned: deque[PhotoTask]) -> Iterator[PhotoResult]:
        busy = {worker.pipe: worker for worker in self._workers if worker.tasks}
        ready = wait(list(busy), timeout=5.0)
        for pipe in ready:
            worker = busy[cast(Connection, pipe)]
            try:
                yield worker.take()
            except (EOFError, OSError):
                yield self._replace(worker, returned, "the process that read it died")
        now = monotonic()
        for worker in busy.values():
            if worker.pipe not in ready and worker.tasks and now - worker.since > _PATIENCE_SECONDS:
                yield self._replace(worker, returned, f"took longer than {_PATIENCE_SECONDS:.0f} s")

    def _replace(self, worker: _Worker, returned: deque[PhotoTask], reason: str) -> PhotoResult:
        """Put a new worker in the place of a lost one: its first task is the culprit, the rest go back."""
        worker.process.kill()
        code = worker.process.wait()
        self._stillborn = 0 if worker.has_answered else self._stillborn + 1
        if self._stillborn == _MOST_STILLBORN:
            raise ModelError("worker processes die as soon as they start: --workers 0 shows why")
        if code < 0 and "longer" not in reason:
            reason += f" (signal {-code})"
        culprit = worker.tasks.popleft()
        returned.extend(worker.tasks)
        worker.stop()
        self._workers[self._workers.index(worker)] = _Worker(self._settings)
        info = None
        with suppress(OSError):
            info = os.stat(culprit.path)
        size, mtime = (info.st_size, info.st_mtime_ns) if info else (0, 0)
        return PhotoResult(culprit.path, size=size, mtime_ns=mtime, reason=reason)
