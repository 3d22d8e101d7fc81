"""Reads a segment: items with their elements, codes for the scan, set vectors, ids and attributes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import VersionError
from setnet.index.storage.segment_file import SegmentFile
from setnet.index.storage.shape import Shape
from setnet.sets import codec

__all__ = ["Segment", "ragged"]


def ragged(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of all members of ``rows`` in an array cut by ``offsets``.

    >>> ragged(np.array([0, 2, 5]), np.array([1, 0])).tolist()
    [2, 3, 4, 0, 1]
    """
    counts = offsets[rows + 1] - offsets[rows]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(offsets[rows] - (ends - counts), counts), np.int64)


class Segment:
    """A segment file read through its memory map, with the arrays under their names."""

    def __init__(self, number: int, file: SegmentFile, shape: Shape) -> None:
        self.number = number
        self.file = file
        self.shape = shape
        self.seq: NDArray[np.int64] = file.array("seq")
        self.offsets: NDArray[np.int64] = file.array("offsets")
        self.elements = file.array("elements")
        self.coded = "codes" in file

    def __len__(self) -> int:
        return len(self.seq)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of elements of each row."""
        return np.diff(self.offsets)

    @property
    def lane_rows(self) -> NDArray[np.int32]:
        """Row of each lane; rows in order, those without elements too, when the segment has no codes."""
        if self.coded:
            return self.file.array("lane_rows")
        return np.where(self.counts > 0, np.arange(len(self)), -1).astype(np.int32)

    def ids_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the ids of rows."""
        return self._texts("id", rows)

    def attributes_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the attributes of rows, as JSON."""
        return self._texts("attribute", rows) if "attribute_bytes" in self.file else [""] * len(rows)

    def _texts(self, name: str, rows: NDArray[np.int64]) -> list[str]:
        offsets = self.file.array(f"{name}_offsets")
        data = self.file.array(f"{name}_bytes").data
        ends = offsets[rows + 1].tolist()
        return [str(data[a:z], "utf-8") for a, z in zip(offsets[rows].tolist(), ends, strict=True)]

    def elements_of(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the elements of rows."""
        return self.elements[ragged(self.offsets, rows)]

    def sets_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return codes and scales of set vectors."""
        sets = self.shape.sets
        if sets is None or "set_codes" not in self.file:
            return np.empty((len(rows), 0), np.uint8), np.ones(len(rows), np.float32)
        stored = self.set_rows[rows]
        if sets.bits >= 16:
            return codec.encode(stored, sets.bits), np.ones(len(rows), np.float32)
        return stored, self.file.array("set_scales").reshape(-1)[rows]

    @property
    def set_rows(self) -> NDArray[Any]:
        """The set vectors as stored, one row each; at one bit the scan reads these very rows."""
        if self.shape.sets is not None and self.shape.sets.bits == 1:
            return self.file.array("set_codes")
        if "set_rows" not in self.file:
            raise VersionError(
                f"{self.file.path} keeps its set vectors as an earlier setnet did: create the index again"
            )
        return self.file.array("set_rows")
