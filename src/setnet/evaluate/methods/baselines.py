"""Aggregators that need no set training: means, generalised means, and whitening before or after them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.heads import SET_LOGISTIC, Aggregator, set_means, unit

Floats = NDArray[np.float32]
RIDGE = 0.01


@dataclass(frozen=True, eq=False)
class Whitening:
    """``unit((v - mean) matrix)``."""

    mean: Floats
    matrix: Floats

    def __call__(self, rows: Floats) -> Floats:
        """Return whitened rows at unit length."""
        centred: Floats = np.asarray(rows, np.float32) - self.mean
        return unit(centred @ self.matrix)


def fit_whitening(rows: Floats, ridge: float = RIDGE) -> Whitening:
    """Return the PCA whitening of ``rows``; ``ridge``, a share of the mean variance, tames flat axes."""
    count, dim = rows.shape
    if count <= dim:
        raise InvalidInputError(
            f"whitening {dim} dimensions needs more than {dim} descriptors, got {count}: "
            "give a larger descriptor file"
        )
    mean = rows.mean(axis=0, dtype=np.float64)
    variance, axes = np.linalg.eigh(np.cov(rows.T.astype(np.float64)))
    variance = np.maximum(variance, 0) + ridge * variance.mean()
    return Whitening(mean.astype(np.float32), (axes / np.sqrt(variance)).astype(np.float32))


class GeneralisedMean(Aggregator):
    """(mean |x|^p)^(1/p), section 5.2; ``signed`` keeps each value's sign through the powers.

    The formula is made for descriptors without negative values; of others it keeps the sizes only.
    """

    def __init__(self, dim: int, p: float, signed: bool = False) -> None:
        self.name = f"gm-signed-{p:g}" if signed else f"gm-{p:g}"
        self.p, self.signed, self.logistic = p, signed, SET_LOGISTIC
        self.element_dim, self.dim, self.bits = dim, dim, 32

    def pool(self, elements: Floats, counts: NDArray[np.int64]) -> Floats:
        """Return the unit-norm generalised mean of each set."""
        means = set_means(self._power(unit(elements), self.p), counts)
        return unit(self._power(means, 1.0 / self.p))

    def _power(self, rows: Floats, p: float) -> Floats:
        size = np.abs(rows) ** np.float32(p)
        return np.copysign(size, rows) if self.signed else size


class Whitened(Aggregator):
    """Another aggregator with whitening of its elements (before) or of its set vectors (after)."""

    def __init__(self, inner: Aggregator, whitening: Whitening, where: str) -> None:
        self.inner, self.whitening, self.where = inner, whitening, where
        self.name, self.logistic = f"{inner.name}+W-{where}", inner.logistic
        self.element_dim, self.dim, self.bits = inner.element_dim, inner.dim, inner.bits

    def pool(self, elements: Floats, counts: NDArray[np.int64]) -> Floats:
        """Return unit-norm set vectors."""
        if self.where == "before":
            return self.inner.pool(self.whitening(elements), counts)
        return self.whitening(self.inner.pool(elements, counts))
