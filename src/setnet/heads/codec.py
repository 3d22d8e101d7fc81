"""Set vectors as bytes: 32 and 16 bit floats, and 8, 4 or 1 bit codes of the direction.

Codes of 8 bits and fewer keep a row's direction only; `decode` returns unit-norm rows. Whoever needs the
length keeps it beside the codes.

======  ==========================================  =============================================
bits    a dimension's code                          bytes per row
======  ==========================================  =============================================
32, 16  the float itself                            4 D, 2 D
8       c - 128, scaled by the row's largest entry  D, rounded up to a multiple of 4
4       c - 7.5 steps of 0.335 sigma                D / 2, rounded up to a multiple of 4
1       the sign                                    D / 8, rounded up to a multiple of 8
======  ==========================================  =============================================
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, choice_error

BITS = (32, 16, 8, 4, 1)

# The step that loses least of a Gaussian over 16 uniform levels, in units of its sigma (Max, 1960).
FOUR_BIT_STEP = 0.335


def row_bytes(dim: int, bits: int) -> int:
    """Return how many bytes a row of ``dim`` dimensions takes at ``bits`` per dimension.

    >>> [row_bytes(128, bits) for bits in BITS]
    [512, 256, 128, 64, 16]
    """
    if bits in (32, 16):
        return dim * bits // 8
    if bits == 8:
        return -(-dim // 4) * 4
    if bits == 4:
        return -(-dim // 8) * 4
    if bits == 1:
        return -(-dim // 64) * 8
    raise choice_error("number of bits", bits, BITS)


def encode(vectors: NDArray[np.floating], bits: int) -> NDArray[np.uint8]:
    """Encode rows at ``bits`` per dimension; see the table above for the layout."""
    if bits in (32, 16):
        kind = np.float32 if bits == 32 else np.float16
        rows = np.ascontiguousarray(vectors, dtype=kind)
        return rows.view(np.uint8).reshape(len(rows), rows.shape[1] * bits // 8)
    n, dim = vectors.shape
    width = row_bytes(dim, bits)
    if bits == 8:
        peak = np.abs(vectors).max(axis=1, keepdims=True, initial=127.0 * np.finfo(np.float32).tiny)
        codes = np.full((n, width), 128, dtype=np.uint8)
        codes[:, :dim] = np.rint(vectors * (127.0 / peak)) + 128.0
        return codes
    if bits == 4:
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        step = np.maximum(length, np.finfo(np.float32).tiny) * (FOUR_BIT_STEP / np.sqrt(dim))
        levels = np.full((n, width * 2), 8, dtype=np.uint8)
        levels[:, :dim] = np.clip(np.floor(vectors / step) + 8.0, 0.0, 15.0)
        groups = levels.reshape(n, -1, 2, 4)
        return np.ascontiguousarray(groups[:, :, 0] | groups[:, :, 1] << 4).reshape(n, width)
    signs = np.zeros((n, width * 8), dtype=bool)
    signs[:, :dim] = vectors > 0
    return np.packbits(signs, axis=1, bitorder="little")


def decode(codes: NDArray[np.uint8], dim: int, bits: int) -> NDArray[np.float32]:
    """Return the rows behind codes: the floats as stored, or unit-norm directions from 8, 4 or 1 bit."""
    if codes.ndim != 2 or codes.shape[1] != row_bytes(dim, bits):
        raise InvalidInputError(
            f"codes of shape {codes.shape} do not hold {dim} dimensions at {bits} bits "
            f"({row_bytes(dim, bits)} bytes per row expected)"
        )
    codes = np.ascontiguousarray(codes)
    if bits in (32, 16):
        return codes.view(np.float32 if bits == 32 else np.float16).astype(np.float32)
    rows = decode_levels(codes, dim, bits)
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.maximum(length, np.finfo(np.float32).tiny)
    return rows


def decode_levels(codes: NDArray[np.uint8], dim: int, bits: int) -> NDArray[np.float32]:
    """Return the integer or half-integer levels that 8, 4 or 1 bit codes stand for, unscaled."""
    n = len(codes)
    if bits == 8:
        return codes[:, :dim].astype(np.float32) - 128.0
    if bits == 4:
        groups = codes.reshape(n, -1, 1, 4)
        both = np.concatenate([groups & 15, groups >> 4], axis=2)
        return both.reshape(n, -1)[:, :dim].astype(np.float32) - 7.5
    signs = np.unpackbits(codes, axis=1, bitorder="little")[:, :dim]
    return signs.astype(np.float32) * 2.0 - 1.0
