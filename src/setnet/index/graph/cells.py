"""Divide vectors into cells: those of a cell are nearest to the same centre."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.index.k_means import centres_of, nearest_centres

SAMPLE = 32  # vectors for each cell that the centres are made from

Floats = NDArray[np.float32]


def cells_of(vectors: Floats, count: int) -> tuple[list[NDArray[np.int64]], Floats]:
    """Return the rows of each of ``count`` cells, in ascending order, and the cells' centres."""
    step = max(1, len(vectors) // (SAMPLE * count))
    centres = centres_of(vectors[::step].copy(), min(count, len(vectors)))
    cell = nearest_centres(vectors, centres)
    ends = np.cumsum(np.bincount(cell, minlength=len(centres)))
    return np.split(np.argsort(cell, kind="stable"), ends[:-1]), centres
