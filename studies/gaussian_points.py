"""Makes the 256 points that lose least of a normal distribution of 1 to 16 dimensions.

``python -m studies.gaussian_points src/setnet/engine/gaussian_points.npz`` has made that file, once and for all:
budget codes name these points, and every index that has some depends on them.
"""

from __future__ import annotations

import sys

import numpy as np
from numpy.typing import NDArray

from setnet.engine.budget import POINTS, WIDEST

DRAWN, ROUNDS = 40_000, 30


def points(dim: int) -> NDArray[np.float32]:
    """Return the points with the least mean square distance from normal ones, by Lloyd's algorithm."""
    drawn = np.random.default_rng(dim).standard_normal((DRAWN, dim), np.float32)
    if dim == 1:  # in order, so that the nearest one can be told by bisection
        drawn.sort(axis=0)
    found = drawn[(np.arange(POINTS) * 2 + 1) * DRAWN // (2 * POINTS)]
    for _ in range(ROUNDS * (6 if dim == 1 else 1)):
        nearest = (drawn @ found.T - np.float32(0.5) * np.square(found).sum(axis=1)).argmax(axis=1)
        count = np.maximum(np.bincount(nearest, minlength=POINTS), 1)
        sums = [np.bincount(nearest, column, POINTS) for column in drawn.T]
        found = np.asarray(np.stack(sums, axis=1) / count[:, None], np.float32)
    return found


def kept_by(found: NDArray[np.float32]) -> float:
    """Return the share of the variance that points keep, by other draws."""
    drawn = np.random.default_rng(0).standard_normal((DRAWN, found.shape[1]), np.float32)
    nearest = (drawn @ found.T - np.float32(0.5) * np.square(found).sum(axis=1)).argmax(axis=1)
    return 1.0 - float(np.square(drawn - found[nearest]).mean())


if __name__ == "__main__":
    made = [points(dim).astype(np.float16) for dim in range(1, WIDEST + 1)]
    kept = [kept_by(one.astype(np.float32)) for one in made]
    np.savez(sys.argv[1], points=np.concatenate([one.ravel() for one in made]), kept=kept)
