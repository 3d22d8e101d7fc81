"""The main module of a worker process: `python -m setnet.sandbox.worker_main SOCKET START`."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from setnet.sandbox.messages import Message, receive, send
from setnet.sandbox.service import Limits, Service, answer

_LARGEST_TASK = 1 << 30  # the parent is trusted, and has limits of its own
_MOST_FILES = 16
_GRACE_SECONDS = 2.0


def serve(connection: socket.socket, service: Service, limits: Limits) -> None:
    """Run tasks from the socket until its other end is closed."""
    _limit_memory(limits.memory)
    tasks = service.tasks()
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        send(connection, Message("ready"))
        while True:
            task = receive(connection, _LARGEST_TASK, most_files=_MOST_FILES)
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


if __name__ == "__main__":
    start = json.loads(sys.argv[2])
    serve(socket.socket(fileno=int(sys.argv[1])), Service(**start["service"]), Limits(**start["limits"]))
