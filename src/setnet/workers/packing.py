"""A message as bytes: the length of a JSON header, the header, then the bytes of the arrays.

Nothing is unpickled, and no size is believed before it was compared with a limit.
"""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.workers.message import Message, invalid_reply

LENGTH = struct.Struct("<I")
LARGEST_HEADER = 4 << 20
_MOST_DIMENSIONS = 4
_DTYPES = {name: np.dtype(name) for name in ("uint8", "int64", "float32", "float64")}

Layouts = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]


def parts_of(message: Message) -> list[bytes | memoryview]:
    """Return the header of a message and the bytes of its arrays."""
    arrays = {
        name: np.asarray(array, array.dtype.newbyteorder("="), order="C")
        for name, array in message.arrays.items()
    }
    header = {
        "name": message.name,
        "fields": dict(message.fields),
        "arrays": {name: [array.dtype.name, array.shape] for name, array in arrays.items()},
    }
    return [json.dumps(header, allow_nan=False).encode(), *map(bytes_of, arrays.values())]


def checked_sizes(layouts: Layouts, largest: int) -> Layouts:
    """Return the layouts of arrays, or raise `WorkerError` when these have more bytes than allowed."""
    # An empty side must not hide a huge one, which NumPy refuses in its own way.
    sizes = (dtype.itemsize * math.prod(max(n, 1) for n in shape) for dtype, shape in layouts.values())
    if sum(sizes) > largest:
        raise invalid_reply(f"more than {largest >> 20} MB of arrays")
    return layouts


def header_in(text: bytes | bytearray) -> tuple[str, dict[str, Any], Layouts]:
    """Return the name, the fields and the layouts of the arrays in a header."""
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


def bytes_of(array: NDArray[Any]) -> memoryview:
    """Return the memory of an array whose items lie side by side."""
    return array.reshape(-1).view(np.uint8).data
