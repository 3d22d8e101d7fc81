"""The engine without machines: every shard is served by threads of this process."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from setnet.cluster.engine.node import Node
from setnet.system import usable_cores
from setnet.workers import Message


class InProcessEngine:
    """Serves all shards in this process: for one machine, and as what other engines are compared with."""

    def __init__(self, root: Path, threads: int | None = None) -> None:
        self._node = Node(root)
        self._threads = ThreadPoolExecutor(threads or max(4, usable_cores()), "setnet-shard")

    def ask(self, shard: int, call: Message, deadline: float, copy: int = 0) -> Future[Message]:
        """Answer a call in a thread."""
        return self._threads.submit(self._node.answer, call)

    def copies(self, shard: int) -> int:
        """Return 1: there is only this process."""
        return 1

    def close(self) -> None:
        """Close all shards, after the calls under way."""
        self._threads.shutdown()
        self._node.close()
