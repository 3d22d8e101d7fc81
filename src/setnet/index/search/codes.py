"""A query quantised for the scan, with the slack that makes quantised scores upper bounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels import backend
from setnet.index.search.query import Query


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
