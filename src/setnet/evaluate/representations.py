"""What is kept of a set: one vector, or every element at 32, 8, 4 or 1 bit per dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from setnet.engine.budget import element_bytes as size_of
from setnet.engine.budget import element_codec
from setnet.evaluate.stress_trial import PairSimilarities, StressTest, StressWorld
from setnet.heads import Aggregator, SetNet, codec, unit

Floats = NDArray[np.float32]
SETS_AT_ONCE = 2048
SAMPLED = 16  # every so many sets enter the sample of similarities
CODE_BITS = (8, 4, 1)


def coded_elements(bits: int) -> Callable[[Floats], Floats]:
    """Return what turns unit descriptors into what is left of them at 32, 8, 4 or 1 bit per dimension.

    A query in floats has the same product with the result as with the codes. One bit is RaBitQ's, around the
    mean of the descriptors; rows of zeros stand for none.
    """
    return _one_bit if bits == 1 else partial(_rounded, bits=bits)


def code_name(bits: int) -> str:
    """Return the name of element codes in tables.

    >>> code_name(4), code_name(1)
    ('element codes, 4 bits', 'element codes, 1 bit')
    """
    return f"element codes, {bits} bit{'s' * (bits > 1)}"


def element_bytes(dim: int, bits: int) -> int:
    """Return the bytes of an element: its code, and at one bit a factor of two bytes.

    >>> [element_bytes(128, bits) for bits in (32, 8, 4, 1)]
    [512, 128, 64, 18]
    """
    return codec.row_bytes(dim, bits) + 2 * (bits == 1)


def _rounded(rows: Floats, bits: int) -> Floats:
    return codec.decode(codec.encode(rows, bits), rows.shape[1], bits)


def _one_bit(rows: Floats) -> Floats:
    """Return what one bit per dimension leaves of rows (RaBitQ, Gao and Long 2024).

    A vector v is taken relative to the mean c and rotated; its code is the signs s of the result. With the
    factor g = |v - c|^2 / (s . R (v - c)), kept in two bytes, c . q + g (s . R q) estimates v . q.
    """
    used = np.abs(rows).max(axis=1) > 0
    out = np.zeros_like(rows)
    if used.any():
        centre, rotation = rows[used].mean(axis=0), _rotation(rows.shape[1])
        rotated = (rows[used] - centre) @ rotation.T
        signs = np.where(rotated > 0, np.float32(1), np.float32(-1))
        length, squared = np.abs(rotated).sum(axis=1), np.einsum("nd,nd->n", rotated, rotated)
        factors = np.divide(squared, length, out=np.zeros_like(length), where=length > 0)
        kept = ((factors.view(np.uint32) + 0x8000 >> 16) << 16).view(np.float32)
        out[used] = (kept[:, None] * signs) @ rotation + centre
    return out


@cache
def _rotation(dim: int) -> Floats:
    """Return a random rotation to a multiple of 64 dimensions, the same on every machine.

    Signs are flipped at random, and the first and the last 2^k dimensions mixed, by turns: additions alone
    but for powers of the square root of two.
    """
    bits = -(-dim // 64) * 64
    raw = np.random.PCG64(bits).random_raw(4 * bits)
    columns = np.eye(bits, dim)
    window = 1 << bits.bit_length() - 1
    for turn, signs in enumerate(1.0 - 2.0 * (raw >> np.uint64(63)).astype(np.float64).reshape(4, bits)):
        columns *= signs[:, None]
        part = columns[:window] if turn % 2 == 0 else columns[bits - window :]
        half = 1
        while half < window:
            pairs = part.reshape(-1, 2, half, dim)
            pairs[:, 0], pairs[:, 1] = pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]
            half *= 2
        part /= np.sqrt(window)
    return columns.astype(np.float32)


@dataclass(frozen=True)
class SetVectors:
    """One vector per set, as an index stores it."""

    aggregator: Aggregator

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities of query faces with all sets, by number of faces."""
        queries = self.aggregator.describe(test.world.descriptors[test.examples])
        for vectors in set_vectors(self.aggregator, test):
            yield vector_similarities(queries, vectors)


@dataclass(frozen=True)
class EveryElement:
    """Every face, at so many bits per dimension after a change of its descriptor; matched greedily."""

    bits: int = 32
    change: Callable[[Floats], Floats] = unit

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities of query faces with all sets, by number of faces."""
        vectors = self.change(test.world.descriptors)
        return element_similarities(vectors[test.examples], coded_elements(self.bits)(vectors), test)


@dataclass(frozen=True)
class BudgetElements:
    """Every face in its share of the bytes of a set, as an index codes them."""

    budget: int

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities of query faces with all sets, by number of faces."""
        faces = test.world.descriptors
        for size in test.faces:
            codec = element_codec(size_of(self.budget, size, faces.shape[1]), faces.shape[1])
            stored = codec.decode(codec.encode(faces))
            yield from element_similarities(faces[test.examples], stored, replace(test, faces=(size,)))


def element_similarities(queries: Floats, stored: Floats, test: StressTest) -> Iterator[PairSimilarities]:
    """Yield the similarities of query faces with all sets of stored faces, by number of faces."""
    similarity, members = np.ascontiguousarray(queries @ stored.T), test.world.faces
    for size in test.faces:
        sample = similarity[:, members[::SAMPLED, :size]].max(axis=2).T.ravel()
        pair = partial(_greedy_pair, similarity, np.ascontiguousarray(members[:, :size].T))
        yield PairSimilarities(pair, sample)


def set_vectors(aggregator: Aggregator, test: StressTest) -> Iterator[Floats]:
    """Yield the vectors of all sets, as an index stores them, (N, dim), by number of faces."""
    encode = _encoder(aggregator, test.world)
    for size in test.faces:
        members = test.world.faces[:, :size]
        out = np.empty((len(members), aggregator.dim), dtype=np.float32)
        for start in range(0, len(members), SETS_AT_ONCE):
            codes = encode(members[start : start + SETS_AT_ONCE])
            out[start : start + len(codes)] = codec.decode(codes, aggregator.dim, aggregator.bits)
        yield out


def vector_similarities(queries: Floats, sets: Floats) -> PairSimilarities:
    """Return the similarities of the vectors of `StressTest.examples` with those of sets."""
    table = queries @ sets.T
    return PairSimilarities(lambda a, b: table[[a, b]], table[:, ::SAMPLED].T.ravel())


Encode = Callable[[NDArray[np.int64]], NDArray[np.uint8]]  # (sets, size) faces to stored codes


def _encoder(aggregator: Aggregator, world: StressWorld) -> Encode:
    """Return what encodes sets; of a few thousand faces in many sets each is lifted once, where it can be."""
    added = aggregator.contributions(world.descriptors) if isinstance(aggregator, SetNet) else None
    if added is not None:
        return lambda members: codec.encode(_summed(added, members), aggregator.bits)

    def encode(members: NDArray[np.int64]) -> NDArray[np.uint8]:
        counts = np.full(len(members), members.shape[1], dtype=np.int64)
        return aggregator.encode(world.descriptors[members.ravel()], counts)

    return encode


def _summed(added: Floats, members: NDArray[np.int64]) -> Floats:
    """Return the unit-norm sum over the members of each set."""
    total = added[members[:, 0]]
    for column in members.T[1:]:
        total += added[column]
    return unit(total)


def _greedy_pair(similarity: Floats, members: NDArray[np.int64], a: int, b: int) -> Floats:
    """Return the similarities that two query faces are matched with in every set, (2, N).

    The matches are those of `greedy_matches`: of two query faces the less similar one gives way to the other
    and takes its second best. ``members`` are the rows of each set, (size, N).
    """
    first, second_of_first, which = _two_best(similarity[a][members])
    other, second_of_other, same = _two_best(similarity[b][members])
    both, a_wins = which == same, first >= other
    return np.stack(
        [np.where(both & ~a_wins, second_of_first, first), np.where(both & a_wins, second_of_other, other)]
    )


def _two_best(rows: Floats) -> tuple[Floats, Floats, NDArray[np.int8]]:
    """Return the two highest values of each column, and the row of the highest."""
    best, which = rows[0], np.zeros(rows.shape[1], np.int8)
    second = np.full_like(best, -np.inf)
    for number, row in enumerate(rows[1:], start=1):
        second = np.maximum(second, np.minimum(best, row))
        which[row > best] = number
        best = np.maximum(best, row)
    return best, second, which
