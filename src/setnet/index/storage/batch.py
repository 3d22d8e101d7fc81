"""Rows that a new segment is written from: a batch in memory, or any other source of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from setnet.index.storage.segment import ragged

__all__ = ["Batch", "Source"]


class Source(Protocol):
    """Rows that a new segment can be written from."""

    @property
    def seq(self) -> NDArray[np.int64]:
        """Sequence number of each row."""
        ...

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of elements of each row."""
        ...

    def ids_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the ids of rows."""
        ...

    def attributes_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the attributes of rows, as JSON; an empty string for none."""
        ...

    def elements_of(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the elements of rows, one after another."""
        ...

    def sets_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return the set vectors of rows as codes and the scale of each."""
        ...


@dataclass(frozen=True)
class Batch:
    """Rows given by a caller of `add`, in memory."""

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
