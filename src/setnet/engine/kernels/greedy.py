"""Greedy one-to-one matching of query elements with the elements of items (paper 5.3)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.engine.kernels import backend
from setnet.errors import InvalidInputError


def greedy_matches(similarities: ArrayLike) -> NDArray[np.int32]:
    """Return the element that each query element is matched with, most similar pair first, no side twice.

    Parameters
    ----------
    similarities
        (..., Q, E): of Q query elements with E elements, for any number of items of E elements each.

    Returns
    -------
    (..., Q) positions of elements, -1 where an item has fewer elements than the query. Equal similarities
    go to the first query element, then to the first element.

    Examples
    --------
    >>> greedy_matches([[0.9, 0.8], [0.85, 0.1]]).tolist()
    [0, 1]
    >>> greedy_matches([[0.5], [0.7]]).tolist()
    [-1, 0]
    """
    tables = np.ascontiguousarray(similarities, dtype=np.float64)
    if tables.ndim < 2:
        raise InvalidInputError(f"similarities have shape {tables.shape}, expected (..., Q, E)")
    *items, size, elements = tables.shape
    matched = np.full((*items, size), -1, np.int32)
    if tables.size:
        backend.kernels.greedy(tables, matched.size // size, size, elements, matched)
    return matched
