"""Messages over a Unix socket: a length, a JSON header, then the bytes of the arrays.

Nothing is unpickled, and no size is believed before it was compared with a limit. File handles travel beside
the first bytes (SCM_RIGHTS); a receiver that expects none never gets any.
"""

from __future__ import annotations

import json
import math
import socket
import struct
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.workers.message import Message, invalid_reply

_LENGTH = struct.Struct("<I")
_LARGEST_HEADER = 4 << 20
_MOST_DIMENSIONS = 4
_DTYPES = {name: np.dtype(name) for name in ("uint8", "int64", "float32", "float64")}


def send(connection: socket.socket, message: Message, deadline: float = math.inf) -> None:
    """Send a message; a deadline is a time of `monotonic`, and past it a `TimeoutError` is raised."""
    arrays = {
        name: np.asarray(array, array.dtype.newbyteorder("="), order="C")
        for name, array in message.arrays.items()
    }
    header = {
        "name": message.name,
        "fields": dict(message.fields),
        "arrays": {name: [array.dtype.name, array.shape] for name, array in arrays.items()},
    }
    text = json.dumps(header, allow_nan=False).encode()
    _set_timeout(connection, deadline)
    socket.send_fds(connection, [_LENGTH.pack(len(text))], message.files)
    parts: list[bytes | memoryview] = [text, *map(_bytes_of, arrays.values())]
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
        start, files, _, _ = socket.recv_fds(connection, _LENGTH.size, most_files)
    (length,) = _LENGTH.unpack(start + _read(connection, _LENGTH.size - len(start), deadline))
    if length > _LARGEST_HEADER:
        raise invalid_reply(f"a header of {length} bytes")
    name, fields, layouts = _header(_read(connection, length, deadline))
    # An empty side must not hide a huge one, which NumPy refuses in its own way.
    sizes = (dtype.itemsize * math.prod(max(n, 1) for n in shape) for dtype, shape in layouts.values())
    if sum(sizes) > largest:
        raise invalid_reply(f"more than {largest >> 20} MB of arrays")
    arrays = {key: np.empty(shape, dtype) for key, (dtype, shape) in layouts.items()}
    for array in arrays.values():
        _fill(connection, _bytes_of(array), deadline)
    return Message(name, fields, arrays, tuple(files))


def _header(text: bytearray) -> tuple[str, dict[str, Any], dict[str, tuple[np.dtype[Any], tuple[int, ...]]]]:
    try:
        header = json.loads(text, parse_constant=_refuse_constant)
        name, fields, arrays = header["name"], header["fields"], header["arrays"]
        if not isinstance(name, str) or not isinstance(fields, dict):
            raise TypeError
        return name, fields, {key: _layout(*arrays[key]) for key in arrays}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise invalid_reply(f"a broken header: {type(error).__name__}") from error


def _layout(dtype: Any, shape: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    are_lengths = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not are_lengths or len(shape) > _MOST_DIMENSIONS:
        raise ValueError
    return _DTYPES[dtype], tuple(shape)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} in JSON")


def _bytes_of(array: NDArray[Any]) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


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
