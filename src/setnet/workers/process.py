"""One worker process, seen from its parent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict
from time import monotonic

from setnet.errors import WorkerError
from setnet.workers.channel import receive, send
from setnet.workers.limits import Limits
from setnet.workers.message import Message
from setnet.workers.service import Service

__all__ = ["WorkerProcess"]

_START_SECONDS = 120.0
_END_SECONDS = 2.0
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


class WorkerProcess:
    """A fresh interpreter that runs the tasks of a service, one after the other.

    Unlike a child of `multiprocessing` it never runs the user's script. Ctrl-C reaches its parent only,
    which ends it; it also ends when its parent is gone. Numeric libraries get one thread each.
    """

    def __init__(self, service: Service, limits: Limits) -> None:
        self._limits = limits
        self._socket, theirs = socket.socketpair()
        start = json.dumps({"service": asdict(service), "limits": asdict(limits)})
        path = os.pathsep.join(path for path in sys.path if path)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "setnet.workers.child", str(theirs.fileno()), start],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD, "PYTHONPATH": path},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Return when the service has loaded what it needs."""
        if self._exchange(None, _START_SECONDS).name != "ready":
            raise WorkerError("its worker process gave an invalid reply (not ready)")

    def call(self, task: Message) -> Message:
        """Return the reply to a task.

        Raises
        ------
        WorkerError
            When the process dies, is late, or says nonsense. It is of no use afterwards: `stop` it.
        """
        return self._exchange(task, self._limits.seconds)

    def _exchange(self, task: Message | None, seconds: float) -> Message:
        deadline = monotonic() + seconds
        try:
            if task is not None:
                send(self._socket, task, deadline)
            return receive(self._socket, self._limits.reply, deadline)
        except TimeoutError:
            raise WorkerError(f"took longer than {seconds:g} s") from None
        except (EOFError, OSError):
            raise WorkerError(f"its worker process died ({self._ending()})") from None

    def _ending(self) -> str:
        try:
            code = self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:  # it closed its socket and lives on
            self._process.kill()
            code = self._process.wait()
        return f"signal {-code}" if code < 0 else f"exit status {code}"

    def kill(self) -> None:
        """End the process; a call under way in another thread fails."""
        self._process.kill()

    def stop(self) -> None:
        """End the process and free what it took; no call may be under way."""
        self._process.kill()
        self._process.wait()
        self._socket.close()
