"""Tasks that do what a process may do that a hostile file has taken over; imported by worker processes."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from setnet.errors import PhotoError
from setnet.sandbox import Message, Tasks


def tasks(options: Mapping[str, Any]) -> Tasks:
    """Return the tasks."""
    if options.get("dies"):
        sys.exit(7)
    return {
        "echo": lambda task: Message("done", task.fields, task.arrays),
        "pid": lambda task: Message("done", {"pid": os.getpid()}),
        "read": _read,
        "raise": _raise,
        "kill": _kill,
        "exit": lambda task: os._exit(task.fields["status"]),
        "hang": _hang,
        "allocate": lambda task: Message("done", {"bytes": len(bytearray(task.fields["bytes"]))}),
        "write": _write,
        "reply": lambda task: Message(task.fields["name"], task.fields["fields"]),
        "send handle": _send_handle,
    }


def _kill(task: Message) -> Message:
    os.kill(os.getpid(), task.fields["signal"])
    return _hang(task)


def _hang(task: Message) -> Message:
    time.sleep(3600)
    return task


def _read(task: Message) -> Message:
    with os.fdopen(task.files[0], "rb", closefd=False) as file:
        data = file.read()
    handles = len(os.listdir("/proc/self/fd"))
    return Message("done", {"handles": handles}, {"data": np.frombuffer(data, np.uint8)})


def _raise(task: Message) -> Message:
    kinds: dict[str, Exception] = {
        "ours": PhotoError("no photo"),
        "memory": MemoryError(),
        "other": LookupError("a secret"),
    }
    if task.fields["kind"] == "hidden":
        try:
            raise MemoryError
        except MemoryError as error:
            raise PhotoError("damaged") from error
    raise kinds[task.fields["kind"]]


def _write(task: Message) -> Message:
    """Write bytes of its own choice to the parent, then hang."""
    os.write(int(sys.argv[1]), task.arrays["bytes"].tobytes())
    return _hang(task)


def _send_handle(task: Message) -> Message:
    """Reply as is right, but with an open file beside each byte of the length."""
    text = b'{"name": "done", "fields": {}, "arrays": {}}'
    with socket.socket(fileno=os.dup(int(sys.argv[1]))) as connection:
        for byte in len(text).to_bytes(4, "little"):
            socket.send_fds(connection, [bytes([byte])], [0, 1, 2])
        connection.sendall(text)
    return _hang(task)
