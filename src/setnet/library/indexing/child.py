"""Starting a process of our own that may die of a photo."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from multiprocessing.connection import Connection

__all__ = ["start_child"]


def start_child(module: str, *arguments: str) -> tuple[subprocess.Popen[bytes], Connection]:
    """Run a module in a fresh interpreter; return the process and our end of a socket pair.

    Its first argument is the number of its own end. Unlike a child of `multiprocessing` it never runs the
    user's script; Ctrl-C is for its parent, which ends it; numeric libraries get one thread each.
    """
    ours, theirs = socket.socketpair()
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    path = os.pathsep.join(path for path in sys.path if path)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(theirs.fileno()), *arguments],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            env={**os.environ, **one, "PYTHONPATH": path},
            start_new_session=True,
        )
    return process, Connection(ours.detach())
