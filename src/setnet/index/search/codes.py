"""A query quantised for the scan, with the slack that makes quantised scores upper bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels import backend
from setnet.index.search.query import Query

SIGNS = (np.arange(16)[:, None] >> np.arange(4) & 1) * 2.0 - 1.0  # of the four dimensions behind four bits


@dataclass(frozen=True, slots=True)
class Codes:
    """A query's rows as the kernels read them, with the slack that makes quantised scores upper bounds.

    Against codes of one bit a row is a table of sums, else 8-bit codes.
    """

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
        q = query.wanted
        length = np.linalg.norm(q, axis=1)
        rounding = 1e-6 * length * (code_norm + residual_norm)
        if form.bits == 1:
            tables = _Tables.of(q)
            return cls._of(query, tables.codes, tables.step, tables.least + tables.lost + rounding)
        step = np.maximum(np.abs(q).max(axis=1), 1e-30) / form.query_peak
        levels = np.rint(q / step[:, None])
        codes = np.zeros((len(q), -(-query.dim // form.group) * form.group), np.int8)
        codes[:, : query.dim] = levels
        lost = np.linalg.norm(q - levels * step[:, None], axis=1)
        slack = length * residual_norm + lost * code_norm + rounding
        total = levels.sum(axis=1)
        start = np.floor(form.middle * total)
        slack += step * (start - form.middle * total) * form.unit
        return cls._of(query, codes, step * form.unit, slack * (1 + 1e-6), -start)

    @classmethod
    def estimating(cls, query: Query, rotated: NDArray[np.float32]) -> Codes:
        """Return tables for estimates from one-bit codes, of the query's rows rotated as the codes were."""
        tables = _Tables.of(rotated.astype(np.float64))
        return cls._of(query, tables.codes, tables.step, tables.least)

    @classmethod
    def _of(
        cls,
        query: Query,
        codes: NDArray[np.int8],
        step: NDArray[np.float64],
        slack: NDArray[np.float64],
        start: NDArray[np.float64] | None = None,
    ) -> Codes:
        logistic = query.logistic
        return cls(
            codes,
            np.zeros(len(codes), np.int32) if start is None else start.astype(np.int32),
            step.astype(np.float32),
            slack.astype(np.float32),
            (query.weights * (1 + 4e-6)).astype(np.float32),
            logistic.w,
            logistic.threshold,
            # float32 cannot tell similarities nearer than this apart where the sigmoid is not yet flat
            2.4e-7 * (logistic.w * abs(logistic.threshold) + 100.0),
        )


@dataclass(frozen=True, slots=True)
class _Tables:
    """What four dimensions of a query add to a dot product with signs, for each of their 16 signs.

    A sum is ``step`` times the numbers looked up plus ``least``, wrong by at most ``lost``. In a row the
    tables of four bytes follow each other, those of their low halves first, as the kernels load them.
    """

    codes: NDArray[np.int8]
    step: NDArray[np.float64]
    least: NDArray[np.float64]
    lost: NDArray[np.float64]

    @classmethod
    def of(cls, rows: NDArray[np.float64]) -> _Tables:
        n, dim = rows.shape
        padded = np.zeros((n, -(-dim // 64) * 64))
        padded[:, :dim] = rows
        fours = padded.reshape(n, -1, 4)
        sums = fours @ SIGNS.T
        reach = np.abs(fours).sum(axis=2)
        step = np.maximum(2 * reach.max(axis=1), 1e-30) / 63
        levels = np.rint((sums + reach[:, :, None]) / step[:, None, None])
        off = np.abs(levels * step[:, None, None] - reach[:, :, None] - sums)
        ordered = levels.reshape(n, -1, 4, 2, 16).swapaxes(2, 3)
        codes = np.ascontiguousarray(ordered.reshape(n, -1)).astype(np.int8)
        return cls(codes, step, -reach.sum(axis=1), off.max(axis=2).sum(axis=1))


@dataclass(frozen=True, slots=True)
class Kind:
    """How codes of a kind stand for numbers: (code - middle) * unit, ``group`` dimensions to a line."""

    bits: int
    group: int
    middle: float
    unit: float

    @property
    def query_peak(self) -> int:
        """Largest code of a query: two products with eight bits must fit 16, as 255 x 64 x 2 does."""
        narrow = backend.level() == "avx2" or self.group == 8
        return 64 if self.bits == 8 and narrow else 127


KINDS = {
    "bytes": Kind(bits=8, group=4, middle=128.0, unit=1.0),
    "nibbles": Kind(bits=4, group=8, middle=7.5, unit=1.0),
    "bits": Kind(bits=1, group=64, middle=0.0, unit=1.0),
    "whole": Kind(bits=8, group=8, middle=128.0, unit=1.0),  # bytes in two halves
    "high": Kind(bits=4, group=8, middle=(128.0 - 7.5) / 16, unit=16.0),  # of bytes: 16 h + 7.5 - 128
}
