"""The engine of many machines: Dask's workers, asked directly, and its scheduler for tasks."""

from __future__ import annotations

import asyncio
import hashlib
import math
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any

from distributed import Client
from distributed.core import ConnectionPool

from setnet.cluster.engine.engine_log import silence_engine
from setnet.cluster.engine.head_file import HeadFile
from setnet.cluster.engine.secrets import security_of
from setnet.cluster.engine.task_pool import TaskPool
from setnet.cluster.engine.worker import HANDLER, LARGEST, LARGEST_HEADER
from setnet.cluster.storage.cluster_file import ClusterFile
from setnet.errors import ClusterError
from setnet.workers import Limits, Message, Service, packed, unpacked

_CONNECT_SECONDS = 10.0
_REFRESH_SECONDS = 1.0


class DaskEngine:
    """Asks the workers of a running cluster; a call goes straight to a worker, not through the head."""

    def __init__(self, root: Path) -> None:
        self._root, self._file = root, ClusterFile.read(root)
        self._lock = threading.Lock()
        self._addresses: list[str] = []
        self._refreshed = 0.0
        silence_engine()
        self._client = self._connected()
        # Calls have a loop of their own, and the head is asked in a thread: searches never wait for it.
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="setnet-cluster", daemon=True).start()
        self._refreshing = ThreadPoolExecutor(1, "setnet-cluster")
        self._pool = ConnectionPool(connection_args=security_of(root).get_connection_args("client"))
        self._run(self._pool.start()).result(_CONNECT_SECONDS)
        self._refresh()

    def _connected(self) -> Client:
        head = HeadFile.read(self._root, self._file.cluster)
        try:
            return Client(
                head.address, security=security_of(self._root), timeout=_CONNECT_SECONDS, set_as_default=False
            )
        except (OSError, TimeoutError) as error:
            raise ClusterError(
                f"the head at {head.address} cannot be reached or refuses this cluster's key ({error}): "
                "start it again with `setnet cluster start`"
            ) from None

    def _run(self, work: Any) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @property
    def workers(self) -> list[dict[str, Any]]:
        """The workers that the head knows: address, name and number of threads."""
        known = self._client.scheduler_info(n_workers=-1)["workers"]
        return [{"address": a, "name": w["name"], "threads": w["nthreads"]} for a, w in sorted(known.items())]

    def ask(self, shard: int, call: Message, deadline: float, copy: int = 0) -> Future[Message]:
        """Send a call to the worker that is copy number ``copy`` of a shard."""
        places = self._places(shard)
        if not places:
            raise ClusterError("no worker has joined the cluster: `setnet cluster join` adds one")
        return self._run(self._sent(places[copy % len(places)], packed(call), deadline))

    async def _sent(self, address: str, payload: bytes, deadline: float) -> Message:
        try:
            async with asyncio.timeout(deadline):
                reply = await getattr(self._pool(address), HANDLER)(payload=payload)
        except TimeoutError:
            raise TimeoutError(f"worker {address} gave no answer within {deadline:.3g} s") from None
        except OSError as error:  # of a connection
            raise ClusterError(f"worker {address} cannot be reached ({error})") from None
        return unpacked(bytes(reply), LARGEST, LARGEST_HEADER)

    def copies(self, shard: int) -> int:
        """Return how many workers may be asked for a shard."""
        return len(self._places(shard))

    def _places(self, shard: int) -> list[str]:
        """Return the workers of a shard, the one that writes it first: those of the highest hashes."""
        chosen = sorted(self._known(), key=lambda address: _weight(address, shard), reverse=True)
        return chosen[: self._file.replicas]

    def _known(self) -> list[str]:
        with self._lock:
            if monotonic() - self._refreshed > _REFRESH_SECONDS:
                self._refreshed = math.inf  # until it is done
                self._refreshing.submit(self._refresh)
            return self._addresses

    def _refresh(self) -> None:
        """Take over which workers the head knows; while it is away, those known before are asked."""
        try:
            if self._client.status != "running":
                before, self._client = self._client, self._connected()
                before.close()
            self._addresses = [worker["address"] for worker in self.workers] or self._addresses
        except (ClusterError, OSError, TimeoutError, KeyError):
            pass
        finally:
            self._refreshed = monotonic()

    def pool(self, service: Service, limits: Limits | None = None) -> TaskPool:
        """Return a pool that runs the tasks of a service on all machines."""
        return TaskPool(self._client, self._known, service, limits or Limits())

    def close(self) -> None:
        """Give up all connections."""
        self._refreshing.shutdown(wait=False, cancel_futures=True)
        with suppress(TimeoutError):
            self._run(self._pool.close()).result(_CONNECT_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._client.close()


def _weight(address: str, shard: int) -> bytes:
    return hashlib.blake2b(f"{shard} {address}".encode(), digest_size=8).digest()
