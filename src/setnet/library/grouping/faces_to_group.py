"""The faces to group, and what is known about who is whom."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.engine import Apart

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class FacesToGroup:
    """Faces, and what is known about who is whom.

    Attributes
    ----------
    vectors
        (n, dim) descriptors at unit length.
    weights
        How much each face counts, from its quality: 1 for a good one.
    units
        Faces of one number are of one person; -1 says nothing. A unit's number is that of its name, if any.
    names
        Units of two names are two people; -1 has none. One entry per unit.
    apart
        Pairs of faces that are of two people, probably or certainly.
    """

    vectors: Floats
    weights: NDArray[np.float64]
    units: NDArray[np.int64]
    names: NDArray[np.int32]
    apart: Apart

    @classmethod
    def unknown(cls, vectors: Floats, photos: NDArray[np.int64] | None = None) -> FacesToGroup:
        """Return good faces of which nothing is known, but for the photo each is in."""
        n = len(vectors)
        apart = Apart.none() if photos is None else in_one_photo(photos)
        return cls(vectors, np.ones(n), np.full(n, -1), np.empty(0, np.int32), apart)

    def __len__(self) -> int:
        return len(self.vectors)


def in_one_photo(photos: NDArray[np.int64]) -> Apart:
    """Return the pairs of faces that are in one photo.

    >>> pairs = in_one_photo(np.array([7, 8, 7, 7]))
    >>> list(zip(pairs.one.tolist(), pairs.other.tolist()))
    [(0, 2), (0, 3), (2, 3)]
    """
    order = np.argsort(photos, kind="stable")
    ranked = photos[order]
    one, other = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    step = 1
    while len(same := np.flatnonzero(ranked[step:] == ranked[:-step])):
        one.append(order[same])
        other.append(order[same + step])
        step += 1
    first, second = np.concatenate(one), np.concatenate(other)
    by_face = np.lexsort((second, first))
    return Apart(first[by_face], second[by_face], np.ones(len(first), np.float32))
