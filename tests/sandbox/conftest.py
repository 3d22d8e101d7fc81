"""A service with hostile tasks, which worker processes can import."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from setnet.sandbox import Limits, Message, Service, WorkerPool


@pytest.fixture
def open_pool() -> Iterator[Callable[..., WorkerPool]]:
    """Return the function that opens a pool of hostile processes, closed at the end of the test."""
    pools = []

    def opened(workers: int = 1, limits: Limits | None = None, ahead: int = 0, **options: Any) -> WorkerPool:
        service = Service("tests.sandbox.hostile_service", options)
        pools.append(WorkerPool(service, workers, limits, ahead=ahead))
        return pools[-1]

    yield opened
    for pool in pools:
        pool.close()


@pytest.fixture
def call() -> Callable[..., Message]:
    """Return the function that runs a task and returns its reply as it is."""

    def called(pool: WorkerPool, task: str, /, **fields: Any) -> Message:
        return pool.call(Message(task, fields), lambda reply: reply)

    return called


@pytest.fixture
def pid_of(call: Callable[..., Message]) -> Callable[[WorkerPool], int]:
    """Return the function that tells which process serves a pool."""
    return lambda pool: call(pool, "pid").integer("pid", 1, os.getpid() + (1 << 31))
