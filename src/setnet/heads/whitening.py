"""PCA whitening of descriptors or of set vectors (section 5.2 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.heads.aggregator import unit

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Whitening:
    """``unit((v - mean) matrix)``."""

    mean: Floats
    matrix: Floats

    def __call__(self, rows: Floats) -> Floats:
        """Return whitened rows at unit length."""
        centred: Floats = np.asarray(rows, np.float32) - self.mean
        return unit(centred @ self.matrix)


def fit_whitening(rows: Floats, ridge: float = 0.01) -> Whitening:
    """Return the PCA whitening of ``rows``, the direction of most variance first.

    ``ridge``, a share of the mean variance, is added to every direction: without it the directions in which
    training vectors hardly vary would be blown up into noise.
    """
    count, dim = rows.shape
    if count <= dim:
        raise InvalidInputError(
            f"whitening {dim} dimensions needs more than {dim} vectors, got {count}: give more descriptors"
        )
    mean = rows.mean(axis=0, dtype=np.float64)
    variance, axes = np.linalg.eigh(np.cov(rows.T.astype(np.float64)))
    variance = np.maximum(variance, 0) + ridge * variance.mean()
    matrix = (axes / np.sqrt(variance))[:, ::-1]
    return Whitening(mean.astype(np.float32), np.ascontiguousarray(matrix, np.float32))
