"""Similarities of genuine pairs and of impostor pairs: the two distributions a world must have."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError

Floats = NDArray[np.float32]
PAIRS_AT_ONCE = 4096


@dataclass(frozen=True, eq=False)
class Similarities:
    """Sampled similarities of pairs of faces: of one person, and of different people."""

    same: Floats
    different: Floats


@dataclass(frozen=True)
class Distance:
    """How far two samples of similarities are apart.

    Attributes
    ----------
    wasserstein
        Mean distance between equal quantiles, in units of similarity.
    kolmogorov
        Greatest difference between the two cumulative distributions.
    """

    wasserstein: float
    kolmogorov: float


def similarities(
    rows: Floats, owner: NDArray[np.int64], rng: np.random.Generator, pairs: int = 100_000
) -> Similarities:
    """Return similarities of random pairs; in genuine pairs every person counts the same.

    Parameters
    ----------
    rows
        (n, D) descriptors at unit length.
    owner
        (n,) whose face each row is; -1 for unknown people, who are in pairs with known ones only.
    """
    order = np.argsort(owner, kind="stable")
    people, start, counts = np.unique(owner[order], return_index=True, return_counts=True)
    several = np.flatnonzero((counts > 1) & (people >= 0))
    if not len(several):
        raise InvalidInputError("no person has two faces: nothing to compare; label two faces of one person")
    person = several[rng.integers(len(several), size=pairs)]
    first = rng.integers(counts[person])
    second = (first + rng.integers(1, counts[person])) % counts[person]
    i, j = order[start[person] + first], order[start[person] + second]
    same = _dots(rows, i, j)
    i, j = rng.integers(len(rows), size=(2, pairs))
    other = owner[i] != owner[j]
    return Similarities(same, _dots(rows, i[other], j[other]))


def _dots(rows: Floats, i: NDArray[np.int64], j: NDArray[np.int64]) -> Floats:
    """Return the dot product of each pair, some pairs at a time: all wide vectors would fill the memory."""
    parts = [
        np.einsum("ij,ij->i", rows[i[at : at + PAIRS_AT_ONCE]], rows[j[at : at + PAIRS_AT_ONCE]])
        for at in range(0, len(i), PAIRS_AT_ONCE)
    ]
    return np.concatenate(parts)


def distance(one: NDArray[np.floating], other: NDArray[np.floating]) -> Distance:
    """Return how far apart two samples are.

    >>> distance(np.array([0.0, 1.0]), np.array([0.5, 1.5]))
    Distance(wasserstein=0.5, kolmogorov=0.5)
    """
    from scipy.stats import ks_2samp, wasserstein_distance

    apart = ks_2samp(one, other, method="asymp").statistic  # the method is that of the p-value, not used
    return Distance(float(wasserstein_distance(one, other)), float(apart))
