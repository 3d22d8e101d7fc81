"""A worker of a cluster: serves shards and runs tasks, and joins again when the head was away."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import dask
from distributed import Worker

from setnet.cluster.engine.engine_log import silence_engine
from setnet.cluster.engine.head_file import HeadFile
from setnet.cluster.engine.node import Node
from setnet.cluster.engine.scheduler import SETTINGS, stopped
from setnet.cluster.engine.secrets import security_of
from setnet.cluster.storage.cluster_file import ClusterFile
from setnet.errors import ClusterError
from setnet.system import usable_cores
from setnet.workers import packed, unpacked

HANDLER = "setnet_ask"
LARGEST = 1 << 30  # bytes of arrays in a call
LARGEST_HEADER = 1 << 28  # ids and attributes of a batch
_RETRY_SECONDS = 1.0
_JOIN_SECONDS = 20.0


def run_worker(root: Path, host: str, threads: int | None, say: Callable[[str], None]) -> None:
    """Serve the cluster in a folder until told to stop; while its head is away, wait for it."""
    node = Node(root)
    pool = ThreadPoolExecutor(max(4, usable_cores()), "setnet-shard")
    silence_engine()
    try:
        with (
            dask.config.set(SETTINGS),
            tempfile.TemporaryDirectory(prefix="setnet-worker-") as scratch,
            suppress(asyncio.CancelledError),  # told to stop
        ):
            asyncio.run(_serve(root, host, threads or usable_cores(), node, pool, scratch, say))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        node.close()


async def _serve(
    root: Path,
    host: str,
    threads: int,
    node: Node,
    pool: ThreadPoolExecutor,
    scratch: str,
    say: Callable[[str], None],
) -> None:
    loop = asyncio.get_running_loop()

    async def ask(payload: bytes) -> bytes:
        return await loop.run_in_executor(pool, answered, node, bytes(payload))

    cluster = ClusterFile.read(root).cluster
    joined = False
    while True:
        try:
            head = HeadFile.read(root, cluster)
            worker = Worker(
                head.address,
                host=host,
                nthreads=threads,
                name=f"{socket.gethostname()}-{os.getpid()}",
                protocol="tls",
                security=security_of(root),
                dashboard=False,
                dashboard_address=f"{host}:0",
                local_directory=scratch,
                memory_limit=0,
                death_timeout=_JOIN_SECONDS,
            )
            worker.handlers[HANDLER] = ask
            await worker
        except (OSError, TimeoutError, RuntimeError) as error:  # some are wrapped by the engine
            if not joined:
                raise _refused(head, host, error.__cause__ or error) from None
        except ClusterError:
            if not joined:
                raise
        else:
            joined = True
            say(f"joined {head.address} with {threads} threads")
            try:
                await stopped(worker.finished())
            finally:
                await worker.close()
            say("the head is away: waiting for it")
        await stopped(asyncio.sleep(_RETRY_SECONDS))


def answered(node: Node, payload: bytes) -> bytes:
    """Return the reply to a call, both packed."""
    return packed(node.answer(unpacked(payload, LARGEST, LARGEST_HEADER)))


def _refused(head: HeadFile, host: str, error: BaseException) -> ClusterError:
    if isinstance(error, OSError) and error.errno == errno.EADDRNOTAVAIL:
        return ClusterError(f"this machine has no address {host}: give one of its own with --host")
    why = str(error) or "no answer in time"
    return ClusterError(
        f"the head at {head.address} cannot be reached or refuses this cluster's key ({why}): see that it "
        "runs (`setnet cluster status`), or start it again"
    )
