"""Tasks shared out to all machines in batches, by the engine's head."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import asdict
from typing import Any, TypeVar

from distributed import Client

from setnet.cluster.engine.tasks import run_batch
from setnet.errors import ClusterError, WorkerError
from setnet.workers import Limits, Message, Service, failure_in, packed, unpacked

_LEAST_CAPACITY = 32
_LARGEST_BATCH = 16
_ROUNDS = 4  # batches per thread at least, so that all end at about the same time

T = TypeVar("T")


class TaskPool:
    """A `setnet.workers.WorkerPool` whose processes are on all machines; the head shares out the tasks.

    A batch whose worker dies is run by another one.
    """

    def __init__(
        self, client: Client, known: Callable[[], Sequence[str]], service: Service, limits: Limits
    ) -> None:
        self._client, self._known, self._limits = client, known, limits
        options = {"module": service.module, "options": dict(service.options)}
        self._service, self._limits_json = json.dumps(options), json.dumps(asdict(limits))
        self._pending: set[Any] = set()

    @property
    def workers(self) -> int:
        """How many workers there are now."""
        return len(self._known())

    @property
    def threads(self) -> int:
        """How many tasks can run at one time, on all machines."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"].values()
        return sum(worker["nthreads"] for worker in workers)

    @property
    def capacity(self) -> int:
        """How many threads can have a call under way: enough for workers that join later too."""
        return max(_LEAST_CAPACITY, 4 * self.threads)

    def batch_size(self, tasks: int) -> int:
        """Return how many of so many tasks make a good batch: few, where there are few for each thread."""
        return max(1, min(_LARGEST_BATCH, tasks // (_ROUNDS * max(1, self.threads))))

    def call(self, task: Message, parse: Callable[[Message], T]) -> T:
        """Return what ``parse`` makes of the reply to a task, as `WorkerPool.call` does."""
        return self.taken(self.replies([task])[0], parse)

    def taken(self, reply: Message, parse: Callable[[Message], T]) -> T:
        """Return what ``parse`` makes of one of the `replies`; a failure that it reports is raised."""
        failure = failure_in(reply, self._limits)
        if failure is not None:
            raise failure
        return parse(reply)

    def replies(self, batch: Sequence[Message]) -> list[Message]:
        """Return the replies to tasks that one machine runs one after the other; some may be failures.

        Raises
        ------
        WorkerError
            When no worker survives the batch.
        ClusterError
            When the head is gone, so that nobody knows what became of it.
        """
        largest = self._limits.reply
        tasks = [packed(task) for task in batch]
        future = self._client.submit(
            run_batch, self._service, self._limits_json, tasks, largest, pure=False, retries=1
        )
        self._pending.add(future)
        try:
            return [unpacked(reply, largest) for reply in future.result()]
        except (CancelledError, asyncio.CancelledError):
            raise ClusterError(
                "the head of the cluster went away: what was found so far is kept. Start it again with "
                "`setnet cluster start`, then repeat the command, which goes on from there"
            ) from None
        except WorkerError:
            raise
        except Exception as error:  # its workers died
            raise WorkerError(f"no worker could process it ({type(error).__name__})") from error
        finally:
            self._pending.discard(future)

    def close(self) -> None:
        """Give up the tasks under way, which then fail."""
        if self._pending:
            self._client.cancel(list(self._pending), force=True)
