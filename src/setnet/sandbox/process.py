"""One worker process, seen from its parent."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from time import monotonic
from typing import TypeVar

from setnet.errors import WorkerError
from setnet.sandbox.messages import Message, receive, send
from setnet.sandbox.service import Limits, Service

_START_SECONDS = 120.0
_END_SECONDS = 2.0
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


T = TypeVar("T")


class NotStartedError(Exception):
    """The process was lost by a task before this one, which can run in another process."""


class WorkerProcess:
    """A fresh interpreter that runs the tasks of a service, one after the other.

    Unlike a child of `multiprocessing` it never runs the user's script. Ctrl-C reaches its parent only,
    which ends it; it also ends when its parent is gone. Numeric libraries get one thread each.
    """

    def __init__(self, service: Service, limits: Limits) -> None:
        self._limits = limits
        self._sending = threading.Lock()
        self._turns: deque[threading.Event] = deque()
        self.is_ready = self.is_broken = False
        self._socket, theirs = socket.socketpair()
        self._outgoing = self._socket.dup()  # a timeout belongs to a socket, and sending has its own
        start = json.dumps({"service": asdict(service), "limits": asdict(limits)})
        path = os.pathsep.join(path for path in sys.path if path)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "setnet.sandbox.worker_main", str(theirs.fileno()), start],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={**os.environ, **_ONE_THREAD, "PYTHONPATH": path},
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        """Whether the process runs and can be trusted to answer the next task."""
        return not self.is_broken and self._process.poll() is None

    def wait_until_ready(self) -> None:
        """Return when the service has loaded what it needs (`is_ready`), or has failed to."""
        self.is_broken = True
        with suppress(WorkerError):
            self.is_ready = self._receive(_START_SECONDS).name == "ready"
        self.is_broken = not self.is_ready

    def call(self, task: Message, parse: Callable[[Message], T]) -> T:
        """Return what `parse` makes of the reply to a task.

        Several threads may call: the process has its next task at hand when it ends one, and the time of a
        task counts from the end of the task before.

        Raises
        ------
        WorkerError
            When the process dies, is late, or `parse` refuses its reply. It is killed.
        NotStartedError
            When that happened to a task before this one.
        """
        turn = threading.Event()
        with self._sending:
            try:
                send(self._outgoing, task, monotonic() + self._limits.seconds)
            except OSError:  # late or dead: whoever waits for its next reply notices
                self._process.kill()
            self._turns.append(turn)
            self._turns[0].set()
        turn.wait()
        try:
            if self.is_broken:
                raise NotStartedError
            return parse(self._receive(self._limits.seconds))
        except BaseException:  # what it says next would be taken for the reply to another task
            self.is_broken = True
            self._process.kill()
            raise
        finally:
            with self._sending:
                self._turns.popleft()
                if self._turns:
                    self._turns[0].set()

    def _receive(self, seconds: float) -> Message:
        try:
            return receive(self._socket, self._limits.reply, monotonic() + seconds)
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
        self._outgoing.close()
