"""The parts a head is built from: input, branches (one lift per element), output layers.

Every part works on float32 rows and holds its weights as read-only float32 matrices, laid out so that the
heavy step is one matrix product ``rows @ weight``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.errors import ModelError
from setnet.heads.aggregator import unit

Floats = NDArray[np.float32]

# Columns of a product made at once, so that both sides of it are still in the cache when they meet.
COLUMNS = 512


def matrix(values: NDArray[np.floating], ndim: int, what: str) -> Floats:
    """Return ``values`` as a finite, read-only, contiguous float32 array of ``ndim`` axes."""
    array = np.ascontiguousarray(values, dtype=np.float32)
    if array.ndim != ndim or not np.isfinite(array).all():
        raise ModelError(f"{what}: expected a finite array of {ndim} axes, got shape {array.shape}")
    if array is values:
        array = array.copy()
    array.setflags(write=False)
    return array


def to_unit(rows: Floats) -> Floats:
    """Scale rows to length one in place, zeros staying zero, and return them; two passes, no copies."""
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    rows *= (1.0 / np.maximum(length, np.finfo(np.float32).tiny))[:, None]
    return rows


@dataclass(frozen=True)
class Input:
    """What happens to an element first: unit length, minus a mean, times a matrix, unit length again.

    ``mean`` (De,) and ``weight`` (De, Dx) may be absent. ``unit_first`` is for descriptors whose length
    means nothing; ``unit_last`` makes elements of poor quality, near the mean, count like the others.
    """

    mean: Floats | None = None
    weight: Floats | None = None
    unit_first: bool = True
    unit_last: bool = True

    def __post_init__(self) -> None:
        if self.mean is not None:
            object.__setattr__(self, "mean", matrix(self.mean, 1, "input mean"))
        if self.weight is not None:
            object.__setattr__(self, "weight", matrix(self.weight, 2, "input weight"))

    def width(self, element_dim: int) -> int:
        """Return the dimension of what comes out for elements of ``element_dim``."""
        return element_dim if self.weight is None else int(self.weight.shape[1])

    def apply(self, rows: Floats) -> Floats:
        """Return the prepared elements."""
        if self.unit_first:
            rows = unit(rows)
        if self.mean is not None:
            rows = rows - self.mean
        if self.weight is not None:
            rows = rows @ self.weight
        return unit(rows) if self.unit_last else rows


@dataclass(frozen=True)
class NetVLAD:
    """Equation 1 of the paper for one element: softmax_k(x a_k + b_k) (x - c_k), K x De numbers.

    ``a`` (De, K), ``b`` (K,), ``c`` (K, De). The output is k-major: cluster 0's residual first.
    """

    a: Floats
    b: Floats
    c: Floats
    share: float = 1.0

    def __post_init__(self) -> None:
        for name, ndim in (("a", 2), ("b", 1), ("c", 2)):
            object.__setattr__(self, name, matrix(getattr(self, name), ndim, f"NetVLAD {name}"))
        if not self.a.shape == self.c.T.shape or self.b.shape != self.a.shape[1:]:
            raise ModelError(
                f"NetVLAD: a {self.a.shape}, b {self.b.shape}, c {self.c.shape} "
                "do not fit (De, K), (K,), (K, De)"
            )

    @property
    def element_dim(self) -> int:
        """Dimension of the prepared elements it takes."""
        return int(self.a.shape[0])

    @property
    def width(self) -> int:
        """K times De."""
        return int(self.a.size)

    def lift(self, rows: Floats) -> Floats:
        """Return the softly assigned residuals of each row."""
        logits = rows @ self.a + self.b
        logits -= logits.max(axis=1, keepdims=True)
        assignment = np.exp(logits, out=logits)
        assignment /= assignment.sum(axis=1, keepdims=True)
        residuals = rows[:, None, :] - self.c
        residuals *= assignment[:, :, None]
        return residuals.reshape(len(rows), self.width)


@dataclass(frozen=True)
class Product:
    """A product of projections: (x R_1) * (x R_2) * ... * (x R_d), d = 1 being a plain projection.

    ``factors`` are matrices (De, D') of one shape. The expected similarity of two lifted elements is the
    d-th power of theirs, so that the cross-talk of unrelated elements (0.1) all but vanishes (0.01).
    """

    factors: tuple[Floats, ...]
    share: float = 1.0

    def __post_init__(self) -> None:
        factors = tuple(matrix(f, 2, "product factor") for f in self.factors)
        if not factors or len({f.shape for f in factors}) != 1:
            raise ModelError(f"product: needs factors of one shape, got {[f.shape for f in factors]}")
        object.__setattr__(self, "factors", factors)

    @property
    def element_dim(self) -> int:
        """Dimension of the prepared elements it takes."""
        return int(self.factors[0].shape[0])

    @property
    def width(self) -> int:
        """Dimension of the product."""
        return int(self.factors[0].shape[1])

    def lift(self, rows: Floats) -> Floats:
        """Return the product of the projections of each row, a strip of columns at a time."""
        result = np.empty((len(rows), self.width), dtype=np.float32)
        for start in range(0, self.width, COLUMNS):
            strip = slice(start, start + COLUMNS)
            product = rows @ self.factors[0][:, strip]
            for factor in self.factors[1:]:
                product *= rows @ factor[:, strip]
            result[:, strip] = product
        return result


@dataclass(frozen=True)
class Affine:
    """A fully connected layer, batch norm folded in, or a whitening: unit(v W + b)."""

    weight: Floats | None = None
    bias: Floats | None = None

    def __post_init__(self) -> None:
        if self.weight is not None:
            object.__setattr__(self, "weight", matrix(self.weight, 2, "affine weight"))
        if self.bias is not None:
            object.__setattr__(self, "bias", matrix(self.bias, 1, "affine bias"))

    def width(self, dim: int) -> int:
        """Return the columns of the weight."""
        out = dim if self.weight is None else int(self.weight.shape[1])
        if (self.weight is not None and len(self.weight) != dim) or (
            self.bias is not None and len(self.bias) != out
        ):
            raise ModelError(f"affine layer does not take {dim} dimensions")
        return out

    @property
    def linear(self) -> bool:
        """Whether it adds nothing: the layer of a sum is then the sum of the layers."""
        return self.bias is None

    def map_rows(self, rows: Floats) -> Floats:
        """Return rows W + b."""
        rows = rows.copy() if self.weight is None else rows @ self.weight
        if self.bias is not None:
            rows += self.bias
        return rows

    def apply(self, rows: Floats) -> Floats:
        """Return unit(rows W + b)."""
        return to_unit(self.map_rows(rows))


@dataclass(frozen=True)
class Blocks:
    """A block-diagonal map (G, m, p), then a transposition: two of them mix all G x m dimensions.

    A dense 4096 x 4096 rotation would be 32 MB; two of these with G = m = 64 are 1 MB.
    """

    blocks: Floats

    def __post_init__(self) -> None:
        object.__setattr__(self, "blocks", matrix(self.blocks, 3, "blocks"))

    def width(self, dim: int) -> int:
        """Return G times p."""
        groups, inner, outer = self.blocks.shape
        if groups * inner != dim:
            raise ModelError(f"blocks of shape {self.blocks.shape} do not take {dim} dimensions")
        return int(groups * outer)

    @property
    def linear(self) -> bool:
        """Always: it only multiplies."""
        return True

    def map_rows(self, rows: Floats) -> Floats:
        """Return each group of m dimensions times its block, groups and dimensions swapped."""
        groups, inner, outer = self.blocks.shape
        grouped = rows.reshape(len(rows), groups, inner).transpose(1, 0, 2)
        mixed: Floats = np.matmul(grouped, self.blocks).transpose(1, 2, 0)
        return mixed.reshape(len(rows), groups * outer)

    def apply(self, rows: Floats) -> Floats:
        """Return the same at unit length."""
        return to_unit(self.map_rows(rows))


# One lift of a prepared element; a head's branches are normalised, weighted by their share and concatenated.
Branch = NetVLAD | Product
# One step after the sum over a set, followed by L2 normalisation.
Layer = Affine | Blocks
