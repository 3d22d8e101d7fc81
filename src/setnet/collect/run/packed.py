"""Arrays of numbers inside JSON: base64 of float32, a quarter of what their decimals take."""

from __future__ import annotations

from base64 import b64decode, b64encode

import numpy as np
from numpy.typing import NDArray

from setnet.errors import StorageError


def packed(numbers: NDArray[np.float32]) -> str:
    """Return numbers as text.

    >>> unpacked(packed(np.array([1.0, 2.5], np.float32))).tolist()
    [1.0, 2.5]
    """
    return b64encode(np.ascontiguousarray(numbers, "<f4").tobytes()).decode()


def unpacked(text: str) -> NDArray[np.float32]:
    """Return the numbers of a text."""
    try:
        return np.frombuffer(b64decode(text, validate=True), "<f4").astype(np.float32)
    except (ValueError, TypeError) as error:
        raise StorageError(f"damaged numbers in a manifest ({error}): run its step again") from error
