"""A query: the people looked for, as rows the kernels take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, one_of
from setnet.index.kernels import backend
from setnet.sets import Aggregator, Logistic

__all__ = ["EXAMPLES", "KINDS", "Codes", "Query", "as_people", "merged"]

EXAMPLES = ("aggregate", "mean", "max")
NORM_LIMIT = 1e18  # dot products of longer vectors would leave float32

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Query:
    """Rows to be compared, and which of them belong to which person.

    ``rows`` are float64, padded to a multiple of eight dimensions: first each person's row or example rows
    (``first_row``), then one row per unwanted person.
    """

    rows: NDArray[np.float64]
    dim: int
    first_row: NDArray[np.int64]
    combine: int
    without: int
    logistic: Logistic

    @classmethod
    def of(cls, people: list[Floats], without: list[Floats], examples: str, logistic: Logistic) -> Query:
        """Build a query from one (n, dim) array per person."""
        if examples not in EXAMPLES:
            raise one_of("examples", examples, EXAMPLES)
        if examples == "aggregate":
            people = [merged(person) for person in people]
        several = any(len(person) > 1 for person in people)
        groups = [*people, *(merged(person) for person in without)]
        dim = groups[0].shape[1]
        rows = np.zeros((sum(map(len, groups)), -(-dim // 8) * 8))
        rows[:, :dim] = np.concatenate(groups)
        start = np.concatenate([[0], np.cumsum([len(person) for person in people])]).astype(np.int64)
        return cls(rows, dim, start, EXAMPLES.index(examples) if several else 0, len(without), logistic)

    @property
    def people(self) -> int:
        """Number of people asked for."""
        return len(self.first_row) - 1

    @property
    def weights(self) -> NDArray[np.float64]:
        """Weight of each row's probability in an upper bound of the score."""
        sizes = np.diff(self.first_row)
        if self.combine == EXAMPLES.index("mean"):
            return np.repeat(1.0 / sizes, sizes)
        return np.ones(int(self.first_row[-1]))


@dataclass(frozen=True, slots=True)
class Codes:
    """A query's rows as 8-bit codes, with the slack that makes quantised scores upper bounds."""

    codes: NDArray[np.int8]
    start: NDArray[np.int32]
    step: NDArray[np.float32]
    slack: NDArray[np.float32]
    weight: NDArray[np.float32]
    w: float
    threshold: float
    inflate: float

    @classmethod
    def of(cls, query: Query, kind: str, norms: tuple[float, float]) -> Codes:
        """Quantise a query against stored codes of a kind, with the largest norms of residual and code.

        For a stored x = scale (c + r) and a query q = step (k + d): q.x = scale (step k.c + rest), and the
        rest is at most |q| |r| + |step d| |c|. A little more covers the rounding of float32. What stands for
        zero in a code (its middle) is taken off as a whole: from the integer sum, or from the slack.
        """
        form = KINDS[kind]
        residual_norm, code_norm = norms
        q = query.rows[: query.first_row[-1], : query.dim]
        step = np.maximum(np.abs(q).max(axis=1), 1e-30) / (backend.query_peak() if form.bits == 8 else 127)
        levels = np.rint(q / step[:, None])
        codes = np.zeros((len(q), -(-query.dim // form.group) * form.group), np.int8)
        codes[:, : query.dim] = levels
        length = np.linalg.norm(q, axis=1)
        lost = np.linalg.norm(q - levels * step[:, None], axis=1)
        slack = length * residual_norm + lost * code_norm + 1e-6 * length * (code_norm + residual_norm)
        total = levels.sum(axis=1)
        start = np.floor(form.middle * total)
        slack += step * (start - form.middle * total) * form.unit
        logistic = query.logistic
        return cls(
            codes,
            (-start).astype(np.int32),
            (step * form.unit).astype(np.float32),
            (slack * (1 + 1e-6)).astype(np.float32),
            (query.weights * (1 + 4e-6)).astype(np.float32),
            logistic.w,
            logistic.threshold,
            # float32 cannot tell similarities nearer than this apart where the sigmoid is not yet flat
            2.4e-7 * (logistic.w * abs(logistic.threshold) + 100.0),
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """How codes of a kind stand for numbers: (code - middle) * unit, ``group`` dimensions to a line."""

    bits: int
    group: int
    middle: float
    unit: float


KINDS = {
    "bytes": Kind(bits=8, group=4, middle=128.0, unit=1.0),
    "nibbles": Kind(bits=4, group=8, middle=7.5, unit=1.0),
    "bits": Kind(bits=1, group=64, middle=1.0, unit=1.0),  # the kernel doubles the sum of the set bits
    "high": Kind(bits=4, group=8, middle=(128.0 - 7.5) / 16, unit=16.0),  # of bytes: 16 h + 7.5 - 128
}


def merged(examples: Floats) -> Floats:
    """Return one row for several examples of a person: their mean, at their mean length (paper 3.4)."""
    if len(examples) == 1:
        return examples
    mean = examples.mean(axis=0, dtype=np.float64)
    length = np.linalg.norm(mean)
    if length == 0:
        raise InvalidInputError("the examples of a person cancel out: their mean is the zero vector")
    target = np.linalg.norm(examples.astype(np.float64), axis=1).mean()
    return np.asarray(mean * (target / length), np.float32)[None, :]


def as_people(people: Any, dim: int, what: str = "people") -> list[Floats]:
    """Return one (n, dim) float32 array per person, or raise an error that names the culprit."""
    grouped = isinstance(people, Sequence) and any(np.ndim(person) == 2 for person in people)
    try:
        if grouped:
            groups = [np.atleast_2d(np.asarray(person, dtype=np.float32)) for person in people]
        else:
            rows = np.asarray(people, dtype=np.float32)
            groups = list(np.atleast_2d(rows)[:, None, :]) if rows.ndim <= 2 else [rows]
    except (TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{what} must be numbers: a (Q, {dim}) array or one array per person ({error})"
        ) from None
    if not groups or (not grouped and rows.size == 0):
        raise InvalidInputError(f"{what} is empty: give at least one person")
    for i, group in enumerate(groups):
        check_vectors(group, dim, lambda row, i=i: f"{what}: person {i}, example {row}")
    return groups


def check_vectors(rows: NDArray[Any], dim: int, name: Any) -> None:
    """Raise unless rows are (n >= 1, dim), finite, not zero and not longer than `NORM_LIMIT`."""
    if rows.ndim != 2 or rows.shape[1] != dim or len(rows) == 0:
        raise InvalidInputError(
            f"{name(0)}: shape {rows.shape} does not fit, expected (n, {dim}) with n >= 1"
        )
    squares = np.einsum("ij,ij->i", rows, rows)
    if np.isfinite(squares).all() and squares.min() > 0:
        return
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    for bad, why in (
        (~np.isfinite(rows).all(axis=1), "holds NaN or infinity"),
        (squares == 0, "is the zero vector"),
        (squares > NORM_LIMIT**2, f"is longer than {NORM_LIMIT:g}"),
    ):
        if bad.any():
            raise InvalidInputError(f"{name(int(np.argmax(bad)))} {why}")


def aggregated(people: list[Floats], head: Aggregator, examples: str, together: bool) -> list[Floats]:
    """Return the people in the space of set vectors.

    Several examples of a person are aggregated by the head itself, and with ``together`` all examples of
    all people become one descriptor (query aggregation, paper 5.2).
    """
    if together:
        rows = np.concatenate(people)
        return [head.pool(rows, np.array([len(rows)]))]
    if examples == "aggregate":
        return [head.describe(p) if len(p) == 1 else head.pool(p, np.array([len(p)])) for p in people]
    return [head.describe(person) for person in people]
