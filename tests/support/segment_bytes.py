"""Segment files taken apart and put together again with checksums that fit."""

from __future__ import annotations

import json
import math
import zlib
from typing import Any

import numpy as np

from setnet.engine.segment_file import ALIGN, BLOCK, FORMAT, TAIL, TRAILER

Place = tuple[str, int, int, int]  # dtype, where it begins, bytes without padding, bytes with it


def footer_and_arrays(data: bytes | bytearray) -> tuple[dict[str, Any], bytearray]:
    """Return the footer of a segment file, and all bytes up to the end of its arrays."""
    length = TRAILER.unpack(data[-TRAILER.size :])[0]
    footer = json.loads(data[-TRAILER.size - length : -TRAILER.size])
    return footer, bytearray(data[: max((at + size for _, at, _, size in places(footer).values()))])


def places(footer: dict[str, Any]) -> dict[str, Place]:
    """Return where each array lies."""
    found, at = dict[str, Place](), ALIGN
    for name, (dtype, shape) in footer["arrays"].items():
        size = math.prod(shape) * np.dtype(dtype).itemsize
        found[name] = dtype, at, size, -(-size // ALIGN) * ALIGN
        at += found[name][3]
    return found


def checksums(footer: dict[str, Any], body: bytes | bytearray) -> bytes:
    """Return the checksums of all blocks of all arrays, and what fills them to a multiple of 64 bytes."""
    sums = [
        zlib.crc32(body[at:end][i : i + BLOCK])
        for _, at, _, size in places(footer).values()
        for end in [at + size]
        for i in range(0, size, BLOCK)
    ]
    return np.array([*sums, *[0] * (-len(sums) % (ALIGN // 4))], np.uint32).tobytes()


def put_together(body: bytes | bytearray, sums: bytes, footer: dict[str, Any] | bytes) -> bytes:
    """Return a file whose footer and trailer fit its checksums."""
    if isinstance(footer, dict):
        footer = json.dumps(footer | {"checksums": zlib.crc32(sums)}).encode()
    return bytes(body) + sums + footer + TRAILER.pack(len(footer), zlib.crc32(footer), FORMAT, TAIL)
