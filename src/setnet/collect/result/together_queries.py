"""Test queries: two or three people who are together in some item (section 5.2)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


def together_queries(
    counts: Ints,
    owner: Ints,
    known: NDArray[np.bool_],
    of_two: int,
    of_three: int,
    rng: np.random.Generator,
) -> list[Ints]:
    """Return random groups of two and of three people who are together in some item, none twice.

    Parameters
    ----------
    counts
        Faces per item.
    owner
        Whose each face is.
    known
        Which faces are of people that may be queried.
    """
    starts = np.cumsum(counts) - counts
    together = np.add.reduceat(known, starts) if len(starts) else np.empty(0, np.int64)
    queries: list[Ints] = []
    for size, wanted in ((2, of_two), (3, of_three)):
        seen: set[tuple[int, ...]] = set()
        for item in rng.permutation(np.flatnonzero(together >= size)):
            if len(seen) == wanted:
                break
            rows = np.arange(starts[item], starts[item] + counts[item])
            people = np.unique(owner[rows[known[rows]]])
            if len(people) >= size:
                seen.add(tuple(sorted(rng.choice(people, size, replace=False).tolist())))
        queries += [np.array(group) for group in sorted(seen)]
    return queries
