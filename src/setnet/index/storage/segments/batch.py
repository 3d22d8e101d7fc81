"""Rows in memory, checked and ready to be written as a segment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.index.storage.segments.segment import ragged

__all__ = ["Batch"]


@dataclass(frozen=True)
class Batch:
    """Rows given by a caller of `add`; read like a `Segment` when they are written."""

    ids: Sequence[str]
    seq: NDArray[np.int64]
    counts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    elements: NDArray[Any]
    attributes: Sequence[str] | None
    set_codes: NDArray[np.uint8]
    set_scales: NDArray[np.float32]

    def ids_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the ids of rows."""
        return [self.ids[row] for row in rows]

    def attributes_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the attributes of rows, as JSON."""
        return [self.attributes[row] for row in rows] if self.attributes else [""] * len(rows)

    def elements_of(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the elements of rows."""
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return self.elements[self.offsets[rows[0]] : self.offsets[rows[-1] + 1]]
        return self.elements[ragged(self.offsets, rows)]

    def sets_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return codes and scales of set vectors."""
        return self.set_codes[rows], self.set_scales[rows]
