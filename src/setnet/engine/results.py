"""What an index returns: hits with their matches, items, contents, reports and statistics."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

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

    def to_dict(self) -> dict[str, Any]:
        """Return the match for JSON."""
        return asdict(self)


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
    ``matches`` holds every pair of the one-to-one matching, in the order of the query; it is empty in
    ``set`` mode, where elements are not looked at.
    """

    id: str
    score: float
    matches: tuple[Match, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the hit for JSON, its score rounded to six digits."""
        return {
            "id": self.id,
            "score": round(self.score, 6),
            "matches": [match.to_dict() for match in self.matches],
        }


@dataclass(frozen=True, slots=True)
class Item:
    """A stored item as it was added: its id, its attributes and its number of elements."""

    id: str
    elements: int
    attributes: dict[str, str | int | float]

    def to_dict(self) -> dict[str, Any]:
        """Return the item for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Stats:
    """What an index holds and what it costs."""

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
    """The verdict of a check: ``ok``, or the list of problems, each naming the file."""

    ok: bool
    problems: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return asdict(self)
