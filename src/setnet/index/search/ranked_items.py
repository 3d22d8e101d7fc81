"""The items of an answer as arrays: of many thousand, only those looked at become hits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.index.results import Hit, Match


@dataclass(frozen=True, slots=True, eq=False)
class RankedItems:
    """Items found by a query, best first.

    Attributes
    ----------
    ids, scores
        Of each item, as in `Hit`.
    matched
        How many query elements are matched in the item; 0 in ``set`` mode, where elements are not looked at.
    elements, similarities
        (items, query elements): the element of the item that each query element is paired with, -1 for
        none, and their similarity.
    sums
        The sum of each item's similarities, by which items of equal scores are ordered.
    """

    ids: list[str]
    scores: NDArray[np.float64]
    matched: NDArray[np.int32]
    elements: NDArray[np.int32]
    similarities: NDArray[np.float64]
    sums: NDArray[np.float64]

    @classmethod
    def none(cls, size: int) -> RankedItems:
        """Return no items, found by a query of `size` elements."""
        pairs = np.zeros((0, size), np.int32)
        return cls([], np.zeros(0), np.zeros(0, np.int32), pairs, np.zeros((0, size)), np.zeros(0))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        """Bytes of memory, about."""
        return sum(array.nbytes for array in self._arrays) + 64 * len(self.ids)

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return (self.scores, self.matched, self.elements, self.similarities, self.sums)

    def take(self, which: NDArray[np.int64] | slice) -> RankedItems:
        """Return the items at some places."""
        ids = self.ids[which] if isinstance(which, slice) else [self.ids[i] for i in which.tolist()]
        return RankedItems(ids, *(array[which] for array in self._arrays))

    def first(self, n: int) -> RankedItems:
        """Return the first n items, without the memory of the others."""
        return self if len(self) <= n else self.take(np.arange(n))

    def followed_by(self, others: RankedItems) -> RankedItems:
        """Return these items and then those of `others` that are not among them."""
        known = set(self.ids)
        new = others.take(np.array([i for i, name in enumerate(others.ids) if name not in known], np.int64))
        pairs = zip(self._arrays, new._arrays, strict=True)
        return RankedItems(self.ids + new.ids, *map(np.concatenate, pairs))

    def hits(self, start: int = 0, stop: int | None = None) -> list[Hit]:
        """Return the items from `start` to before `stop` as hits."""
        part = slice(start, stop)
        ids, scores, elements = self.ids[part], self.scores[part].tolist(), self.elements[part]
        if not (elements >= 0).any():  # by set vectors: no elements were looked at
            return [Hit(name, score, ()) for name, score in zip(ids, scores, strict=True)]
        similarities = self.similarities[part].tolist()
        return [
            Hit(name, score, tuple(Match(p, e, s[p]) for p, e in enumerate(pairs) if e >= 0))
            for name, score, pairs, s in zip(ids, scores, elements.tolist(), similarities, strict=True)
        ]
