"""Tasks that any worker of a cluster can run: those of a `Service`, in processes of their own with limits."""

from __future__ import annotations

import atexit
import json
import threading

from setnet.system import usable_cores
from setnet.workers import Limits, Message, Service, WorkerPool, packed, unpacked

_pools: dict[str, WorkerPool] = {}
_lock = threading.Lock()


def run_task(service: str, limits: str, payload: bytes, largest: int) -> bytes:
    """Run a task of a service, given as JSON, in a process of this machine; return its reply, packed."""
    task = unpacked(payload, largest)
    return packed(_pool(service, limits).call(task, _as_it_is))


def _as_it_is(reply: Message) -> Message:
    return reply


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
