"""Budget codes: every element of an item in its share of a fixed number of bytes.

A unit vector is rotated, its coordinates are divided evenly among the bytes, and each byte names one of the
256 points that lose least of a normal distribution. Nothing is fitted: rotation and points are the same for
all indexes (``gaussian_points.npz``, made by ``python -m studies.gaussian_points``). Axes fitted to the
vectors of an index, with more bits where these differ most, found people worse: what tells people apart lies
in directions of little variance too. The query stays in floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from hashlib import shake_256
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels import backend
from setnet.engine.query import Query

Floats = NDArray[np.float32]
Bytes = NDArray[np.uint8]

POINTS = 256
WIDEST = 16  # coordinates that share a byte, at most: 256 points keep no more of a longer run
LEAST_BYTES = 2  # of an element, however many its item has
AT_ONCE = 8192  # vectors encoded together


def element_bytes(budget: int, elements: int, dim: int) -> int:
    """Return the bytes of each element of an item: its share, from two bytes up to one for each dimension.

    >>> [element_bytes(64, elements, 128) for elements in (1, 3, 5, 100)]
    [64, 21, 12, 2]
    """
    return min(max(LEAST_BYTES, budget // elements), dim)


@cache
def rotation(dim: int) -> NDArray[np.float64]:
    """Return the rotation, (dim, dim): two cosine transforms, each after signs were changed as by chance."""
    steps = np.arange(dim)
    cosines = np.cos(np.pi / dim * (steps[:, None] + 0.5) * steps) * np.sqrt(2 / dim)
    cosines[:, 0] /= np.sqrt(2)
    bits = np.frombuffer(shake_256(b"setnet budget codes").digest(-(-dim // 4)), np.uint8)
    first, second = np.unpackbits(bits)[: 2 * dim].reshape(2, dim) * 2.0 - 1.0
    return np.asarray((first[:, None] * cosines * second) @ cosines)


@cache
def _points() -> tuple[list[Floats], NDArray[np.float64]]:
    """Return the points of 1, 2 and more coordinates, (256, coordinates), and the variance that each keep."""
    with np.load(Path(__file__).parent / "gaussian_points.npz") as file:
        flat, kept = file["points"].astype(np.float32), file["kept"]
    ends = np.cumsum([0, *(POINTS * width for width in range(1, WIDEST + 1))]).tolist()
    return [flat[a:z].reshape(POINTS, -1) for a, z in pairwise(ends)], kept


@cache
def _kernel_points() -> Floats:
    """Return the points as the kernel reads them."""
    return np.concatenate([
        np.vstack([-np.square(points).sum(axis=1) / 2, points.T]).ravel() for points in _points()[0]
    ])  # fmt: skip


@dataclass(frozen=True, eq=False)
class ElementCodec:
    """Codes of ``size`` bytes for unit vectors.

    Attributes
    ----------
    starts
        Where the coordinates of each byte begin, and where those of the last one end: in dimensions of more
        than 16 a byte, the last coordinates are left out.
    table
        (256, dim): the coordinates that each value of their byte stands for, as long as the vectors' on
        average. So strangers are as similar as by floats, however few the bytes.
    """

    size: int
    starts: NDArray[np.int64]
    table: Floats

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return int(self.table.shape[1])

    def encode(self, vectors: NDArray[np.floating]) -> Bytes:
        """Return the bytes of each vector."""
        codes, dim = np.empty((len(vectors), self.size), np.uint8), self.dim
        turn = np.asarray(rotation(dim) * np.sqrt(dim), np.float32)
        for at in range(0, len(vectors), AT_ONCE):
            part = slice(at, at + AT_ONCE)
            rotated = np.ascontiguousarray(vectors[part], np.float32) @ turn
            backend.kernels.encode_budget(rotated, dim, self.starts, _kernel_points(), codes[part])
        return codes

    def coordinates(self, codes: Bytes) -> Floats:
        """Return (n, dim) coordinates: their products with the rows of a `turned` query are similarities."""
        byte = np.repeat(np.arange(self.size), np.diff(self.starts))
        out = np.zeros((len(codes), self.dim), np.float32)
        out[:, : len(byte)] = self.table[codes[:, byte], np.arange(len(byte))]
        return out

    def decode(self, codes: Bytes) -> Floats:
        """Return the vectors behind codes, nearly of unit length."""
        return np.asarray(self.coordinates(codes) @ rotation(self.dim).T, np.float32)

    def sums(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return what each value of each byte adds to the product with turned rows, (bytes, 256, rows)."""
        widths, out = np.diff(self.starts), np.empty((self.size, POINTS, len(rows)))
        for width in np.unique(widths).tolist():
            some = np.flatnonzero(widths == width)
            places = self.starts[some, None] + np.arange(width)
            points = self.table[:, places[0]].astype(np.float64)  # the same for all of these
            out[some] = np.moveaxis(rows[:, places] @ points.T, 0, 2)
        return out


@cache
def element_codec(size: int, dim: int) -> ElementCodec:
    """Return the codec of so many bytes."""
    starts = np.arange(size + 1) * min(dim, WIDEST * size) // size
    widths, (points, kept) = np.diff(starts), _points()
    factor = 1 / np.sqrt((widths * kept[widths - 1]).sum())
    table = np.zeros((POINTS, dim), np.float32)
    for a, z in pairwise(starts.tolist()):
        table[:, a:z] = points[z - a - 1] * factor
    return ElementCodec(size, starts, table)


def turned(query: Query) -> Query:
    """Return a query for the coordinates of codes in place of vectors."""
    rows = np.zeros_like(query.rows)
    rows[:, : query.dim] = np.einsum("qd,de->qe", query.rows[:, : query.dim], rotation(query.dim))
    return replace(query, rows=rows)


def scan_tables(
    rows: NDArray[np.float64], sizes: Sequence[int]
) -> tuple[Floats, NDArray[np.int64], NDArray[np.float64]]:
    """Return tables of the products of turned rows with codes of some sizes, as the scan kernel reads them.

    And where the tables of each size begin, and how far sums of float32 may be off for each row.
    """
    stride = -(-len(rows) // 4) * 4
    parts, starts, off = dict[int, Floats](), dict[int, int](), np.zeros(len(rows))
    for size in dict.fromkeys(sizes):
        sums = element_codec(size, rows.shape[1]).sums(rows)
        off = np.maximum(off, (size + 8) * 2.0**-24 * np.abs(sums).max(axis=1).sum(axis=0))
        starts[size] = sum(part.size for part in parts.values())
        parts[size] = np.zeros((size, POINTS, stride), np.float32)
        parts[size][:, :, : len(rows)] = sums
    tables = np.concatenate([np.empty(0, np.float32), *(part.reshape(-1) for part in parts.values())])
    return tables, np.array([starts[size] for size in sizes], np.int64), off
