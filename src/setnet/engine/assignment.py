"""The best one-to-one pairing of a query's elements with an item's."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import NDArray


def best_pairs(value: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and columns of the pairs whose values add up to most: as many as the shorter side.

    Shortest augmenting paths (the Hungarian algorithm as Jonker and Volgenant gave it, 1987): a row at a time
    is paired, and the pairs before it move where that gains most.

    >>> [places.tolist() for places in best_pairs(np.array([[0.9, 0.8], [0.7, 0.1]]))]
    [[0, 1], [1, 0]]
    """
    if value.shape[0] > value.shape[1]:
        columns, rows = best_pairs(value.T)
        order = np.argsort(rows)
        return rows[order], columns[order]
    cost = (-value).tolist()
    n = value.shape[1]
    row_price, column_price = [0.0] * len(cost), [0.0] * (n + 1)
    row_of = [-1] * (n + 1)  # the last column is where the row that looks for a partner stands
    for new in range(len(cost)):
        row_of[n], column = new, n
        least, before, is_done = [inf] * n, [n] * n, [False] * (n + 1)
        while row_of[column] >= 0:  # until a column without a row is reached
            is_done[column] = True
            row, step, nearest = row_of[column], inf, -1
            for j in range(n):
                if is_done[j]:
                    continue
                length = cost[row][j] - row_price[row] - column_price[j]
                if length < least[j]:
                    least[j], before[j] = length, column
                if nearest < 0 or least[j] < step:
                    step, nearest = least[j], j
            for j in range(n + 1):
                if is_done[j]:
                    row_price[row_of[j]] += step
                    column_price[j] -= step
                elif j < n:
                    least[j] -= step
            column = nearest
        while column != n:
            row_of[column], column = row_of[before[column]], before[column]
    paired = np.array(row_of[:n], np.int64)
    columns = np.flatnonzero(paired >= 0)
    order = np.argsort(paired[columns])
    return paired[columns][order], columns[order]
