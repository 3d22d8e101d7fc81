"""The head of a cluster: the engine's scheduler, which knows the workers and shares out tasks."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import dask
from distributed import Scheduler

from setnet.cluster.engine.engine_log import silence_engine
from setnet.cluster.engine.head_file import HeadFile
from setnet.cluster.engine.secrets import make_key, security_of
from setnet.cluster.storage.cluster_file import ClusterFile
from setnet.errors import ClusterError

SETTINGS = {
    "distributed.scheduler.worker-ttl": "30s",  # a frozen worker's tasks are given to others after that
    "distributed.scheduler.allowed-failures": 3,
    "distributed.scheduler.http.routes": [],  # no pages without a key
    "distributed.worker.http.routes": [],
    "distributed.comm.timeouts.connect": "10s",
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
}


def run_head(root: Path, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    """Run the head of a cluster until it is told to stop (Ctrl-C, SIGTERM)."""
    file = ClusterFile.read(root)
    HeadFile.refuse_second(root)
    make_key(root)
    silence_engine()
    with dask.config.set(SETTINGS), suppress(asyncio.CancelledError):  # told to stop
        asyncio.run(_run(root, file, host, port, on_ready))


async def _run(root: Path, file: ClusterFile, host: str, port: int, on_ready: Callable[[str], None]) -> None:
    try:
        scheduler = await Scheduler(
            host=host,
            port=port,
            protocol="tls",
            security=security_of(root),
            dashboard=False,
            dashboard_address=f"{host}:0",
        )
    except (OSError, RuntimeError) as error:  # some are wrapped by the engine
        why = error.__cause__ or error
        raise ClusterError(
            f"cannot listen on {host} port {port}: {getattr(why, 'strerror', None) or why}; choose another "
            "with --host or --port"
        ) from None
    head = HeadFile.write(root, scheduler.address, file.cluster)
    try:
        on_ready(scheduler.address)
        await stopped(scheduler.finished())
    finally:
        head.remove(root)
        await scheduler.close()


async def stopped(finished: Awaitable[object]) -> None:
    """Wait until something has finished, or this process is told to stop."""
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, told.set)
    waiting = [asyncio.ensure_future(finished), asyncio.ensure_future(told.wait())]
    _, left = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in left:
        task.cancel()
    if told.is_set():
        raise asyncio.CancelledError
