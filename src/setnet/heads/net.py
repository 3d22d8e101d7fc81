"""SetNet at run time: a head applied to sets of descriptors, in NumPy, in bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.errors import InvalidInputError, choice_error
from setnet.heads import codec
from setnet.heads.head import Head
from setnet.heads.layers import to_unit

Floats = NDArray[np.float32]

# Elements lifted at once: enough for the matrix products to run at full rate, few enough for the cache.
CHUNK = 256
# Elements summed at once: the matrix of memberships is mostly zeros, and more so the larger it is.
STRIP = 32


class SetNet:
    """Aggregates sets of descriptors into one set vector each, and scores them against queries.

    Examples
    --------
    >>> net = SetNet.load("sface-128")
    >>> rng = np.random.default_rng(0)
    >>> elements = rng.standard_normal((5, 128)).astype(np.float32)
    >>> net.aggregate(elements, counts=[2, 3]).shape == (2, net.dim)
    True
    >>> net.encode(elements, counts=[2, 3]).shape == (2, net.bytes_per_item)
    True
    """

    def __init__(self, head: Head, fingerprint: str = "") -> None:
        self.head = head
        # Of the file as it was made: an index distinguishes heads of one name by it.
        self.fingerprint = fingerprint
        self.name, self.logistic = head.name, head.logistic
        self.element_dim: int | None = head.element_dim
        self.dim = head.dim
        self.bits = head.bits
        self.bytes_per_item = head.bytes_per_item
        shares = np.array([branch.share for branch in head.branches], dtype=np.float32)
        self._shares = shares / np.linalg.norm(shares)

    def __repr__(self) -> str:
        return f"SetNet({self.name!r}, dim={self.dim}, bytes_per_item={self.bytes_per_item})"

    @classmethod
    def load(cls, name_or_path: str | Path) -> SetNet:
        """Return a shipped head by name (see `heads`), or one from a file."""
        from setnet.heads.shipped import head_path, shipped_head, shipped_names

        path = Path(name_or_path)
        if not isinstance(name_or_path, Path) and path.suffix != ".safetensors":
            if name_or_path not in shipped_names():
                raise choice_error("head", name_or_path, [*shipped_names(), "a path ending in .safetensors"])
            path, head = head_path(name_or_path), shipped_head(name_or_path)
        else:
            head = Head.load(path)
        return cls(head, str(head.about.get("fingerprint") or f"{zlib.crc32(path.read_bytes()):08x}"))

    def save(self, path: str | Path, *, half: bool = True) -> None:
        """Write the head to a file that `load` reads; weights as float16 unless ``half`` is false."""
        self.head.save(path, half=half)

    def aggregate(self, elements: ArrayLike, counts: ArrayLike) -> Floats:
        """Return what an index knows of each set: ``decode(encode(...))``, (N, D) float32, unit norm.

        Parameters
        ----------
        elements
            (n, De) descriptors, the sets one after the other.
        counts
            (N,) how many elements each set has; they add up to n. An empty set gives a zero vector
            (before quantisation).
        """
        return codec.decode(self.encode(elements, counts), self.dim, self.bits)

    def encode(self, elements: ArrayLike, counts: ArrayLike) -> NDArray[np.uint8]:
        """Return the bytes an index stores: (N, bytes_per_item)."""
        rows, sizes = self._check(elements, counts)
        codes = np.empty((len(sizes), self.bytes_per_item), dtype=np.uint8)
        for at, vectors in self._pool(rows, sizes):
            codes[at] = codec.encode(vectors, self.bits)
        return codes

    def pool(self, elements: ArrayLike, counts: ArrayLike) -> Floats:
        """Return unit-norm set vectors before quantisation: (N, D) float32."""
        rows, sizes = self._check(elements, counts)
        pooled = np.empty((len(sizes), self.dim), dtype=np.float32)
        for at, vectors in self._pool(rows, sizes):
            pooled[at] = vectors
        return pooled

    def describe(self, elements: ArrayLike) -> Floats:
        """Return query descriptors: each element as a set of one, never quantised; (n, D) float32."""
        rows = np.asarray(elements)
        return self.pool(rows, np.ones(len(rows), dtype=np.int64))

    def contributions(self, elements: ArrayLike) -> Floats | None:
        """Return (n, D) what each element adds to a set: `pool` is the sum of its members' at unit length.

        None where the output layers are not linear. With it, many sets of few different elements take one
        lift per element.
        """
        if not all(layer.linear for layer in self.head.output):
            return None
        rows, sizes = self._check(elements, np.ones(len(np.asarray(elements)), dtype=np.int64))
        added = np.empty((len(rows), self.dim), dtype=np.float32)
        for start in range(0, len(rows), CHUNK):
            piece = slice(start, start + CHUNK)
            vectors = self._sums(rows[piece], sizes[piece])
            for layer in self.head.output:
                vectors = layer.map_rows(vectors)
            added[piece] = vectors
        return added

    def score(self, set_vectors: ArrayLike, queries: ArrayLike) -> NDArray[np.float64]:
        """Return each set's summed score over the query elements: the sum of sigmoid(w <v, q> + b).

        Parameters
        ----------
        set_vectors
            (N, D) from `aggregate` or `pool`.
        queries
            (Q, D) from `describe`, one row per query element.
        """
        vectors, wanted = np.asarray(set_vectors), np.asarray(queries)
        for what, rows in (("set vectors", vectors), ("queries", wanted)):
            if rows.ndim != 2 or rows.shape[1] != self.dim:
                raise InvalidInputError(
                    f"{what} of shape {rows.shape} do not fit head {self.name!r}: expected (n, {self.dim})"
                )
        scores: NDArray[np.float64] = self.logistic.probability(vectors @ wanted.T).sum(axis=1)
        return scores

    def _check(self, elements: ArrayLike, counts: ArrayLike) -> tuple[Floats, NDArray[np.int64]]:
        rows = np.ascontiguousarray(elements, dtype=np.float32)
        sizes = np.asarray(counts)
        if rows.ndim != 2 or rows.shape[1] != self.head.element_dim:
            kind = f" ({self.head.descriptor})" if self.head.descriptor else ""
            raise InvalidInputError(
                f"elements of shape {rows.shape} do not fit head {self.name!r}: "
                f"it takes descriptors (n, {self.head.element_dim}){kind}"
            )
        if sizes.ndim != 1 or (sizes.size and not np.issubdtype(sizes.dtype, np.integer)):
            raise InvalidInputError("counts must be a list of integers, one per set")
        if (sizes < 0).any() or sizes.sum() != len(rows):
            raise InvalidInputError(f"counts add up to {sizes.sum()} but there are {len(rows)} elements")
        if not np.isfinite(rows).all():
            bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
            raise InvalidInputError(f"element {bad} holds NaN or infinity; drop it or describe it again")
        return rows, sizes.astype(np.int64)

    def _pool(self, rows: Floats, sizes: NDArray[np.int64]) -> Iterator[tuple[slice, Floats]]:
        """Yield set vectors in runs of whole sets, about `CHUNK` elements each."""
        ends = np.cumsum(sizes)
        first = 0
        while first < len(sizes):
            start = int(ends[first] - sizes[first])
            last = max(first + 1, int(np.searchsorted(ends, start + CHUNK, side="right")))
            last = min(last, first + CHUNK)
            vectors = self._sums(rows[start : int(ends[last - 1])], sizes[first:last])
            for layer in self.head.output:
                vectors = layer.apply(vectors)
            yield slice(first, last), vectors
            first = last

    def _sums(self, rows: Floats, sizes: NDArray[np.int64]) -> Floats:
        """Return unit(sum of contributions) per set; a huge set is summed piece by piece."""
        total = np.zeros((len(sizes), self.head.lifted_dim), dtype=np.float32)
        owner = np.repeat(np.arange(len(sizes)), sizes)
        for start in range(0, len(rows), CHUNK):
            piece = slice(start, start + CHUNK)
            self._add_contributions(total, rows[piece], owner[piece])
        return to_unit(total)

    def _add_contributions(self, total: Floats, rows: Floats, owner: NDArray[np.int64]) -> None:
        """Add each row's normalised contribution to its owner's row of ``total``."""
        prepared = self.head.input.apply(rows)
        column = 0
        for branch, share in zip(self.head.branches, self._shares, strict=True):
            lifted = branch.lift(prepared)
            length = np.sqrt(np.einsum("ij,ij->i", lifted, lifted))
            weights = share / np.maximum(length, np.finfo(np.float32).tiny)
            into = total[:, column : column + branch.width]
            for start in range(0, len(rows), STRIP):
                strip = slice(start, start + STRIP)
                _add_weighted(into, lifted[strip], weights[strip], owner[strip])
            column += branch.width


def _add_weighted(
    total: Floats, lifted: Floats, weights: NDArray[np.floating], owner: NDArray[np.int64]
) -> None:
    """Add ``weights * lifted`` to the rows of ``total`` that ``owner``, which ascends, names.

    Weighting and summing are one small matrix product: (sets, elements), weights at a set's own elements.
    """
    first, last = int(owner[0]), int(owner[-1]) + 1
    membership = np.zeros((last - first, len(owner)), dtype=np.float32)
    membership[owner - first, np.arange(len(owner))] = weights
    total[first:last] += membership @ lifted
