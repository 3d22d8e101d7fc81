"""What an index needs of an aggregator, and the simplest one: the mean."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from setnet.heads import codec
from setnet.heads.logistic import SET_LOGISTIC, Logistic

Floats = NDArray[np.float32]
FEW_SETS = 64


@runtime_checkable
class Aggregator(Protocol):
    """Turns a set of element descriptors into one set vector, and a query into the same space.

    A subclass has to define `pool` only.

    Attributes
    ----------
    name
        An index made with one aggregator refuses queries of another name.
    element_dim
        Dimension of the elements it takes; None for any.
    dim
        Dimension of its set vectors.
    bits
        Bits per dimension of a stored set vector: 32, 16, 8, 4 or 1.
    logistic
        The (w, b) that suits similarities between its queries and its set vectors.
    """

    name: str
    element_dim: int | None
    dim: int
    bits: int
    logistic: Logistic

    @property
    def bytes_per_item(self) -> int:
        """Bytes that one item's set vector takes in an index."""
        return codec.row_bytes(self.dim, self.bits)

    def describe(self, elements: Floats) -> Floats:
        """Return one vector per element, as single-element sets; never quantised."""
        return self.pool(elements, np.ones(len(elements), dtype=np.int64))

    def pool(self, elements: Floats, counts: NDArray[np.int64]) -> Floats:
        """Return one unit-norm set vector per set, before quantisation."""
        raise NotImplementedError

    def encode(self, elements: Floats, counts: NDArray[np.int64]) -> NDArray[np.uint8]:
        """Return the bytes an index stores per set: (N, bytes_per_item)."""
        return codec.encode(self.pool(elements, counts), self.bits)


def unit(rows: Floats) -> Floats:
    """Return rows scaled to length one; rows of zeros stay zero.

    >>> unit(np.array([[3.0, 4.0]], dtype=np.float32)).tolist()
    [[0.6, 0.8]]
    """
    length = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Floats = (rows / np.maximum(length, np.finfo(np.float32).tiny)).astype(np.float32, copy=False)
    return scaled


def set_sums(rows: Floats, counts: NDArray[np.int64]) -> Floats:
    """Return the sum of each run of ``counts[i]`` rows; an empty run sums to zero."""
    counts = np.asarray(counts)
    order = np.argsort(-counts, kind="stable")
    starts = (np.cumsum(counts) - counts)[order]
    descending = counts[order]
    sums = np.zeros((len(counts), rows.shape[1]), dtype=np.float32)
    # the n-th members of all sets that have one are added at once; the few large sets are summed one by one
    last = int(descending[min(len(counts), FEW_SETS) - 1]) if len(counts) else 0
    for nth in range(last):
        size = int(np.searchsorted(-descending, -nth, side="left"))
        sums[:size] += rows[starts[:size] + nth]
    for i in range(int(np.searchsorted(-descending, -last, side="left"))):
        sums[i] += rows[starts[i] + last : starts[i] + descending[i]].sum(axis=0)
    result = np.empty_like(sums)
    result[order] = sums
    return result


class Mean(Aggregator):
    """Average pooling followed by L2 normalisation: the paper's baseline, with no training."""

    def __init__(self, dim: int, logistic: Logistic = SET_LOGISTIC, bits: int = 32) -> None:
        self.name, self.logistic = "mean", logistic
        self.element_dim, self.dim, self.bits = dim, dim, bits

    def describe(self, elements: Floats) -> Floats:
        """Return the elements at unit length."""
        return unit(elements)

    def pool(self, elements: Floats, counts: NDArray[np.int64]) -> Floats:
        """Return the unit-norm mean of each set."""
        return unit(set_sums(elements, counts))
