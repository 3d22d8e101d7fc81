"""One vector for the examples of a person, in which examples unlike the others count less."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError

_LEAST = 0.05  # what an example counts that is like none of the others


def person_vector(examples: NDArray[np.floating], name: str = "a person") -> NDArray[np.float32]:
    """Return a person's (dim,) vector of length 1: the mean of their examples, outliers weighted down.

    An example counts with the square of its mean similarity to the others. Among three examples of which one
    shows somebody else, that one counts a fifteenth of the others: the plain mean would find both people. Two
    examples say nothing about each other and count the same. `setnet evaluate matching` compares this with
    the plain mean and with the nearest example.

    >>> same, other = np.eye(3, dtype=np.float32)[:2]
    >>> person_vector(np.stack([same, same, other])).round(2).tolist()
    [1.0, 0.0, 0.0]
    """
    rows = np.asarray(examples, np.float64)
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    mean = example_weights(rows) @ rows
    length = float(np.linalg.norm(mean))
    if length < 1e-9:
        raise InvalidInputError(f"the examples of {name} cancel out: their mean is the zero vector")
    return np.asarray(mean / length, np.float32)


def example_weights(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how much each of a person's examples counts, in all 1; `rows` are of length 1."""
    n = len(rows)
    if n < 3:
        return np.full(n, 1.0 / n)
    to_others = (rows @ rows.sum(axis=0) - 1.0) / (n - 1)
    weights = np.maximum(to_others, _LEAST) ** 2
    total: NDArray[np.float64] = weights / weights.sum()
    return total
