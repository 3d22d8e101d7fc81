"""A cluster of real processes on loopback, which tests kill and freeze."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from setnet.cluster import ClusterIndex, open_cluster
from setnet.errors import SetNetError

WAIT = 120.0  # seconds for what takes one or two on an idle machine


def eventually(true: Callable[[], bool], what: str) -> None:
    """Wait until something holds, as for processes that start; fail after a long time."""
    end = time.monotonic() + WAIT
    while not true():
        assert time.monotonic() < end, f"{what} did not happen within {WAIT:g} s"
        time.sleep(0.05)


class RunningCluster:
    """The head and the workers of a cluster in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.head: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def start(self, workers: int) -> None:
        """Start the head and some workers, and wait until they have joined."""
        try:
            self.start_head()
            for _ in range(workers):
                self.start_worker()
            self.wait_for(workers)
        except BaseException:
            self.stop()
            raise

    def start_head(self) -> None:
        (self.root / "head.json").unlink(missing_ok=True)
        self.head = self._run("start", "--workers", "0")
        eventually((self.root / "head.json").exists, "the start of the head")

    def start_worker(self) -> None:
        self.workers.append(self._run("join", "--threads", "1"))

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        words = [sys.executable, "-m", "setnet", "cluster", command[0], str(self.root), *command[1:]]
        with open(self.root.parent / "processes.log", "ab") as log:
            return subprocess.Popen(words, stderr=log)

    def wait_for(self, workers: int) -> None:
        """Wait until the head knows so many workers."""
        from setnet.cluster import cluster_status

        def known() -> bool:
            try:
                return len(cluster_status(self.root).workers) == workers
            except SetNetError:
                return False

        eventually(known, f"the joining of {workers} workers")

    def client(self, deadline: float = 20.0) -> ClusterIndex:
        """Return the cluster as seen through its workers."""
        index = open_cluster(self.root)
        index._dispatcher.deadline = deadline
        return index

    @property
    def processes(self) -> list[subprocess.Popen[bytes]]:
        return [process for process in (self.head, *self.workers) if process and process.poll() is None]

    def stop(self) -> None:
        """End all processes, the frozen ones too."""
        for process in self.processes:
            process.kill()
            process.wait()

    def listening(self) -> list[str]:
        """Return the addresses, in hexadecimal, on which the processes listen, by the kernel's tables."""
        found = []
        for process in self.processes:
            inodes = set()
            for file in Path(f"/proc/{process.pid}/fd").iterdir():
                target = os.readlink(file)
                if target.startswith("socket:["):
                    inodes.add(target[8:-1])
            for table in ("tcp", "tcp6", "udp", "udp6"):
                for line in Path(f"/proc/{process.pid}/net/{table}").read_text().splitlines()[1:]:
                    words = line.split()
                    if words[9] in inodes and (words[3] == "0A" or table.startswith("udp")):
                        found.append(words[1].partition(":")[0])
        return found


def freeze(process: subprocess.Popen[bytes]) -> None:
    """Let a process stand still, as a machine that hangs does."""
    process.send_signal(signal.SIGSTOP)


def thaw(process: subprocess.Popen[bytes]) -> None:
    """Let a frozen process go on."""
    process.send_signal(signal.SIGCONT)
