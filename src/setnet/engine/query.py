"""What is asked: query elements, options, and pairs that are known."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypedDict, Unpack, get_args

import numpy as np
from numpy.typing import NDArray

from setnet.engine.settings import Settings, check_int, check_vectors
from setnet.errors import InvalidInputError, choice_error
from setnet.heads import Aggregator, Logistic


@dataclass(frozen=True, slots=True)
class Scoring:
    """How the similarities of each query element count, in place of the index's one logistic.

    A similarity does not mean the same for all query elements: the mean of five examples is more similar to
    everything than one example. A pair of similarity s adds sigmoid(w (s - centre)) of its query element to
    the score, pairs are matched in falling order of s - centre, and one is a match from its query element's
    threshold on.

    Attributes
    ----------
    w
        Steepness of the score, above 0.
    centres, thresholds
        Of each query element: the similarity that adds one half to the score, and the least of a match.
    without
        Of each unwanted vector: the least similarity of a match.

    Examples
    --------
    >>> Scoring(w=60.0, centres=(0.5, 0.55), thresholds=(0.42, 0.45)).shift.round(2).tolist()
    [0.0, -0.05]
    """

    w: float
    centres: tuple[float, ...]
    thresholds: tuple[float, ...]
    without: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        numbers = (self.w, *self.centres, *self.thresholds, *self.without)
        if not np.isfinite(numbers).all() or self.w <= 0 or not self.centres:
            raise InvalidInputError(
                f"{self}: finite numbers for one element or more, and w above 0, are expected"
            )

    def check(self, elements: int, without: int) -> None:
        """Raise unless there is a centre and a threshold for each query element and unwanted vector."""
        given = (len(self.centres), len(self.thresholds), len(self.without))
        if given != (elements, elements, without):
            raise InvalidInputError(
                f"scoring has {given[0]} centres, {given[1]} thresholds and {given[2]} of `without`: the "
                f"query has {elements} elements, and {without} vectors are unwanted"
            )

    @property
    def logistic(self) -> Logistic:
        """The logistic of the query element with the lowest centre, which no other exceeds."""
        return Logistic(self.w, -self.w * min(self.centres))

    @property
    def shift(self) -> NDArray[np.float64]:
        """What is added to the similarities of each query element for that logistic to score them."""
        return min(self.centres) - np.array(self.centres, np.float64)


CANDIDATES = 2000  # of set vectors that `fast` re-ranks, unless the options say another number
RECALL = 0.95  # that `fast` aims at, unless the options say another share

Mode = Literal["exact", "fast", "set"]
Matching = Literal["greedy", "optimal", "maxsim"]
First = Literal["lists", "sets"]
Examples = Literal["aggregate", "mean", "max"]


class KnownPair(NamedTuple):
    """What is known of a query element and an element of an item: they match, or they do not.

    The vectors of ``without`` are numbered after the query elements. A match with the element -1 says that
    the query element is in the item without being one of its elements, or whichever of them it matches: such
    an item is found even if it has none.
    """

    query_element: int
    element: int
    is_match: bool


class SearchOptions(TypedDict, total=False):
    """The keywords of `SetIndex.search` besides ``k`` and ``mode``, given as ``**options`` where made once.

    Attributes
    ----------
    recall
        The share of exact search's hits that ``fast`` aims at, 0.95 by default. How much of the inverted
        lists it takes was measured with elements of the index when `SetIndex.compact` made the lists.
    first
        Where ``fast`` finds the items to rank: ``"lists"`` (the default), inverted lists of elements; or
        ``"sets"``, the set vectors, as in section 5.3 of the paper. With ``aggregate_query``, always set
        vectors.
    candidates
        How many items that set vectors found ``fast`` re-ranks, 2000 by default.
    where
        Conditions on attributes, see `setnet.engine.conditions`.
    at_least
        Least number of query elements that must be matched (similarity at or above its threshold).
    only
        Leave out items with an element that matches no query element.
    without
        Vectors, given like a query, that no element of the item may match.
    aggregate_query
        Turn the whole query into one set vector (paper 5.2); for ``set`` and ``fast``.
    examples
        What to do with several examples of a query element: ``"aggregate"`` them into one descriptor (the
        default), or take the ``"mean"`` or ``"max"`` of their scores.
    matching
        One to one, ``"greedy"`` as in the paper (the default) or ``"optimal"`` (Hungarian) for comparison; or
        ``"maxsim"``, as in late interaction: the score is the sum of each query element's largest similarity.
    scoring
        Centres and thresholds of each query element, in place of the index's logistic; see `Scoring`. Not for
        set vectors, which keep theirs.
    known
        By item, pairs that are known to match or not to; see `KnownPair`. Unknown ids are ignored.
    attributes
        Whether hits come with the attributes of their items.
    threads
        Number of threads; one per usable core by default.
    """

    recall: float
    first: First
    candidates: int
    where: Mapping[str, Any] | None
    at_least: int
    only: bool
    without: VectorsLike | None
    aggregate_query: bool
    examples: Examples
    matching: Matching
    scoring: Scoring | None
    known: Mapping[str, Sequence[KnownPair]] | None
    attributes: bool
    threads: int | None


Floats = NDArray[np.float32]
# (Q, dim) rows, or one (n, dim) array of examples per query element
VectorsLike = NDArray[Any] | Sequence[NDArray[Any]] | Sequence[Sequence[float]]
QueryLike = VectorsLike


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """What is asked: rows to be compared, which of them belong to which query element, and which items count.

    ``rows`` are float64, padded to a multiple of eight dimensions: first the example rows of each query
    element (from ``first_row`` on), then one row per unwanted vector. A pair of similarity s adds
    ``logistic.probability(s + shift)`` of its query element to the score; no shift is above 0, so that the
    logistic alone bounds all of them. ``least`` is the similarity from which each query element, and then
    each unwanted vector, is matched. ``known`` has what is known of pairs by the items' sequence numbers,
    ``sets`` the same query in the space of set vectors where these are read. The rest are the options of a
    search.
    """

    rows: NDArray[np.float64]
    dim: int
    first_row: NDArray[np.int64]
    combine: int
    unwanted: int
    logistic: Logistic
    shift: NDArray[np.float64]
    least: NDArray[np.float64]
    k: int = 100
    mode: Mode = "exact"
    recall: float = RECALL
    first: First = "lists"
    candidates: int = CANDIDATES
    at_least: int = 0
    only: bool = False
    matching: Matching = "greedy"
    attributes: bool = False
    threads: int | None = None
    known: Mapping[int, Sequence[KnownPair]] = field(default_factory=dict)
    sets: Query | None = None

    def __post_init__(self) -> None:
        for name, kind in {"mode": Mode, "matching": Matching, "first": First}.items():
            if getattr(self, name) not in get_args(kind):
                raise choice_error(name, getattr(self, name), get_args(kind))
        for name, least in {"k": 0, "candidates": 1, "at_least": 0, "threads": 1}.items():
            if getattr(self, name) is not None or name != "threads":
                check_int(name, getattr(self, name), least)
        if not 0 < self.recall <= 1:
            raise InvalidInputError(f"recall is {self.recall!r}: a share above 0 and up to 1 is expected")

    @classmethod
    def of(
        cls,
        query: QueryLike,
        dim: int,
        logistic: Logistic,
        k: int = 100,
        mode: Mode = "exact",
        **options: Unpack[SearchOptions],
    ) -> Query:
        """Return a query of elements; ``where`` and ``known`` are for an index."""
        without = options.pop("without", None)
        unwanted = [] if without is None else query_elements(without, dim, "without")
        return cls._of_rows(query_elements(query, dim), unwanted, logistic, k, mode, options)

    @classmethod
    def _of_rows(
        cls,
        groups: list[Floats],
        unwanted: list[Floats],
        logistic: Logistic,
        k: int,
        mode: Mode,
        options: SearchOptions,
    ) -> Query:
        scoring, examples = options.pop("scoring", None), options.pop("examples", "aggregate")
        if examples not in get_args(Examples):
            raise choice_error("examples", examples, get_args(Examples))
        if scoring is None:
            shift = np.zeros(len(groups))
            least = np.full(len(groups) + len(unwanted), logistic.threshold)
        else:
            scoring.check(len(groups), len(unwanted))
            logistic, shift = scoring.logistic, scoring.shift * (options.get("matching") != "maxsim")
            least = np.array([*scoring.thresholds, *scoring.without])
        if examples == "aggregate":
            groups = [merge_examples(group) for group in groups]
        first_row = np.cumsum([0, *map(len, groups)])
        combine = get_args(Examples).index(examples) if first_row[-1] > len(groups) else 0
        stacked = np.concatenate([*groups, *(merge_examples(group) for group in unwanted)])
        dim = stacked.shape[1]
        rows = np.zeros((len(stacked), -(-dim // 8) * 8))
        rows[:, :dim] = stacked
        of_index = ("where", "known", "aggregate_query")
        rest: dict[str, Any] = {name: value for name, value in options.items() if name not in of_index}
        return cls(rows, dim, first_row, combine, len(unwanted), logistic, shift, least, k, mode, **rest)

    @classmethod
    def of_index(
        cls,
        query: QueryLike,
        settings: Settings,
        head: Callable[[], Aggregator | None],
        pairs: Mapping[int, Sequence[KnownPair]],
        k: int,
        mode: Mode,
        **options: Unpack[SearchOptions],
    ) -> Query:
        """Return a query of elements, and of set vectors where the mode reads these, for an index."""
        dim, sets = settings.shape.dim, settings.shape.sets
        together = options.get("aggregate_query", False)
        if together and mode not in ("set", "fast"):
            raise InvalidInputError(
                f"aggregate_query needs set vectors: use mode 'set' or 'fast', not {mode!r}"
            )
        if pairs and options.get("matching", "greedy") != "greedy":
            raise InvalidInputError("known pairs are for greedy matching: leave out `matching`")
        if mode != "set" and (mode != "fast" or not (together or options.get("first") == "sets")):
            return replace(cls.of(query, dim, settings.logistic, k, mode, **options), known=pairs)
        if sets is None:
            raise InvalidInputError(f"this index has no set vectors: mode {mode!r} needs them, use 'exact'")
        examples = options.get("examples", "aggregate")
        if (maker := head()) is not None:
            rows = aggregated(query_elements(query, dim), maker, examples, together)
        else:
            rows = query_elements(query, sets.dim)
            rows = [np.concatenate(rows).mean(axis=0, keepdims=True)] if together else rows
        of_sets = cls._of_rows(rows, [], settings.set_logistic, k, mode, {"examples": examples})
        own_space = mode == "set" and maker is None  # whose elements need not even have the dimension
        if own_space and not (
            options.get("without") is not None or options.get("at_least") or options.get("only")
        ):
            return replace(of_sets, sets=of_sets, attributes=options.get("attributes", False))
        return replace(cls.of(query, dim, settings.logistic, k, mode, **options), known=pairs, sets=of_sets)

    @property
    def size(self) -> int:
        """Number of query elements."""
        return len(self.first_row) - 1

    @property
    def wanted(self) -> NDArray[np.float64]:
        """The rows of the query elements, without padding."""
        return self.rows[: self.first_row[-1], : self.dim]

    @property
    def row_least(self) -> NDArray[np.float64]:
        """The least similarity of a match of each row of the query elements."""
        return np.repeat(self.least[: self.size], np.diff(self.first_row))

    def least_score(self, matches: int) -> float:
        """Return the lowest score that an item with so many matches can have."""
        if self.averages or not matches:
            return -1.0
        least = self.least[: self.size]
        # of sums of maxima, of which bounds leave out what is negative
        each = np.sort(self.logistic.probability(least + self.shift) if self.w else np.maximum(least, 0))
        return float(each[:matches].sum()) * (1 - 1e-9)

    @property
    def w(self) -> float:
        """The steepness of the logistic; 0 where similarities themselves add up, as the kernels take it."""
        return 0.0 if self.matching == "maxsim" else self.logistic.w

    @property
    def averages(self) -> bool:
        """Whether the scores of several examples are averaged; otherwise their best counts."""
        return self.combine == get_args(Examples).index("mean")

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each row's probability in an upper bound of the score."""
        sizes = np.diff(self.first_row)
        return np.repeat(1.0 / sizes, sizes) if self.averages else np.ones(int(self.first_row[-1]))


def merge_examples(examples: Floats) -> Floats:
    """Return one row for several examples: their mean, at their mean length (paper 3.4)."""
    if len(examples) == 1:
        return examples
    mean = examples.mean(axis=0, dtype=np.float64)
    length = np.linalg.norm(mean)
    if length == 0:
        raise InvalidInputError("the examples of a query element cancel out: their mean is the zero vector")
    target = np.linalg.norm(examples.astype(np.float64), axis=1).mean()
    return np.asarray(mean * (target / length), np.float32)[None, :]


def query_elements(query: Any, dim: int, what: str = "query") -> list[Floats]:
    """Return one (n, dim) array of examples per query element, or raise an error naming the culprit."""
    grouped = isinstance(query, Sequence) and any(np.ndim(element) == 2 for element in query)
    try:
        if grouped:
            groups = [np.atleast_2d(np.asarray(element, dtype=np.float32)) for element in query]
        else:
            rows = np.asarray(query, dtype=np.float32)
            groups = list(np.atleast_2d(rows)[:, None, :]) if rows.ndim <= 2 else [rows]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{what} must be numbers: a (Q, {dim}) array or one array per query element ({error})"
        ) from None
    if not groups or (not grouped and rows.size == 0):
        raise InvalidInputError(f"{what} is empty: give at least one vector")
    for i, group in enumerate(groups):
        check_vectors(group, dim, lambda row, i=i: f"{what}: element {i}, example {row}")
    return groups


def aggregated(elements: list[Floats], head: Aggregator, examples: str, together: bool) -> list[Floats]:
    """Return the query elements in the space of set vectors.

    Several examples of an element are aggregated by the head itself, and with ``together`` all examples of
    all elements become one descriptor (query aggregation, paper 5.2).
    """
    if together:
        rows = np.concatenate(elements)
        return [head.pool(rows, np.array([len(rows)]))]
    if examples == "aggregate":
        return [head.describe(e) if len(e) == 1 else head.pool(e, np.array([len(e)])) for e in elements]
    return [head.describe(element) for element in elements]
