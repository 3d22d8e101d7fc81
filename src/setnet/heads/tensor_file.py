"""Reads and writes safetensors files with NumPy alone: a JSON header, then the bytes of the arrays.

The format is that of https://huggingface.co/docs/safetensors: eight bytes with the length of the header, the
header, which gives each array's type, shape and place, and its own texts under ``__metadata__``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

# The largest first, which is the order of arrays in a file.
_TYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}
_LARGEST_HEADER = 100_000_000  # bytes, the limit of the format


def read_tensors(path: Path) -> tuple[Arrays, dict[str, str]]:
    """Return the arrays in a file and its texts; `ValueError` where it is damaged or has other types."""
    data = path.read_bytes()
    header, begin = _header(data)
    texts = header.pop("__metadata__", None) or {}
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError("its metadata are not texts")
    arrays: Arrays = {}
    at = 0  # arrays lie one after the other: none shares bytes, and none are left over
    for name, place in sorted(header.items(), key=_offsets):
        start, end = _offsets((name, place))
        kind, shape = _TYPES.get(place["dtype"]), place["shape"]
        if kind is None:
            raise ValueError(f"tensors of {place['dtype']}, not {' or '.join(_TYPES)}")
        if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
            raise ValueError(f"{name!r} has no shape")
        if start != at or end - start != math.prod(shape) * kind.itemsize or begin + end > len(data):
            raise ValueError(f"{name!r} is not where its header says")
        arrays[name] = np.frombuffer(data, kind, math.prod(shape), begin + start).reshape(shape)
        at = end
    if begin + at != len(data):
        raise ValueError("bytes that are no tensor's")
    return arrays, texts


def read_texts(path: Path) -> dict[str, str]:
    """Return the texts of a file of any types; none where it cannot be read."""
    try:
        return dict(_header(path.read_bytes())[0].get("__metadata__") or {})
    except (OSError, ValueError, TypeError):
        return {}


def write_tensors(path: Path, arrays: Mapping[str, NDArray[Any]], texts: Mapping[str, str]) -> None:
    """Write arrays of 32 or 16 bits and texts: the same bytes as the library `safetensors` writes."""
    kinds = {kind: name for name, kind in _TYPES.items()}
    order = sorted(arrays, key=lambda name: (list(kinds).index(arrays[name].dtype), name))
    header: dict[str, Any] = {"__metadata__": dict(texts)}
    at = 0
    for name in order:
        array = arrays[name]
        place = [at, at + array.nbytes]
        header[name] = {"dtype": kinds[array.dtype], "shape": list(array.shape), "data_offsets": place}
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    body = b"".join(np.ascontiguousarray(arrays[name]).tobytes() for name in order)
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """Return the header and where the arrays begin."""
    begin = 8 + int.from_bytes(data[:8], "little")
    if len(data) < 8 or begin > min(len(data), 8 + _LARGEST_HEADER):
        raise ValueError("cut short, or not a safetensors file")
    header = json.loads(data[8:begin])
    if not isinstance(header, dict):
        raise ValueError("its header is not an object")
    return header, begin


def _offsets(entry: tuple[str, Any]) -> tuple[int, int]:
    name, place = entry
    if not isinstance(place, dict) or not {"dtype", "shape", "data_offsets"} <= set(place):
        raise ValueError(f"{name!r} has no place")
    offsets = place["data_offsets"]
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(type(n) is int for n in offsets):
        raise ValueError(f"{name!r} has no place")
    return offsets[0], offsets[1]
