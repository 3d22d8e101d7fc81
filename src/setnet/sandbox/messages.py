"""Messages between a process and its workers: JSON fields, raw arrays, open files; nothing is unpickled."""

from __future__ import annotations

import json
import math
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import WorkerError

_LONGEST_TEXT = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A task or a reply.

    The methods return one value each, or raise `WorkerError` when the message has none of that kind: a
    process that opened a hostile file may say anything.

    Attributes
    ----------
    name : of the task to run; of a reply, "ready", "done" or "failed"
    fields : values that JSON can hold
    arrays : of the types uint8, int64, float32 and float64
    files : open file descriptors; only a task carries any
    """

    name: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    files: tuple[int, ...] = ()

    def flag(self, name: str) -> bool:
        """Return a truth value."""
        value = self.fields.get(name)
        if not isinstance(value, bool):
            raise invalid_reply(f"{name} is not true or false")
        return value

    def integer(self, name: str, low: int, high: int) -> int:
        """Return a whole number from `low` to `high`."""
        value = self.fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise invalid_reply(f"{name} is not a whole number from {low} to {high}")
        return value

    def number(self, name: str, low: float, high: float) -> float:
        """Return a number from `low` to `high`."""
        value = self.fields.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise invalid_reply(f"{name} is not a number from {low} to {high}")
        return float(value)

    def text(self, name: str) -> str:
        """Return a text, cut to a sensible length, without control characters and broken Unicode."""
        value = self.fields.get(name)
        if not isinstance(value, str):
            raise invalid_reply(f"{name} is not a text")
        return "".join(c if c.isprintable() else " " for c in value[:_LONGEST_TEXT])

    def array(self, name: str, dtype: type[np.generic], *shape: int | None) -> NDArray[Any]:
        """Return an array of finite values; None in the shape stands for any length."""
        value = self.arrays.get(name)
        fits = (
            value is not None
            and value.dtype == dtype
            and value.ndim == len(shape)
            and all(want is None or want == have for want, have in zip(shape, value.shape, strict=True))
        )
        if value is None or not fits or not np.isfinite(value).all():
            wanted = ", ".join("any" if n is None else str(n) for n in shape)
            raise invalid_reply(f"{name} is not finite {np.dtype(dtype).name} of shape ({wanted})")
        return value

    def data(self, name: str) -> bytes:
        """Return an array of bytes as `bytes`."""
        return self.array(name, np.uint8, None).tobytes()


def as_bytes(data: bytes) -> NDArray[np.uint8]:
    """Return bytes as an array that a message can carry."""
    return np.frombuffer(data, np.uint8)


def invalid_reply(what: str) -> WorkerError:
    """Return the error for a reply that cannot be used, and says what it is."""
    return WorkerError(f"its worker process gave an invalid reply ({what})")


_LENGTH = struct.Struct("<I")
_LARGEST_HEADER = 4 << 20
_MAX_DIMENSIONS = 4
_DTYPES = {name: np.dtype(name) for name in ("uint8", "int64", "float32", "float64")}

Layouts = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]


def _parse_header(text: bytes | bytearray, largest: int) -> tuple[str, dict[str, Any], Layouts]:
    """Return the name, the fields and the layouts of the arrays, which have `largest` bytes at most."""
    try:
        header = json.loads(text, parse_constant=_reject_constant)
        name, fields, arrays = header["name"], header["fields"], header["arrays"]
        if not isinstance(name, str) or not isinstance(fields, dict):
            raise TypeError
        layouts = {key: _layout(*arrays[key]) for key in arrays}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise invalid_reply(f"a broken header: {type(error).__name__}") from error
    # An empty side must not hide a huge one, which NumPy refuses in its own way.
    sizes = (dtype.itemsize * math.prod(max(n, 1) for n in shape) for dtype, shape in layouts.values())
    if sum(sizes) > largest:
        raise invalid_reply(f"more than {largest >> 20} MB of arrays")
    return name, fields, layouts


def _layout(dtype: Any, shape: Any) -> tuple[np.dtype[Any], tuple[int, ...]]:
    are_lengths = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not are_lengths or len(shape) > _MAX_DIMENSIONS:
        raise ValueError
    return _DTYPES[dtype], tuple(shape)


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} in JSON")


def _memory(array: NDArray[Any]) -> memoryview:
    """Return the memory of an array whose items lie side by side."""
    return array.reshape(-1).view(np.uint8).data


def send(connection: socket.socket, message: Message, deadline: float = math.inf) -> None:
    """Send a message; a deadline is a time of `monotonic`, and past it a `TimeoutError` is raised."""
    arrays = {
        name: np.asarray(array, array.dtype.newbyteorder("="), order="C")
        for name, array in message.arrays.items()
    }
    layouts = {name: [array.dtype.name, array.shape] for name, array in arrays.items()}
    header = {"name": message.name, "fields": dict(message.fields), "arrays": layouts}
    parts: list[bytes | memoryview] = [
        json.dumps(header, allow_nan=False).encode(),
        *map(_memory, arrays.values()),
    ]
    _set_timeout(connection, deadline)
    socket.send_fds(connection, [_LENGTH.pack(len(parts[0]))], message.files)
    for part in parts:
        _set_timeout(connection, deadline)
        connection.sendall(part)


def receive(
    connection: socket.socket, largest: int, deadline: float = math.inf, max_files: int = 0
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
    if max_files:
        start, files, _, _ = socket.recv_fds(connection, _LENGTH.size, max_files)
    (length,) = _LENGTH.unpack(start + _read(connection, _LENGTH.size - len(start), deadline))
    if length > _LARGEST_HEADER:
        raise invalid_reply(f"a header of {length} bytes")
    name, fields, layouts = _parse_header(_read(connection, length, deadline), largest)
    arrays = {key: np.empty(shape, dtype) for key, (dtype, shape) in layouts.items()}
    for array in arrays.values():
        _fill(connection, _memory(array), deadline)
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
