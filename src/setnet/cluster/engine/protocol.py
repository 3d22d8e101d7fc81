"""All that a cluster needs of an engine: to carry a message to a process that serves a shard, and back."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Protocol

from setnet.workers import Message


class Engine(Protocol):
    """Carries calls to the processes that serve a cluster's shards."""

    def ask(self, shard: int, call: Message, deadline: float, copy: int = 0) -> Future[Message]:
        """Send a call about a shard to the process that is its copy number ``copy``.

        Returns at once. The future has the reply, which may report a failure of the call itself; or it raises
        `ClusterError` or `TimeoutError` when the process cannot be reached within ``deadline`` seconds.
        """
        ...

    def copies(self, shard: int) -> int:
        """Return how many processes may be asked for a shard now; 0 when nobody is there."""
        ...

    def close(self) -> None:
        """Give up all connections."""
        ...
