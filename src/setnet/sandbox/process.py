"""One worker process from both ends, what it can run, and how its failures travel."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from importlib import import_module
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

from setnet import errors
from setnet.errors import SetNetError, WorkerError
from setnet.sandbox.messages import Message, invalid_reply, receive, send

Tasks = Mapping[str, Callable[[Message], Message]]


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a worker process.

    Attributes
    ----------
    seconds : how long a task may take; then its process is killed
    memory : bytes of private memory of the process. A photo of 128 million pixels, the most that is decoded
        by default, peaks at 1.4 GB (JPEG) to 2.4 GB (transparent PNG), of which 0.2 GB are the models
    reply : bytes of all arrays in a reply
    """

    seconds: float = 60.0
    memory: int = 3 << 30
    reply: int = 64 << 20


@dataclass(frozen=True, slots=True)
class Service:
    """A module with a function ``tasks(options)`` that returns its tasks by name: only these can be run.

    The function is called once per process, so this is where models are loaded; ``options`` must fit JSON.
    """

    module: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def tasks(self) -> Tasks:
        """Import the module in this process and return its tasks."""
        tasks: Tasks = import_module(self.module).tasks(self.options)
        return tasks


def answer(tasks: Tasks, task: Message) -> Message:
    """Run a task and return its reply, or the failure as a reply."""
    try:
        return tasks[task.name](task)
    except Exception as error:
        kind = "MemoryError" if ran_out_of_memory(error) else type(error).__name__
        return Message("failed", {"kind": kind, "text": str(error)})


def ran_out_of_memory(error: BaseException | None) -> bool:
    """Tell whether an error, or what caused it, is a lack of memory."""
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__
    return False


def failure_in(reply: Message, limits: Limits) -> SetNetError | None:
    """Return the error that a reply reports, as the same class where it is one of ours."""
    if reply.name == "done":
        return None
    if reply.name != "failed":
        raise invalid_reply("neither done nor failed")
    kind, text = reply.text("kind"), reply.text("text")
    if kind == "MemoryError":
        return WorkerError(f"needs more memory than one task may use ({limits.memory / 1e9:.1f} GB)")
    known = getattr(errors, kind, None)
    if isinstance(known, type) and issubclass(known, SetNetError):
        return known(text)
    return WorkerError(f"cannot be processed ({kind})")


_LARGEST_TASK = 1 << 30  # the parent is trusted, and has limits of its own
_MAX_FILES = 16
_GRACE_SECONDS = 2.0


def serve(connection: socket.socket, service: Service, limits: Limits) -> None:
    """Run tasks from the socket until its other end is closed."""
    _limit_memory(limits.memory)
    tasks = service.tasks()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        send(connection, Message("ready"))
        while True:
            task = receive(connection, _LARGEST_TASK, max_files=_MAX_FILES)
            # The parent kills a process that is late; this is for one whose parent is gone.
            signal.setitimer(signal.ITIMER_REAL, limits.seconds + _GRACE_SECONDS)
            reply = answer(tasks, task)
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            for file in task.files:
                os.close(file)
            send(connection, reply)


def _limit_memory(size: int) -> None:
    """Limit the memory of this process, for good."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        # Unlike the address space, this leaves out mapped files and reserved but unused ranges.
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with suppress(OSError):  # where the machine runs out of memory, this process goes before its parent
        Path("/proc/self/oom_score_adj").write_text("1000")


def main() -> None:
    """Serve in this process, as the arguments that `WorkerProcess` gave it say."""
    start = json.loads(sys.argv[2])
    serve(socket.socket(fileno=int(sys.argv[1])), Service(**start["service"]), Limits(**start["limits"]))


_START_SECONDS = 120.0
_END_SECONDS = 2.0
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


T = TypeVar("T")
_CHILD = "from setnet.sandbox.process import main; main()"


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
                [sys.executable, "-c", _CHILD, str(theirs.fileno()), start],
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
