"""What an index returns: hits with their matches, items, contents, reports and statistics."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Match:
    """A query element paired with an element of an item.

    Attributes
    ----------
    query_element : int
        Position of the element in the query.
    element : int
        Position of the element in the item.
    similarity : float
        Their dot product. The pair is a match when it reaches the logistic's threshold.
    """

    query_element: int
    element: int
    similarity: float


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """All items of an index: their ids, how many elements each has, and these one item after another."""

    ids: list[str]
    counts: NDArray[np.int64]
    elements: NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Hit:
    """An item found, with its score and the pairs that gave it.

    ``score`` is the sum over pairs of sigmoid(w s + b): about the number of query elements in the item.
    ``matches`` holds every pair of the matching, in the order of the query; it is empty in ``set`` mode,
    where elements are not looked at. ``attributes`` are the item's, if the search was asked for them.
    """

    id: str
    score: float
    matches: tuple[Match, ...] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the hit for JSON, its score rounded to six digits."""
        found = {"id": self.id, "score": round(self.score, 6), "matches": [asdict(m) for m in self.matches]}
        return {**found, "attributes": dict(self.attributes)} if self.attributes else found


@dataclass(frozen=True, slots=True, eq=False)
class RankedItems(Sequence[Hit]):
    """The hits of a query, best first: arrays, of which objects are made when somebody asks for them.

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
    how
        How they were found, such as ``exact``.
    recall
        The share of exact search's hits that these are expected to be; None where nobody knows.
    attributes
        Of each item, if the search was asked for them.
    missing
        Parts of a collection that did not answer, and why; see `setnet.connect.CollectionClient`.
    """

    ids: list[str]
    scores: NDArray[np.float64]
    matched: NDArray[np.int32]
    elements: NDArray[np.int32]
    similarities: NDArray[np.float64]
    sums: NDArray[np.float64]
    how: str = "exact"
    recall: float | None = 1.0
    attributes: Sequence[Mapping[str, Any]] = ()
    missing: tuple[str, ...] = ()

    @classmethod
    def none(cls, size: int) -> RankedItems:
        """Return no items, found by a query of `size` elements."""
        pairs = np.zeros((0, size), np.int32)
        return cls([], np.zeros(0), np.zeros(0, np.int32), pairs, np.zeros((0, size)), np.zeros(0))

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, which: int) -> Hit: ...

    @overload
    def __getitem__(self, which: slice) -> RankedItems: ...

    def __getitem__(self, which: int | slice) -> Hit | RankedItems:
        if isinstance(which, slice):
            return self.take(which)
        at = range(len(self))[which]  # an index beyond the end is an IndexError
        return self.hits(at, at + 1)[0]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.hits() == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self.hits())

    @property
    def nbytes(self) -> int:
        """Bytes of memory, about."""
        return sum(array.nbytes for array in self._arrays) + 64 * len(self.ids)

    @property
    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return tuple(getattr(self, name) for name in _ARRAYS)

    def take(self, which: NDArray[np.int64] | slice) -> RankedItems:
        """Return the items at some places."""
        places = range(len(self))[which] if isinstance(which, slice) else which.tolist()
        details = [self.attributes[i] for i in places] if self.attributes else ()
        ids = [self.ids[i] for i in places]
        return self._with(ids, details, *(array[which] for array in self._arrays))

    def _with(
        self, ids: list[str], details: Sequence[Mapping[str, Any]], *arrays: NDArray[Any]
    ) -> RankedItems:
        made: dict[str, Any] = dict(zip(_ARRAYS, arrays, strict=True))
        return replace(self, ids=ids, attributes=details, **made)

    def first(self, n: int) -> RankedItems:
        """Return the first n items, without the memory of the others."""
        return self if len(self) <= n else self.take(np.arange(n))

    def followed_by(self, others: RankedItems) -> RankedItems:
        """Return these items and then those of `others` that are not among them."""
        known = set(self.ids)
        new = others.take(np.array([i for i, name in enumerate(others.ids) if name not in known], np.int64))
        pairs = zip(self._arrays, new._arrays, strict=True)
        details = [*self.attributes, *new.attributes]
        return self._with(self.ids + new.ids, details, *map(np.concatenate, pairs))

    def hits(self, start: int = 0, stop: int | None = None) -> list[Hit]:
        """Return the items from `start` to before `stop` as hits."""
        part = slice(start, stop)
        details: Iterable[Mapping[str, Any]] = self.attributes[part] or ({} for _ in self.ids[part])
        arrays = (self.scores, self.elements, self.similarities)
        scores, elements, similarities = (array[part].tolist() for array in arrays)
        return [
            Hit(name, score, tuple(Match(p, e, s[p]) for p, e in enumerate(pairs) if e >= 0), own)
            for name, score, pairs, s, own in zip(
                self.ids[part], scores, elements, similarities, details, strict=True
            )
        ]


_ARRAYS = ("scores", "matched", "elements", "similarities", "sums")


@dataclass(frozen=True, slots=True)
class Item:
    """A stored item as it was added: its id, its attributes and its number of elements."""

    id: str
    elements: int
    attributes: dict[str, str | int | float]


@dataclass(frozen=True, slots=True)
class Stats:
    """What an index holds and what it costs.

    ``budget`` is the ``bytes_per_item`` of `SetIndex.create`, 0 where elements are floats; ``over_budget``
    items have so many elements that they need more.
    """

    items: int
    elements: int
    segments: int
    deleted: int
    bytes_by_file: dict[str, int]
    dim: int
    precision: str
    set_vectors: str
    set_dim: int
    set_bits: int
    budget: int
    over_budget: int
    kernels: str

    @property
    def bytes(self) -> int:
        """Bytes on disk in all."""
        return sum(self.bytes_by_file.values())

    @property
    def bytes_per_item(self) -> float:
        """Bytes on disk for one item, on average."""
        return self.bytes / self.items if self.items else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the statistics for JSON, with the bytes in all."""
        return {**asdict(self), "bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a check: ``ok``, or the list of problems, each naming the file."""

    ok: bool
    problems: list[str] = field(default_factory=list)
