"""A query: the elements looked for, as rows the kernels take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.index.arguments import check_vectors
from setnet.index.search.scoring import Scoring
from setnet.sets import Aggregator, Logistic

EXAMPLES = ("aggregate", "mean", "max")

Floats = NDArray[np.float32]
# (Q, dim) rows, or one (n, dim) array of examples per query element
VectorsLike = NDArray[Any] | Sequence[NDArray[Any]] | Sequence[Sequence[float]]
QueryLike = VectorsLike


@dataclass(frozen=True, slots=True)
class Query:
    """Rows to be compared, and which of them belong to which query element.

    ``rows`` are float64, padded to a multiple of eight dimensions: first the example rows of each query
    element (from ``first_row`` on), then one row per unwanted vector. A pair of similarity s adds
    ``logistic.probability(s + shift)`` of its query element to the score; no shift is above 0, so that the
    logistic alone bounds all of them. ``least`` is the similarity from which each query element, and then
    each unwanted vector, is matched.
    """

    rows: NDArray[np.float64]
    dim: int
    first_row: NDArray[np.int64]
    combine: int
    without: int
    logistic: Logistic
    shift: NDArray[np.float64]
    least: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        elements: list[Floats],
        without: list[Floats],
        examples: str,
        logistic: Logistic,
        scoring: Scoring | None = None,
    ) -> Query:
        """Build a query from one (n, dim) array of examples per query element."""
        if scoring is None:
            shift = np.zeros(len(elements))
            least = np.full(len(elements) + len(without), logistic.threshold)
        else:
            scoring.check(len(elements), len(without))
            logistic, shift = scoring.logistic, scoring.shift
            least = np.array([*scoring.thresholds, *scoring.without])
        if examples == "aggregate":
            elements = [merged(group) for group in elements]
        several = any(len(group) > 1 for group in elements)
        groups = [*elements, *(merged(group) for group in without)]
        dim = groups[0].shape[1]
        rows = np.zeros((sum(map(len, groups)), -(-dim // 8) * 8))
        rows[:, :dim] = np.concatenate(groups)
        first_row = np.concatenate([[0], np.cumsum([len(group) for group in elements])]).astype(np.int64)
        combine = EXAMPLES.index(examples) if several else 0
        return cls(rows, dim, first_row, combine, len(without), logistic, shift, least)

    @property
    def size(self) -> int:
        """Number of query elements."""
        return len(self.first_row) - 1

    @property
    def wanted(self) -> NDArray[np.float64]:
        """The rows of the query elements, without padding."""
        return self.rows[: self.first_row[-1], : self.dim]

    @property
    def row_shift(self) -> NDArray[np.float64]:
        """The shift of each row of the query elements."""
        return np.repeat(self.shift, np.diff(self.first_row))

    def least_score(self, matches: int) -> float:
        """Return the lowest score that an item with so many matches can have."""
        if self.averages or not matches:
            return -1.0
        each = np.sort(self.logistic.probability(self.least[: self.size] + self.shift))
        return float(each[:matches].sum()) * (1 - 1e-9)

    @property
    def averages(self) -> bool:
        """Whether the scores of several examples are averaged; otherwise their best counts."""
        return self.combine == EXAMPLES.index("mean")

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each row's probability in an upper bound of the score."""
        sizes = np.diff(self.first_row)
        return np.repeat(1.0 / sizes, sizes) if self.averages else np.ones(int(self.first_row[-1]))


def merged(examples: Floats) -> Floats:
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
