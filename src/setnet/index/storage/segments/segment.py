"""Reads a segment: items with their elements, codes for the scan, set vectors, ids and attributes."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import StorageError
from setnet.index.kernels.lanes import LANES
from setnet.index.storage.segments.segment_file import SegmentFile
from setnet.index.storage.segments.segment_layout import (
    expected_arrays,
    lane_fault,
    offsets_fault,
    sequence_fault,
    slot_fault,
)
from setnet.index.storage.shape import Shape
from setnet.sets import ROTATION, codec

CODE_ARRAYS = ("lane_rows", "row_start", "high_codes", "scales")
BIT_ARRAYS = ("low_codes", "bit_centre", "bit_codes", "bit_factors")
LIST_ARRAYS = ("list_centres", "list_start", "list_codes", "list_factors", "list_lanes")
ROWS = 65536  # elements looked at together by `problems`
Texts = tuple[NDArray[np.int64], NDArray[np.uint8]]  # where each begins, and the UTF-8 of all of them


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
    """The rows of a segment file, with its arrays under their names.

    No array leaves here before its shape, and where they are positions its values, were found to be sound:
    what is damaged or crafted raises `StorageError` naming the file and the array.
    """

    def __init__(self, number: int, file: SegmentFile, shape: Shape) -> None:
        self.number = number
        self.file = file
        self.shape = shape
        self.coded = "high_codes" in file
        self.bit_coded = file.info.get("rotation") == ROTATION  # those of a later setnet are left alone
        self.listed = self.bit_coded and "list_start" in file
        self._expected = expected_arrays(file.info["items"], file.info["elements"], shape)
        self._sound: set[str] = set()
        self.seq: NDArray[np.int64] = self.array("seq")
        self.offsets: NDArray[np.int64] = self.array("offsets")
        self._verify("elements")

    def __len__(self) -> int:
        return len(self.seq)

    def array(self, name: str) -> NDArray[Any]:
        """Return an array that was found to be sound."""
        if name not in self._sound:
            self._verify(name)
            self._sound.add(name)
        return self.file.array(name)

    def hot(self, name: str) -> NDArray[Any]:
        """Return a sound array about to be read as a whole."""
        self.array(name)
        return self.file.hot(name)

    def _verify(self, name: str) -> None:
        entry, (dtype, sizes) = self.file.entry(name), self._expected[name]
        fits = len(entry.shape) == len(sizes) and all(
            size in (found, None) for size, found in zip(sizes, entry.shape, strict=True)
        )
        if entry.dtype != dtype or not fits:
            raise self._damaged(name, f"{entry.dtype} of shape {entry.shape}, not {dtype} of {sizes}")
        if fault := self._fault(name):
            raise self._damaged(name, fault)

    def _damaged(self, name: str, fault: str) -> StorageError:
        return StorageError(f"{self.file.path} is damaged: array {name!r}: {fault}; run check() on the index")

    def _fault(self, name: str) -> str | None:
        """Return what is wrong with the values of an array that hold positions."""
        file, length = self.file, self.file.entry(name).shape[0]
        if name == "seq":
            return sequence_fault(file.array(name))
        if name == "offsets":
            return offsets_fault(file.array(name), file.info["elements"])
        if name in ("id_offsets", "attribute_offsets"):
            return offsets_fault(file.array(name), len(self.array(name.replace("offsets", "bytes"))))
        if name == "lane_rows":
            wide = file.info.get("first_wide", -1)
            return lane_fault(file.array(name), self.array("row_start"), wide, self.counts)
        if name in ("high_codes", "low_codes", "scales", "bit_codes", "bit_factors"):
            self.array("lane_rows")  # and with it the heights of all blocks
            rows = int(self.array("row_start")[-1])
            return None if length == rows else f"{length} rows, not {rows}"
        if name in ("list_start", "list_factors", "list_lanes"):
            return self._list_fault(name, length)
        return "it is empty" if name == "row_start" and not length else None

    def _list_fault(self, name: str, length: int) -> str | None:
        blocks = len(self.array("list_codes"))
        lists = len(self.array("list_centres"))
        rows = {"list_start": lists + 1, "list_factors": blocks, "list_lanes": blocks * LANES}[name]
        if length != rows:
            return f"{length} rows, not {rows}"
        if name == "list_start":
            return offsets_fault(self.file.array(name), blocks)
        return slot_fault(self.file.array(name), self.array("lane_rows")) if name == "list_lanes" else None

    def problems(self) -> list[str]:
        """Return what is wrong with the checksums or else the arrays; empty when nothing is."""
        if found := self.file.damage():
            return found
        for name in self._expected:
            try:
                needed = CODE_ARRAYS * self.coded + BIT_ARRAYS * self.bit_coded + LIST_ARRAYS * self.listed
                if name in self.file or name.startswith("id_") or name in needed:
                    self.array(name)
            except StorageError as error:
                found.append(str(error))
        for at in range(0, len(self.elements), ROWS):
            if not np.isfinite(self.elements[at : at + ROWS]).all():
                return [*found, str(self.not_finite())]
        return found

    def not_finite(self, name: str = "elements") -> StorageError:
        """Return the error for a vector that holds a NaN or an infinity."""
        return self._damaged(name, "a stored vector is not finite")

    @property
    def elements(self) -> NDArray[Any]:
        """The elements of all rows, one after another."""
        return self.array("elements")

    @property
    def counts(self) -> NDArray[np.int64]:
        """Number of elements of each row."""
        return np.diff(self.offsets)

    @property
    def lane_rows(self) -> NDArray[np.int32]:
        """Row of each lane; rows in order, those without elements too, when the segment has no codes."""
        if self.coded:
            return self.array("lane_rows")
        return np.where(self.counts > 0, np.arange(len(self)), -1).astype(np.int32)

    def texts(self, name: str) -> Texts | None:
        """Return all ids, or attributes as JSON, one after another in UTF-8; None when no row has any."""
        if name == "attribute" and "attribute_bytes" not in self.file:
            return None
        return self.array(f"{name}_offsets"), self.array(f"{name}_bytes")

    def ids_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the ids of rows."""
        return self._texts("id", rows)

    def attributes_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the attributes of rows, as JSON."""
        return self._texts("attribute", rows) if "attribute_bytes" in self.file else [""] * len(rows)

    def attribute_values_of(self, rows: NDArray[np.int64]) -> list[dict[str, Any]]:
        """Return the attributes of rows, by name."""
        try:
            return [dict(json.loads(text)) if text else {} for text in self.attributes_of(rows)]
        except (ValueError, TypeError, RecursionError) as error:
            raise self._damaged("attribute_bytes", str(error)) from error

    def _texts(self, name: str, rows: NDArray[np.int64]) -> list[str]:
        offsets = self.array(f"{name}_offsets")
        data = self.array(f"{name}_bytes").data
        ends = offsets[rows + 1].tolist()
        try:
            return [str(data[a:z], "utf-8") for a, z in zip(offsets[rows].tolist(), ends, strict=True)]
        except UnicodeDecodeError as error:
            raise self._damaged(f"{name}_bytes", str(error)) from error

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
        return stored, self.array("set_scales").reshape(-1)[rows]

    @property
    def set_rows(self) -> NDArray[Any]:
        """The set vectors as stored, one row each; at one bit the scan reads these very rows."""
        if self.shape.sets is not None and self.shape.sets.bits == 1:
            return self.array("set_codes")
        return self.array("set_rows")
