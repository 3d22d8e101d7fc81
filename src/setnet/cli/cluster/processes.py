"""`setnet cluster start` and `join`: the processes of a cluster."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from setnet.cli.output import say

Folder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="The cluster's folder, on storage that its machines share."),
]
Host = Annotated[
    str,
    typer.Option(metavar="ADDRESS", help="This machine's address; others reach it unless it is loopback."),
]


def start(
    folder: Folder,
    host: Host = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = 0,
    workers: Annotated[
        int, typer.Option(min=0, max=64, metavar="N", help="Workers to start on this machine too.")
    ] = 1,
) -> None:
    """Run the head of a cluster, and a worker beside it, until Ctrl-C.

    All connections are encrypted and need the cluster's key, DIR/index/key.pem, which `start` makes. Whoever
    can read it may run code on the cluster's machines.
    """
    from setnet.cluster import cluster_folder, run_head

    root = cluster_folder(folder)
    beside: list[subprocess.Popen[bytes]] = []

    def on_ready(address: str) -> None:
        say(
            f"the head of {folder} listens at {address}\n  join  setnet cluster join {folder}\n  stop  Ctrl-C"
        )
        command = [sys.executable, "-m", "setnet", "cluster", "join", str(folder), "--host", host]
        beside.extend(subprocess.Popen(command) for _ in range(workers))

    try:
        run_head(root, host, port, on_ready)
    finally:
        for process in beside:
            process.terminate()
        for process in beside:
            process.wait()


def join(
    folder: Folder,
    host: Host = "127.0.0.1",
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=1024, metavar="N", help="Photos read at one time [default: one per core]."),
    ] = None,
) -> None:
    """Serve a cluster's shards and read photos for it, until Ctrl-C; waits while its head is away."""
    from setnet.cluster import cluster_folder, run_worker

    run_worker(cluster_folder(folder), host, threads, say)
