"""What the engine answers with: typed, frozen results."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Hit", "Item", "Match", "Report", "Stats"]


@dataclass(frozen=True, slots=True)
class Match:
    """A person of the query paired with an element of an item.

    Attributes
    ----------
    person : int or str
        Position of the person in the query; the name in ``tags`` mode.
    element : int
        Position of the element in the item.
    similarity : float
        Their dot product. The pair is a match when it reaches the logistic's threshold.
    """

    person: int | str
    element: int
    similarity: float


@dataclass(frozen=True, slots=True)
class Hit:
    """An item found, with its score and the pairs that gave it.

    ``score`` is the sum over pairs of sigmoid(w s + b): about the number of people in the item.
    ``matches`` holds every pair of the one-to-one matching, in the order of the query's people; it is
    empty in ``set`` mode, where elements are not looked at.
    """

    id: str
    score: float
    matches: tuple[Match, ...] = ()


@dataclass(frozen=True, slots=True)
class Item:
    """A stored item as it was added: its id, its attributes and its number of elements."""

    id: str
    elements: int
    attributes: dict[str, str | int | float]


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
    tags: int
    kernels: str

    @property
    def bytes(self) -> int:
        """Bytes on disk in all."""
        return sum(self.bytes_by_file.values())

    @property
    def bytes_per_item(self) -> float:
        """Bytes on disk for one item, on average."""
        return self.bytes / self.items if self.items else 0.0


@dataclass(frozen=True, slots=True)
class Report:
    """The verdict of a check: ``ok``, or the list of problems, each naming the file."""

    ok: bool
    problems: list[str] = field(default_factory=list)
