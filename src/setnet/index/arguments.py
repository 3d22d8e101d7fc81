"""Checks of what a caller passes in: whole numbers and vectors; errors name the value and what is valid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError

NORM_LIMIT = 1e18  # dot products of longer vectors would leave float32


def whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Return a whole number within its limits, or raise an error naming both."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InvalidInputError(f"{name} must be a whole number, not {value!r}")
    if value < least or (most is not None and value > most):
        limits = f"{least} to {most}" if most is not None else f"{least} and more"
        raise InvalidInputError(f"{name} is {value}: valid are {limits}")
    return int(value)


def is_unicode(text: str) -> bool:
    r"""Return whether a text can be stored: one with half of a surrogate pair cannot.

    >>> is_unicode("é"), is_unicode("\ud800")
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_vectors(rows: NDArray[Any], dim: int, name: Callable[..., str]) -> None:
    """Raise unless rows are (n >= 1, dim), finite, not zero and not longer than `NORM_LIMIT`."""
    if rows.ndim != 2 or rows.shape[1] != dim or len(rows) == 0:
        raise InvalidInputError(
            f"{name(0)}: shape {rows.shape} does not fit, expected (n, {dim}) with n >= 1"
        )
    squares = np.einsum("ij,ij->i", rows, rows)
    if np.isfinite(squares).all() and squares.min() > 0:
        return
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    for bad, why in (
        (~np.isfinite(rows).all(axis=1), "holds NaN or infinity"),
        (squares == 0, "is the zero vector"),
        (squares > NORM_LIMIT**2, f"is longer than {NORM_LIMIT:g}"),
    ):
        if bad.any():
            raise InvalidInputError(f"{name(int(np.argmax(bad)))} {why}")
