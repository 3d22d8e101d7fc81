"""Budget codes: every element of an item in its share of a fixed number of bytes.

A unit vector is turned to the principal axes of the index's own first vectors. A run of axes shares a byte: a
short one where vectors differ much, a long one where they differ little, so that all lose least. A byte names
one of the 256 points that lose least of a normal distribution, which are the same for all indexes
(``gaussian_points.npz``, made by ``python -m studies.gaussian_points``). The query stays in floats.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.engine.query import Query

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

POINTS = 256
POINTS_FILE = Path(__file__).parent / "gaussian_points.npz"
WIDEST = 16  # axes that share a byte, at most: 256 points say no more of a wider run than of 16 axes
LEAST_BYTES = 2  # of an element, however many its item has
FIT_FROM, FIT_UP_TO = 8, 65_536  # vectors for each dimension, and in all, that axes are made from
STRETCH = 0.125  # power of an axis's variance that it is stretched by: errors count where queries are long
MEASURED = 1024  # vectors that tell the factors
AT_ONCE = 8192  # vectors encoded together


def element_bytes(budget: int, elements: int, dim: int) -> int:
    """Return the bytes of each element of an item: its share, from two bytes up to one for each dimension.

    >>> [element_bytes(64, elements, 128) for elements in (1, 3, 5, 100)]
    [64, 21, 12, 2]
    """
    return min(max(LEAST_BYTES, budget // elements), dim)


def sizes_of(budget: int, dim: int) -> list[int]:
    """Return all numbers of bytes that an element can have, largest first."""
    items = range(1, budget // LEAST_BYTES + 1)
    return sorted({element_bytes(budget, elements, dim) for elements in items}, reverse=True)


@cache
def _kept() -> NDArray[np.float64]:
    """Return the share of the variance that the points of each number of axes keep."""
    with np.load(POINTS_FILE) as file:
        return np.asarray(file["kept"])


@cache
def _points() -> dict[int, Floats]:
    """Return the points of each number of axes, (256, axes)."""
    with np.load(POINTS_FILE) as file:
        flat = file["points"].astype(np.float32)
    ends = np.cumsum([0, *(POINTS * axes for axes in range(1, WIDEST + 1))]).tolist()
    return {axes: flat[a:z].reshape(POINTS, axes) for axes, (a, z) in enumerate(pairwise(ends), start=1)}


def _nearest(rows: Floats, points: Floats) -> NDArray[np.int64]:
    if points.shape[1] == 1:  # they are in order
        line = points[:, 0]
        return np.asarray(np.searchsorted((line[1:] + line[:-1]) / 2, rows[:, 0]), np.int64)
    half = np.float32(0.5) * np.einsum("pd,pd->p", points, points)
    return np.asarray((rows @ points.T - half).argmax(axis=1), np.int64)


def _runs(variance: NDArray[np.float64], sizes: Sequence[int]) -> list[NDArray[np.int32]]:
    """Return, for each number of bytes, where runs of axes begin and the last one ends.

    Together they keep most of the variance (dynamic programming); the last axes may be in no run.
    """
    dim, widest = len(variance), min(WIDEST, len(variance))
    logs, total = (np.concatenate([[0.0], np.cumsum(each)]) for each in (np.log(variance), variance))
    kept = np.full((widest + 1, dim + 1), -np.inf)  # by a run of so many axes that ends there
    for width in range(1, widest + 1):
        mean = np.exp((logs[width:] - logs[:-width]) / width)
        kept[width, width:] = total[width:] - total[:-width] - width * mean * (1 - _kept()[width - 1])
    best, widths, ends = np.full(dim + 1, -np.inf), list[NDArray[np.int64]](), list[int]()
    best[0] = 0.0
    for _ in range(max(sizes)):
        options = np.full_like(kept, -np.inf)
        for wide in range(1, widest + 1):
            options[wide, wide:] = best[:-wide] + kept[wide, wide:]
        best = options.max(axis=0)
        widths.append(options.argmax(axis=0))
        ends.append(int(best.argmax()))
    found = []
    for size in sizes:
        starts = [ends[size - 1]]
        for run in widths[size - 1 :: -1]:
            starts.append(starts[-1] - int(run[starts[-1]]))
        found.append(np.array(starts[::-1], np.int32))
    return found


@dataclass(frozen=True, eq=False)
class BudgetCodec:
    """How the elements of a segment are coded.

    Attributes
    ----------
    budget
        Bytes of an item.
    axes
        (3 + dim, dim): the mean of the vectors, what each coordinate is stretched by, its standard deviation
        then, and the axes themselves, in falling order of deviations.
    starts
        Where the runs of axes begin that share a byte, and where the last one ends: for each of `sizes_of`
        in turn.
    factors
        For each of `sizes_of`, what coordinates are multiplied by: points lie nearer to the mean than what
        they stand for. So stretched, strangers are as similar as by floats however few the bytes, and large
        items are no false matches; the factor that keeps products of one person made them most of the hits.
    """

    budget: int
    axes: Floats
    starts: NDArray[np.int32]
    factors: Floats

    @classmethod
    def fit(cls, budget: int, vectors: Floats) -> BudgetCodec:
        """Return the codec for vectors like these; if they are few, one that expects any direction alike."""
        dim = vectors.shape[1]
        if len(vectors) < FIT_FROM * dim:
            rng = np.random.default_rng(0)
            axes = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
            drawn = rng.standard_normal((MEASURED, dim))
            drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
            return cls._of(budget, np.zeros(dim), np.full(dim, 1.0 / dim), axes, drawn)
        some = vectors[:: -(-len(vectors) // FIT_UP_TO)].astype(np.float64)
        mean = some.mean(axis=0)
        variance, axes = np.linalg.eigh(np.cov(some.T).reshape(dim, dim))
        variance = np.maximum(variance[::-1], variance[-1] * 1e-6 + 1e-12)
        return cls._of(budget, mean, variance, axes.T[::-1], some[:: -(-len(some) // MEASURED)])

    @classmethod
    def _of(
        cls,
        budget: int,
        mean: NDArray[np.float64],
        variance: NDArray[np.float64],
        axes: NDArray[np.float64],
        sample: NDArray[np.float64],
    ) -> BudgetCodec:
        stretch = variance**STRETCH
        stretched = variance * stretch**2
        sizes = sizes_of(budget, len(mean))
        rows = np.concatenate([[mean, stretch, np.sqrt(stretched)], axes])
        starts = np.concatenate(_runs(stretched, sizes))
        codec = cls(budget, np.asarray(rows, np.float32), starts, np.ones(len(sizes), np.float32))
        off = sample - mean
        found = (codec.decode(codec.encode(sample.astype(np.float32), size)) - mean for size in sizes)
        factors = [np.sqrt(np.square(off).sum() / np.square(decoded).sum()) for decoded in found]
        return replace(codec, factors=np.array(factors, np.float32))

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return int(self.axes.shape[1])

    @property
    def is_fitted(self) -> bool:
        """Whether it was made from vectors."""
        return bool(self.axes[0].any())

    @cached_property
    def fingerprint(self) -> int:
        """A number that other codecs do not have."""
        return zlib.crc32(self.starts.tobytes(), zlib.crc32(self.axes.tobytes(), self.budget))

    @cached_property
    def _starts(self) -> dict[int, NDArray[np.int32]]:
        sizes = sizes_of(self.budget, self.dim)
        cuts = np.cumsum([0, *(size + 1 for size in sizes)]).tolist()
        return {size: self.starts[a:z] for size, (a, z) in zip(sizes, pairwise(cuts), strict=True)}

    def fault(self) -> str | None:
        """Return why no vectors can be decoded; None when they can."""
        if not (np.isfinite(self.axes).all() and np.isfinite(self.factors).all()):
            return "a number is not finite"
        if (self.axes[1:3] <= 0).any():
            return "an axis has no length"
        sizes = sizes_of(self.budget, self.dim)
        if len(self.starts) != sum(size + 1 for size in sizes) or len(self.factors) != len(sizes):
            return f"{len(self.starts)} starts of runs are not those of {self.budget} bytes"
        for starts in self._starts.values():
            widths = np.diff(starts)
            if starts[0] != 0 or starts[-1] > self.dim or widths.min() < 1 or widths.max() > WIDEST:
                return "its runs are not runs of axes"
        return None

    def table(self, size: int) -> Floats:
        """Return the coordinates that each value of each of ``size`` bytes stands for, (256, dim)."""
        out = np.zeros((POINTS, self.dim), np.float32)
        for a, z in pairwise(self._starts[size].tolist()):
            out[:, a:z] = _points()[z - a] * self.axes[2, a:z]
        factor: np.float32 = self.factors[sizes_of(self.budget, self.dim).index(size)]
        return out * factor

    def encode(self, vectors: Floats, size: int) -> Bytes:
        """Return ``size`` bytes for each vector."""
        codes = np.empty((len(vectors), size), np.uint8)
        for at in range(0, len(vectors), AT_ONCE):
            part = slice(at, at + AT_ONCE)
            turned = (vectors[part].astype(np.float32) - self.axes[0]) @ self.axes[3:].T
            turned *= self.axes[1]
            for byte, (a, z) in enumerate(pairwise(self._starts[size].tolist())):
                codes[part, byte] = _nearest(turned[:, a:z], _points()[z - a] * self.axes[2, a:z])
        return codes

    def coordinates(self, codes: Bytes) -> Floats:
        """Return (n, dim + 1) coordinates: their products with a query's `turned` rows are similarities."""
        size = codes.shape[1]
        starts = self._starts[size]
        byte = np.repeat(np.arange(size), np.diff(starts))
        out = np.zeros((len(codes), self.dim + 1), np.float32)
        out[:, : len(byte)] = self.table(size)[codes[:, byte], np.arange(len(byte))]
        out[:, -1] = 1.0
        return out

    def tables(
        self, rows: NDArray[np.float64], sizes: Sequence[int]
    ) -> tuple[Floats, NDArray[np.int64], NDArray[np.float64]]:
        """Return what each value of each byte adds to the product with turned rows, as the kernel reads it.

        And where the tables of each of ``sizes`` begin, and how far float32 sums may be off for each row.
        """
        stride = -(-len(rows) // 4) * 4
        parts, starts, off = dict[int, Floats](), dict[int, int](), np.zeros(len(rows))
        for size in sizes:
            if size not in parts:
                cuts = self._starts[size]
                used = slice(0, int(cuts[-1]))
                products = self.table(size)[:, None, used] * rows[:, used]
                sums = np.add.reduceat(products, cuts[:-1], axis=2)  # (256, rows, bytes)
                off = np.maximum(off, (size + 8) * 2.0**-24 * np.abs(sums).max(axis=0).sum(axis=1))
                out = np.zeros((size, POINTS, stride), np.float32)
                out[:, :, : len(rows)] = sums.transpose(2, 0, 1)
                starts[size] = sum(part.size for part in parts.values())
                parts[size] = out
        tables = np.concatenate([np.empty(0, np.float32), *(part.reshape(-1) for part in parts.values())])
        return tables, np.array([starts[size] for size in sizes], np.int64), off

    def decode(self, codes: Bytes) -> Floats:
        """Return the vectors behind codes, nearly of unit length."""
        plain = self.coordinates(codes)[:, :-1] / self.axes[1]
        return np.asarray(plain @ self.axes[3:] + self.axes[0], np.float32)

    def turned(self, query: Query) -> Query:
        """Return the query for `coordinates` in place of vectors."""
        rows = query.rows[:, : query.dim]
        axes = (self.axes[3:] / self.axes[1][:, None].astype(np.float64)).T
        out = np.zeros((len(rows), -(-(self.dim + 1) // 8) * 8))
        out[:, : self.dim] = np.einsum("qd,de->qe", rows, axes)
        out[:, self.dim] = np.einsum("qd,d->q", rows, self.axes[0].astype(np.float64))
        return replace(query, rows=out, dim=self.dim + 1)
