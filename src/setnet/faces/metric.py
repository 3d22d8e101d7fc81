"""The metric of a descriptor model: one offset, subtracted from its descriptors before they get length 1.

The descriptors of a network lie around a point other than zero, and what they have in common makes all people
more alike. Without it, more genuine pairs are accepted at the same rate of false matches, also on people to
whom the offset was not fitted; weights for directions gain nothing more there.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import ModelError

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Metric:
    """What is subtracted from descriptors of length 1, and in words which faces it was fitted to.

    >>> Metric((0.0, 0.6), "two faces").apply(np.array([[0.8, 0.6]], np.float32)).tolist()
    [[1.0, 0.0]]
    """

    offset: tuple[float, ...]
    origin: str = ""

    @classmethod
    def of(cls, values: Mapping[str, Any], dim: int | None) -> Metric:
        """Return the metric in a mapping of TOML or JSON: `offset`, and `from`."""
        offset, unknown = values.get("offset"), sorted(set(values) - {"offset", "from"})
        if unknown or not isinstance(offset, list) or (dim is not None and len(offset) != dim):
            size = "" if dim is None else f"{dim} "
            raise ModelError(f"a metric has an 'offset' of {size}numbers, and 'from': what it was fitted to")
        if not all(isinstance(x, int | float) and math.isfinite(x) for x in offset):
            raise ModelError("the 'offset' of a metric must be finite numbers")
        return cls(tuple(float(np.float32(x)) for x in offset), str(values.get("from", "")))

    @classmethod
    def fit(cls, descriptors: NDArray[np.floating], labels: NDArray[np.str_], origin: str) -> Metric:
        """Return the metric of labelled faces: their mean, in which everybody counts the same."""
        known = labels != ""
        if not known.any():
            raise ModelError("no row has a label: a metric is fitted to people")
        _, owner = np.unique(labels[known], return_inverse=True)
        sums = np.zeros((int(owner.max()) + 1, descriptors.shape[1]))
        np.add.at(sums, owner, descriptors[known])
        mean = (sums / np.bincount(owner)[:, None]).mean(axis=0)
        return cls(tuple(float(np.float32(round(x, 6))) for x in mean.tolist()), origin)

    def to_dict(self) -> dict[str, Any]:
        """Return the metric as values that JSON and TOML can hold."""
        return {"offset": [round(x, 6) for x in self.offset], "from": self.origin}

    @property
    def hash(self) -> str:
        """What tells this offset from others."""
        return hashlib.sha256(np.array(self.offset, "<f4").tobytes()).hexdigest()[:12]

    def apply(self, descriptors: Floats) -> Floats:
        """Return descriptors of length 1 in this metric, of length 1 again."""
        moved = descriptors - np.array(self.offset, np.float32)
        lengths = np.linalg.norm(moved, axis=1, keepdims=True)
        return np.asarray(moved / np.maximum(lengths, 1e-12), np.float32)
