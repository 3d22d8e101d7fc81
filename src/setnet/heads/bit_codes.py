"""One bit per dimension of a vector, and estimates of dot products from them (RaBitQ, Gao and Long 2024).

A vector v is taken relative to a centre c and rotated; its code is the signs s of the result, in {-1, 1}.
With the factor g = |v - c|^2 / (s . R (v - c)) an unbiased estimate over rotations R is

    v . q  ~  c . q + g (s . R q)

for any query q, which itself is not quantised. A factor is kept as the upper half of a float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
ROTATION = "hadamard-1"  # name and version of what `_turn` does, kept with the codes
ROUNDS = 4
DENSE = 1024  # dimensions up to which a matrix product is faster than additions


def _signs(bits: int) -> NDArray[np.float64]:
    """Return the signs that each round of a rotation flips by."""
    raw = np.random.PCG64(bits).random_raw(ROUNDS * bits)
    return 1.0 - 2.0 * (raw >> np.uint64(63)).astype(np.float64).reshape(ROUNDS, bits)


def _turn(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rotate columns: flip signs at random and mix the first and the last 2^k dimensions, by turns.

    Made of additions alone but for powers of the square root of two, so that it is the same on every machine.
    """
    bits, n = columns.shape
    window = 1 << bits.bit_length() - 1
    for turn, signs in enumerate(_signs(bits)):
        columns *= signs[:, None]
        part = columns[:window] if turn % 2 == 0 else columns[bits - window :]
        half = 1
        while half < window:
            pairs = part.reshape(-1, 2, half, n)
            pairs[:, 0], pairs[:, 1] = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
            half *= 2
        part /= np.sqrt(window)
    return columns


@cache
def _matrix(dim: int) -> Floats:
    return _turn(np.eye(code_bits(dim), dim)).astype(np.float32)


def code_bits(dim: int) -> int:
    """Return the bits of a code of ``dim`` dimensions: a multiple of 64.

    >>> code_bits(128), code_bits(100), code_bits(3)
    (128, 128, 64)
    """
    return -(-dim // 64) * 64


@dataclass(frozen=True, eq=False)
class BitCodec:
    """Codes of vectors around a centre.

    >>> codec = BitCodec(np.zeros(128, np.float32))
    >>> v = np.full((1, 128), 128**-0.5, np.float32)
    >>> codes, factors = codec.encode(v)
    >>> codes.shape, codec.estimates(codes, factors, v).round(2)
    ((1, 16), array([[1.]], dtype=float32))
    """

    centre: Floats

    def encode(self, vectors: Floats) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
        """Return a row of bits for each vector, lowest first, and its factor."""
        rotated = self.rotated(vectors - self.centre)
        codes = np.packbits(rotated > 0, axis=1, bitorder="little")
        length = np.abs(rotated).sum(axis=1)
        squared = np.einsum("nd,nd->n", rotated, rotated)
        factors = np.divide(squared, length, out=np.zeros_like(length), where=length > 0)
        return codes, ((factors.view(np.uint32) + 0x8000) >> 16).astype(np.uint16)

    @staticmethod
    def rotated(vectors: Floats) -> Floats:
        """Return vectors, or queries, in the dimensions of the codes."""
        if vectors.shape[1] <= DENSE:
            turned: Floats = vectors @ _matrix(vectors.shape[1]).T
            return turned
        columns = np.zeros((code_bits(vectors.shape[1]), len(vectors)))
        columns[: vectors.shape[1]] = vectors.T
        return np.ascontiguousarray(_turn(columns).T, np.float32)

    def estimates(
        self, codes: NDArray[np.uint8], factors: NDArray[np.uint16], queries: Floats
    ) -> NDArray[np.float32]:
        """Return the estimated dot product of every coded vector with every query: the kernels' oracle."""
        return _scaled_signs(codes, factors) @ self.rotated(queries).T + queries @ self.centre

    def decode(self, codes: NDArray[np.uint8], factors: NDArray[np.uint16]) -> Floats:
        """Return the vectors whose dot products with queries are the estimates."""
        dim = len(self.centre)
        turned_back: Floats = _scaled_signs(codes, factors) @ self.rotated(np.eye(dim, dtype=np.float32)).T
        return turned_back + self.centre


def _scaled_signs(codes: NDArray[np.uint8], factors: NDArray[np.uint16]) -> Floats:
    signs = np.unpackbits(codes, axis=1, bitorder="little") * np.float32(2) - np.float32(1)
    scale: Floats = (factors.astype(np.uint32) << 16).view(np.float32)
    return scale[:, None] * signs
