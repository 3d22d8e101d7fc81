"""Divide vectors among centres: Lloyd's algorithm, in pieces that fit the cache."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDS = 6
CHUNK = 8192  # vectors handled at once

Floats = NDArray[np.float32]


def centres_of(points: Floats, count: int) -> Floats:
    """Return the centres of ``count`` clusters of points, the same for the same points."""
    centres = points[np.random.default_rng(0).permutation(len(points))[:count]]
    for _ in range(ROUNDS):
        nearest = nearest_centres(points, centres)
        sizes = np.bincount(nearest, minlength=count)
        first, used = np.cumsum(sizes) - sizes, sizes > 0
        sums = np.add.reduceat(points[np.argsort(nearest, kind="stable")], first[used], axis=0)
        centres[used] = sums / sizes[used, None]
    return centres


def nearest_centres(points: NDArray[Any], centres: Floats) -> NDArray[np.int64]:
    """Return the number of the centre that is nearest to each point.

    >>> nearest_centres(np.array([[0.9], [0.1]], np.float32), np.array([[0.0], [1.0]], np.float32)).tolist()
    [1, 0]
    """
    half = np.float32(0.5) * np.einsum("cd,cd->c", centres, centres)
    parts = (points[at : at + CHUNK].astype(np.float32) for at in range(0, len(points), CHUNK))
    return np.concatenate([(part @ centres.T - half).argmax(axis=1) for part in parts])
