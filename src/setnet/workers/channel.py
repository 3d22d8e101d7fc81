"""Messages over a Unix socket.

File handles travel beside the first bytes (SCM_RIGHTS); a receiver that expects none never gets any.
"""

from __future__ import annotations

import math
import socket
from time import monotonic

import numpy as np

from setnet.workers.message import Message, invalid_reply
from setnet.workers.packing import LARGEST_HEADER, LENGTH, bytes_of, checked_sizes, header_in, parts_of


def send(connection: socket.socket, message: Message, deadline: float = math.inf) -> None:
    """Send a message; a deadline is a time of `monotonic`, and past it a `TimeoutError` is raised."""
    parts = parts_of(message)
    _set_timeout(connection, deadline)
    socket.send_fds(connection, [LENGTH.pack(len(parts[0]))], message.files)
    for part in parts:
        _set_timeout(connection, deadline)
        connection.sendall(part)


def receive(
    connection: socket.socket, largest: int, deadline: float = math.inf, most_files: int = 0
) -> Message:
    """Return the next message; its arrays have `largest` bytes together at most.

    Raises
    ------
    WorkerError
        When the bytes are no message.
    EOFError, TimeoutError
        When the other end is closed, or too slow.
    """
    start = b""
    files: list[int] = []
    if most_files:
        start, files, _, _ = socket.recv_fds(connection, LENGTH.size, most_files)
    (length,) = LENGTH.unpack(start + _read(connection, LENGTH.size - len(start), deadline))
    if length > LARGEST_HEADER:
        raise invalid_reply(f"a header of {length} bytes")
    name, fields, layouts = header_in(_read(connection, length, deadline))
    layouts = checked_sizes(layouts, largest)
    arrays = {key: np.empty(shape, dtype) for key, (dtype, shape) in layouts.items()}
    for array in arrays.values():
        _fill(connection, bytes_of(array), deadline)
    return Message(name, fields, arrays, tuple(files))


def _read(connection: socket.socket, size: int, deadline: float) -> bytearray:
    buffer = bytearray(size)
    _fill(connection, memoryview(buffer), deadline)
    return buffer


def _fill(connection: socket.socket, left: memoryview, deadline: float) -> None:
    while left:
        _set_timeout(connection, deadline)
        count = connection.recv_into(left)
        if not count:
            raise EOFError
        left = left[count:]


def _set_timeout(connection: socket.socket, deadline: float) -> None:
    seconds = deadline - monotonic()
    if seconds <= 0:
        raise TimeoutError
    connection.settimeout(None if seconds == math.inf else seconds)
