"""Codes of elements and set vectors, as they are written beside them in a segment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels import backend, lanes
from setnet.engine.segment_file import Prefetch, SegmentFileWriter
from setnet.engine.settings import SetSpec
from setnet.heads import codec

CODE_ROWS = 2048  # code rows (of 16 elements) quantised at once
NORMS = 3  # of codes of five bits: scale, residual, code


class ElementCodes:
    """The codes of all elements in lane order, computed by other threads while a file is written.

    Exact search reads five bits per dimension, and four more where those leave too many items.
    """

    def __init__(self, elements: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        self._elements, self._offsets = elements, offsets
        self._half = int(elements.dtype.itemsize == 2)
        self.layout = lanes.layout_of(np.diff(offsets))
        self._norms: list[NDArray[np.uint16]] = []
        self._fine_norms: list[NDArray[np.uint16]] = []
        self._coarse = Prefetch(self._cut(False, self._norms))
        self._fine = Prefetch(self._cut(True, self._fine_norms))

    def write(self, writer: SegmentFileWriter) -> dict[str, Any]:
        """Write the codes, and return the number of the first block that a wide item has to itself."""
        dim = self._elements.shape[1]
        panels = -(-dim // lanes.PANEL)
        writer.array("lane_rows", np.int32, (), [self.layout.lane_rows])
        writer.array("row_start", np.int64, (), [self.layout.row_start])
        writer.array("codes", np.uint8, (panels * 5, lanes.LANES, 4), self._coarse)
        writer.array("code_norms", np.uint16, (NORMS, lanes.LANES), self._norms)
        writer.array("fine_codes", np.uint8, (panels * 4, lanes.LANES, 4), self._fine)
        writer.array("fine_norms", np.uint16, (lanes.LANES,), self._fine_norms)
        return {"first_wide": self.layout.first_wide}

    def _slots(self) -> Iterator[NDArray[np.int64]]:
        for first, last in lanes.block_ranges(self.layout.row_start, CODE_ROWS):
            yield lanes.slots(self.layout, self._offsets, first, last)

    def _cut(self, fine: bool, norms: list[NDArray[np.uint16]]) -> Iterator[NDArray[np.uint8]]:
        """Yield five bits per dimension of all elements, or the four below them; their norms are appended."""
        dim = self._elements.shape[1]
        lines = -(-dim // lanes.PANEL) * (4 if fine else 5)
        for slots in self._slots():
            out = np.empty((len(slots), lines, lanes.LANES, 4), np.uint8)
            found = np.empty((len(slots), *(() if fine else (NORMS,)), lanes.LANES), np.uint16)
            backend.kernels.pack_codes(self._elements, self._half, dim, slots, fine, out, found)
            norms.append(found)
            yield out


class _PackedRows:
    """Rows of an array quantised to bytes and interleaved."""

    def __init__(self, rows: NDArray[Any], slots: Iterator[NDArray[np.int64]]) -> None:
        self._rows, self._slots = rows, slots
        self._groups = -(-rows.shape[1] // 4)
        self._scales: list[NDArray[np.float32]] = []
        self._squares = np.zeros(2)
        self._codes = Prefetch(self._quantised())

    def _quantised(self) -> Iterator[NDArray[np.uint8]]:
        dim, half = self._rows.shape[1], int(self._rows.dtype.itemsize == 2)
        for slots in self._slots:
            out = np.empty((len(slots), self._groups, lanes.LANES, 4), np.uint8)
            scales = np.empty(slots.shape, np.float32)
            found = backend.kernels.pack(self._rows, half, dim, slots, out, scales)
            np.maximum(self._squares, found, out=self._squares)
            self._scales.append(scales)
            yield out

    def write(self, writer: SegmentFileWriter) -> list[float]:
        """Write codes and scales; return the largest norms of residual and code.

        They are a hair more than computed: they promise upper bounds.
        """
        writer.array("set_codes", np.uint8, (self._groups, lanes.LANES, 4), self._codes)
        writer.array("set_scales", np.float32, (lanes.LANES,), self._scales)
        return [float(norm) * 1.0001 + 1e-4 for norm in np.sqrt(self._squares)]


def write_sets(
    writer: SegmentFileWriter,
    vectors: Iterable[tuple[NDArray[np.uint8], NDArray[np.float32]]],
    sets: SetSpec,
) -> dict[str, Any]:
    """Write set vectors and the codes that the scan reads, and return the norms their bounds need.

    ``vectors`` come in chunks of whole blocks, the last one excepted.
    """
    all_scales: list[NDArray[np.float32]] = []
    norm, n = 0.0, 0

    def rows() -> Iterator[NDArray[np.uint8]]:
        nonlocal norm, n
        for codes, scales in vectors:
            all_scales.append(scales)
            n += len(scales)
            if sets.bits < 16:
                levels = codec.decode_levels(codes, sets.dim, sets.bits)
                norm = max(norm, float(np.linalg.norm(levels, axis=1).max(initial=0.0)) * 1.0001)
            yield codes

    def blocks(stored: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        rows = CODE_ROWS * lanes.LANES  # whole blocks, so that only the last one is padded
        for at in range(0, len(stored), rows):
            part = stored[at : at + rows]
            padded = np.full((-(-len(part) // lanes.LANES) * lanes.LANES, part.shape[1]), 128, np.uint8)
            padded[: len(part)] = part
            yield lanes.interleave(padded.reshape(-1, lanes.LANES, part.shape[1]))

    if sets.bits >= 16:
        kind = np.float32 if sets.bits == 32 else np.float16
        writer.array("set_rows", kind, (sets.dim,), (part.view(kind) for part in rows()))
        slots = np.full(-(-n // lanes.LANES) * lanes.LANES, -1)
        slots[:n] = np.arange(n)
        rows_of = slots.reshape(-1, lanes.LANES)
        cut = [rows_of[at : at + CODE_ROWS] for at in range(0, len(rows_of), CODE_ROWS)]
        packed = _PackedRows(writer.read_back("set_rows"), iter(cut))
        return {"set_norms": packed.write(writer)}
    if sets.bits == 1:
        writer.array("set_codes", np.uint8, (sets.row_bytes,), rows())
    else:
        # Both row by row and in lane order: the second look at a few thousand would touch a line per group.
        writer.array("set_rows", np.uint8, (sets.row_bytes,), rows())
        in_lanes = blocks(writer.read_back("set_rows"))
        writer.array("set_codes", np.uint8, (sets.row_bytes // 4, lanes.LANES, 4), in_lanes)
    scales = np.concatenate([*all_scales, np.empty(0, np.float32)])
    padding = 0 if sets.bits == 1 else -len(scales) % lanes.LANES
    writer.array("set_scales", np.float32, (), [scales, np.zeros(padding, np.float32)])
    return {"set_norms": [0.0, norm]}
