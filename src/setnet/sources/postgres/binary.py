"""PostgreSQL's binary form of bits and vectors, which spares both sides their text."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from psycopg.adapt import Dumper
from psycopg.pq import Format

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
TRAILER = struct.pack(">h", -1)
BIT_OID = 1560


class Bits:
    """A string of bits, highest first in each byte, as a parameter of a statement.

    >>> Bits.of(np.array([[1.0, -1.0, 0.5]], np.float32))[0].data.hex()
    'a0'
    """

    def __init__(self, data: bytes, size: int) -> None:
        self.data, self.size = data, size

    @classmethod
    def of(cls, vectors: NDArray[np.floating]) -> list[Bits]:
        """Return the signs of vectors: 1 where a number is above zero."""
        packed = np.packbits(vectors > 0, axis=1)
        return [cls(row.tobytes(), vectors.shape[1]) for row in packed]

    @classmethod
    def of_codes(cls, codes: NDArray[np.uint8], size: int) -> list[Bits]:
        """Return the codes of `setnet.sets.codec`, whose bits are lowest first."""
        signs = np.unpackbits(codes, axis=1, bitorder="little")[:, :size]
        return [cls(row.tobytes(), size) for row in np.packbits(signs, axis=1)]


class BitsDumper(Dumper):
    """Sends `Bits` as PostgreSQL's type bit."""

    format = Format.BINARY
    oid = BIT_OID

    def dump(self, obj: Bits) -> bytes:
        """Return the number of bits, then the bits."""
        return struct.pack(">i", obj.size) + obj.data


def copied_elements(
    ids: Sequence[str], counts: NDArray[np.int64], elements: NDArray[np.float32]
) -> Iterator[bytes]:
    """Yield rows (item, position, vector) for ``COPY ... (FORMAT binary)``, an item's in one piece."""
    yield HEADER
    dim = elements.shape[1]
    rows, at = elements.astype(">f4"), 0
    for name, count in zip(ids, counts.tolist(), strict=True):
        key = name.encode()
        head = struct.pack(">hi", 3, len(key)) + key
        yield b"".join(
            head + struct.pack(">iiihh", 4, position, 4 * dim + 4, dim, 0) + rows[at + position].tobytes()
            for position in range(count)
        )
        at += count
    yield TRAILER


def vectors_of(sent: Sequence[bytes], dim: int) -> NDArray[np.float32]:
    """Return the rows behind values of ``vector_send``."""
    joined = np.frombuffer(b"".join(sent), np.uint8).reshape(len(sent), 4 * dim + 4)
    return np.ascontiguousarray(joined[:, 4:]).view(">f4").astype(np.float32)
