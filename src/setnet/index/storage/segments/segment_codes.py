"""Writes the quantised codes of a segment, and the norms that make bounds from them safe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels import backend, lanes
from setnet.index.storage.segments.ahead import Ahead
from setnet.index.storage.segments.segment_file import SegmentFileWriter
from setnet.index.storage.shape import SetSpec
from setnet.sets import ROTATION, BitCodec, code_bits, codec

CODE_ROWS = 2048  # code rows (of 16 elements) quantised at once
CENTRE_ROWS = 4096  # elements whose mean stands for that of all: a hundredth off it costs nothing


class ElementCodes:
    """The codes of all elements in lane order, computed by other threads while a file is written.

    Fast search reads one bit per dimension; exact search the high four bits of each byte, and the low ones
    where those leave too many items. The bits are taken around the elements' mean.
    """

    def __init__(self, elements: NDArray[Any], offsets: NDArray[np.int64]) -> None:
        self._elements, self._offsets = elements, offsets
        self.layout = lanes.layout_of(np.diff(offsets))
        self._high = _Packed(elements, self._slots(), lanes.Part.HIGH)
        self._low = _Packed(elements, self._slots(), lanes.Part.LOW)
        self._centre = _mean_of(elements)
        self._factors: list[NDArray[np.uint16]] = []
        self._bits = Ahead(self._signs())

    def write(self, writer: SegmentFileWriter) -> dict[str, Any]:
        """Write the codes, and return the norms their bounds need."""
        writer.array("lane_rows", np.int32, (), [self.layout.lane_rows])
        writer.array("row_start", np.int64, (), [self.layout.row_start])
        high = self._high.write(writer, "high_codes", "scales")
        whole = self._low.write(writer, "low_codes")
        writer.array("bit_centre", np.float32, (), [self._centre])
        width = code_bits(self._elements.shape[1]) // 8
        writer.array("bit_codes", np.uint8, (width, lanes.LANES), self._bits)
        writer.array("bit_factors", np.uint16, (lanes.LANES,), self._factors)
        return {
            "first_wide": self.layout.first_wide,
            "high_norms": high,
            "norms": whole,
            "rotation": ROTATION,
        }

    def _slots(self, *, repeat: bool = False) -> Iterator[NDArray[np.int64]]:
        for first, last in lanes.block_ranges(self.layout.row_start, CODE_ROWS):
            yield lanes.slots(self.layout, self._offsets, first, last, repeat=repeat)

    def _signs(self) -> Iterator[NDArray[np.uint8]]:
        """Yield one bit per dimension of all elements, around the centre."""
        for slots in self._slots(repeat=True):
            out, factors = packed_bits(self._elements, slots, self._centre)
            self._factors.append(factors)
            yield out


def _mean_of(elements: NDArray[Any]) -> NDArray[np.float32]:
    """Return the mean of a sample of elements: a centre for codes of one bit."""
    sample = elements[:: max(1, -(-len(elements) // CENTRE_ROWS))].astype(np.float32)
    mean: NDArray[np.float32] = sample.sum(axis=0) / np.float32(max(1, len(sample)))
    return mean


def packed_bits(
    elements: NDArray[Any], slots: NDArray[np.int64], centre: NDArray[np.float32]
) -> tuple[NDArray[np.uint8], NDArray[np.uint16]]:
    """Return one bit per dimension of the elements in (rows, 16) slots, in lane order, and their factors."""
    dim, half = elements.shape[1], int(elements.dtype.itemsize == 2)
    codes = np.empty((len(slots), code_bits(dim) // 8, lanes.LANES), np.uint8)
    factors = np.empty(slots.shape, np.uint16)
    backend.kernels.pack_bits(elements, half, dim, slots, centre, BitCodec.steps(dim), codes, factors)
    return codes, factors


class _Packed:
    """Rows of an array quantised to bytes, or to halves of them, and interleaved."""

    def __init__(self, rows: NDArray[Any], slots: Iterator[NDArray[np.int64]], part: lanes.Part) -> None:
        self._rows, self._slots, self._part = rows, slots, part
        self._groups = -(-rows.shape[1] // (4 if part is lanes.Part.WHOLE else 8))
        self._scales: list[NDArray[np.float32]] = []
        self._squares = np.zeros(2)
        self._codes = Ahead(self._quantised())

    def _quantised(self) -> Iterator[NDArray[np.uint8]]:
        dim, half = self._rows.shape[1], int(self._rows.dtype.itemsize == 2)
        for slots in self._slots:
            out = np.empty((len(slots), self._groups, lanes.LANES, 4), np.uint8)
            scales = np.empty(slots.shape, np.float32)
            found = backend.kernels.pack(self._rows, half, dim, slots, self._part, out, scales)
            np.maximum(self._squares, found, out=self._squares)
            self._scales.append(scales)
            yield out

    def write(self, writer: SegmentFileWriter, codes: str, scales: str | None = None) -> list[float]:
        """Write codes and scales; return the largest norms of residual and code.

        They are a hair more than computed: they promise upper bounds.
        """
        writer.array(codes, np.uint8, (self._groups, lanes.LANES, 4), self._codes)
        if scales:
            writer.array(scales, np.float32, (lanes.LANES,), self._scales)
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
                levels = codec.levels_of(codes, sets.dim, sets.bits)
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
        packed = _Packed(writer.read_back("set_rows"), iter(cut), lanes.Part.WHOLE)
        return {"set_norms": packed.write(writer, "set_codes", "set_scales")}
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
