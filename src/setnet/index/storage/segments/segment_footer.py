"""Reads the footer of a segment file, trusting nothing in it: every array must lie inside the file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from setnet.errors import StorageError

ALIGN = 64
DTYPES = {np.dtype(kind).str: np.dtype(kind) for kind in ("u1", "u2", "i4", "i8", "f2", "f4")}
LARGEST_NORM = 1e6  # of a code or residual: 4096 dimensions of eight bits stay far below


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """Where an array lies in a segment file, what it looks like, and its checksum."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    bytes: int
    crc: int


def parsed_footer(path: Path, footer: bytes, end: int) -> tuple[dict[str, Any], dict[str, ArrayEntry]]:
    """Return a footer's numbers and arrays; ``end`` is where the arrays must end."""
    try:
        parsed = json.loads(footer)
        info = _info(parsed["info"])
        entries = parsed["arrays"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StorageError(f"{path} is damaged: its footer cannot be read ({error!r})") from error
    arrays = {}
    for name, entry in entries:
        try:
            arrays[name] = _entry(entry, end)
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{path} is damaged: array {name!r} of its footer is unsound ({error})"
            ) from error
    return info, arrays


def _whole(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{what} {value!r} is no size")
    return value


def _info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a segment: of items, elements and blocks, and the norms behind its bounds."""
    found: dict[str, Any] = {name: _whole(info[name], name) for name in ("items", "elements")}
    if "first_wide" in info:
        found["first_wide"] = _whole(info["first_wide"], "first_wide")
    if "rotation" in info:
        found["rotation"] = str(info["rotation"])
    for name in ("high_norms", "norms", "set_norms"):
        if name in info:
            residual, norm = (float(value) for value in info[name])
            if not (0 <= residual <= LARGEST_NORM and 0 <= norm <= LARGEST_NORM):
                raise ValueError(f"{name} {info[name]!r} are no norms")
            found[name] = [residual, norm]
    return found


def _entry(entry: Mapping[str, Any], end: int) -> ArrayEntry:
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"dtype {entry['dtype']!r} is none of {', '.join(DTYPES)}")
    dtype = DTYPES[entry["dtype"]]
    shape = tuple(_whole(size, "shape") for size in entry["shape"])
    offset, size = _whole(entry["offset"], "offset"), _whole(entry["bytes"], "bytes")
    if offset % ALIGN or offset < ALIGN or offset + size > end:
        raise ValueError(f"bytes {offset} to {offset + size} do not lie between {ALIGN} and {end}")
    needed = math.prod(shape) * dtype.itemsize
    if not 1 <= len(shape) <= 4 or max(shape) >= 2**48 or size != -(-needed // ALIGN) * ALIGN:
        raise ValueError(f"shape {shape} of {dtype.str} does not take {size} bytes")
    return ArrayEntry(dtype, shape, offset, size, _whole(entry["crc"], "crc"))
