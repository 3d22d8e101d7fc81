"""Tasks that any worker of a cluster can run: those of a `Service`, in processes of their own with limits."""

from __future__ import annotations

import atexit
import json
import threading

from setnet.errors import SetNetError
from setnet.system import usable_cores
from setnet.workers import Limits, Message, Service, WorkerPool, packed, unpacked

_pools: dict[str, WorkerPool] = {}
_lock = threading.Lock()


def run_batch(service: str, limits: str, tasks: list[bytes], largest: int) -> list[bytes]:
    """Run the tasks of a service, given as JSON, in processes of this machine; return the replies, packed.

    A task that fails costs no other one of its batch: its failure is its reply.
    """
    pool = _pool(service, limits)
    return [packed(_reply(pool, unpacked(task, largest))) for task in tasks]


def _reply(pool: WorkerPool, task: Message) -> Message:
    try:
        return pool.call(task, lambda reply: reply)
    except SetNetError as error:
        return Message("failed", {"kind": type(error).__name__, "text": str(error)})


def _pool(service: str, limits: str) -> WorkerPool:
    key = service + limits
    with _lock:
        if key not in _pools:
            for other in _pools.values():  # one library at a time is indexed
                other.close()
            _pools.clear()
            _pools[key] = WorkerPool(
                Service(**json.loads(service)), usable_cores(), Limits(**json.loads(limits)), ahead=1
            )
            atexit.register(_pools[key].close)
        return _pools[key]
