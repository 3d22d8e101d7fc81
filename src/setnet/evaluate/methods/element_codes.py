"""Elements in the codes an index keeps of them, as the vectors that the codes stand for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

from setnet.heads import BitCodec, codec

Floats = NDArray[np.float32]
CODE_BITS = (8, 4, 1)


def coded_elements(bits: int) -> Callable[[Floats], Floats]:
    """Return what turns unit descriptors into what is left of them at 32, 8, 4 or 1 bit per dimension.

    A query in floats has the same product with the result as with the codes. One bit is RaBitQ's, around the
    mean of the descriptors; rows of zeros stand for none.
    """
    return _one_bit if bits == 1 else partial(_rounded, bits=bits)


def code_name(bits: int) -> str:
    """Return the name of element codes in tables.

    >>> code_name(4), code_name(1)
    ('element codes, 4 bits', 'element codes, 1 bit')
    """
    return f"element codes, {bits} bit{'s' * (bits > 1)}"


def element_bytes(dim: int, bits: int) -> int:
    """Return the bytes of an element: its code, and at one bit a factor of two bytes.

    >>> [element_bytes(128, bits) for bits in (32, 8, 4, 1)]
    [512, 128, 64, 18]
    """
    return codec.row_bytes(dim, bits) + 2 * (bits == 1)


def _rounded(rows: Floats, bits: int) -> Floats:
    return codec.decode(codec.encode(rows, bits), rows.shape[1], bits)


def _one_bit(rows: Floats) -> Floats:
    used = np.abs(rows).max(axis=1) > 0
    one_bit = BitCodec(rows[used].mean(axis=0) if used.any() else np.zeros(rows.shape[1], np.float32))
    out = np.zeros_like(rows)
    out[used] = one_bit.decode(*one_bit.encode(rows[used]))
    return out
