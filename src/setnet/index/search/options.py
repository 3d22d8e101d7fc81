"""The options of a search: one frozen object, checked where it is made, that travels whole to the kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from setnet.errors import InvalidInputError, one_of
from setnet.index.arguments import whole
from setnet.index.search.known_pairs import KnownPair
from setnet.index.search.query import EXAMPLES, VectorsLike
from setnet.index.search.scoring import Scoring

MODES = ("exact", "fast", "set")
MATCHINGS = ("greedy", "optimal")
FIRST = ("codes", "sets")


class MoreOptions(TypedDict, total=False):
    """The keywords of `SetIndex.search` besides ``k`` and ``mode``; `SearchOptions` says what each means."""

    candidates: int
    first: str
    probes: int | None
    where: Mapping[str, Any] | None
    at_least: int
    only: bool
    without: VectorsLike | None
    aggregate_query: bool
    examples: str
    matching: str
    scoring: Scoring | None
    known: Mapping[str, Sequence[KnownPair]] | None
    threads: int | None


@dataclass(frozen=True, slots=True, eq=False)
class SearchOptions:
    """How a search is done; building one checks every value.

    Attributes
    ----------
    k
        How many hits at most.
    mode
        ``"exact"``: matching of all elements of all items; ``"set"``: set vectors only; ``"fast"``: a pass
        over what ``first`` names, then the best ``candidates`` re-ranked exactly.
    candidates
        How many items ``fast`` re-ranks.
    first
        What ``fast`` ranks by at first: ``"codes"``, one bit per dimension of each element; or ``"sets"``,
        the set vectors, as in section 5.3 of the paper. With ``aggregate_query``, always set
        vectors.
    probes
        How many inverted lists ``fast`` reads for each query element in segments that have them (those of two
        million items, and all after ``compact(lists=True)``); 0 reads the codes of all elements.
    where
        Conditions on attributes, see `setnet.index.conditions`.
    at_least
        Least number of query elements that must be matched (similarity at or above its threshold).
    only
        Leave out items with an element that matches no query element.
    without
        Vectors, given like a query, that no element of the item may match.
    aggregate_query
        Turn the whole query into one set vector (paper 5.2); for ``set`` and ``fast``.
    examples
        What to do with several examples of a query element: ``"aggregate"`` them into one descriptor, or take
        the ``"mean"`` or ``"max"`` of their scores.
    matching
        ``"greedy"`` as in the paper, or ``"optimal"`` (Hungarian) for comparison.
    scoring
        Centres and thresholds of each query element, in place of the index's logistic; see `Scoring`. Not for
        set vectors, which keep theirs.
    known
        By item, pairs that are known to match or not to; see `KnownPair`. Unknown ids are ignored.
    threads
        Number of threads; one per usable core by default.
    """

    k: int = 100
    mode: str = "exact"
    candidates: int = 2000
    first: str = "codes"
    probes: int | None = None
    where: Mapping[str, Any] | None = None
    at_least: int = 0
    only: bool = False
    without: VectorsLike | None = None
    aggregate_query: bool = False
    examples: str = "aggregate"
    matching: str = "greedy"
    scoring: Scoring | None = None
    known: Mapping[str, Sequence[KnownPair]] | None = None
    threads: int | None = None

    def __post_init__(self) -> None:
        texts = {"mode": MODES, "matching": MATCHINGS, "examples": EXAMPLES, "first": FIRST}
        for name, valid in texts.items():
            if getattr(self, name) not in valid:
                raise one_of(name, getattr(self, name), valid)
        for name, least in (("k", 0), ("candidates", 1), ("at_least", 0)):
            whole(name, getattr(self, name), least)
        if self.where is not None and not isinstance(self.where, Mapping):
            raise InvalidInputError(
                f"where must map attribute names to conditions, not be {self.where!r:.80}"
            )
        for name, least in (("threads", 1), ("probes", 0)):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least)
        if self.known and self.matching != "greedy":
            raise InvalidInputError("known pairs are for greedy matching: leave out matching='optimal'")
        if self.aggregate_query and self.mode not in ("set", "fast"):
            raise InvalidInputError(
                f"aggregate_query needs set vectors: use mode 'set' or 'fast', not {self.mode!r}"
            )

    @property
    def of_elements(self) -> bool:
        """Whether items must satisfy conditions on their elements."""
        return bool(self.at_least or self.only)
