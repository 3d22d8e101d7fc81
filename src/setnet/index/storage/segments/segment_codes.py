"""Writes the quantised codes of a segment, and the norms that make bounds from them safe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels import backend, lanes
from setnet.index.storage.segments.segment_file import SegmentFileWriter
from setnet.index.storage.shape import SetSpec
from setnet.sets import ROTATION, BitCodec, code_bits, codec

CODE_ROWS = 2048  # code rows (of 16 elements) quantised at once
CENTRE_ROWS = 65536  # elements whose mean stands for that of all


def write_codes(
    writer: SegmentFileWriter, layout: lanes.Layout, offsets: NDArray[np.int64], dim: int
) -> dict[str, Any]:
    """Write the codes of all elements, and return the norms their bounds need.

    All are in lane order. Fast search reads one bit per dimension; exact search the high four bits of each
    byte, and the low ones where those leave too many items.
    """
    writer.array("lane_rows", np.int32, (), [layout.lane_rows])
    writer.array("row_start", np.int64, (), [layout.row_start])

    def slots() -> Iterator[NDArray[np.int64]]:
        for first, last in lanes.block_ranges(layout.row_start, CODE_ROWS):
            yield lanes.slots(layout, offsets, first, last)

    high, scales = _write_packed(writer, "elements", slots(), dim, lanes.Part.HIGH, "high_codes")
    writer.array("scales", np.float32, (lanes.LANES,), scales)
    whole, _ = _write_packed(writer, "elements", slots(), dim, lanes.Part.LOW, "low_codes")
    _write_bits(writer, layout, offsets, dim)
    return {"first_wide": layout.first_wide, "high_norms": high, "norms": whole, "rotation": ROTATION}


def _write_bits(
    writer: SegmentFileWriter, layout: lanes.Layout, offsets: NDArray[np.int64], dim: int
) -> None:
    """Write one bit per dimension of all elements in lane order, around their mean."""
    stored = writer.read_back("elements")
    sample = stored[:: -(-len(stored) // CENTRE_ROWS)].astype(np.float32)
    codec = BitCodec(sample.mean(axis=0))
    factors: list[NDArray[np.uint16]] = []

    def rows() -> Iterator[NDArray[np.uint8]]:
        for first, last in lanes.block_ranges(layout.row_start, CODE_ROWS):
            slots = lanes.slots(layout, offsets, first, last, repeat=True)
            codes, scales = codec.encode(stored[slots.reshape(-1)].astype(np.float32))
            factors.append(scales.reshape(slots.shape))
            yield np.ascontiguousarray(codes.reshape(*slots.shape, -1).swapaxes(1, 2))

    writer.array("bit_centre", np.float32, (), [codec.centre])
    writer.array("bit_codes", np.uint8, (code_bits(dim) // 8, lanes.LANES), rows())
    writer.array("bit_factors", np.uint16, (lanes.LANES,), factors)


def _norms(squares: NDArray[np.float64]) -> list[float]:
    """Return the norms behind squares of residual and code, a hair more: they promise upper bounds."""
    return [float(norm) * 1.0001 + 1e-4 for norm in np.sqrt(squares)]


def _write_packed(
    writer: SegmentFileWriter,
    source: str,
    slots: Iterator[NDArray[np.int64]],
    dim: int,
    part: lanes.Part,
    codes: str,
) -> tuple[list[float], list[NDArray[np.float32]]]:
    """Quantise rows of an array already written, in lane order; return their largest norms and scales."""
    stored = writer.read_back(source)
    groups = -(-dim // 4) if part is lanes.Part.WHOLE else -(-dim // 8)
    all_scales: list[NDArray[np.float32]] = []
    largest = np.zeros(2)

    def parts() -> Iterator[NDArray[np.uint8]]:
        for rows in slots:
            out = np.empty((len(rows), groups, lanes.LANES, 4), np.uint8)
            all_scales.append(np.empty(rows.shape, np.float32))
            half = int(stored.dtype.itemsize == 2)
            found = backend.kernels.pack(stored, half, dim, rows, part, out, all_scales[-1])
            np.maximum(largest, found, out=largest)
            yield out

    writer.array(codes, np.uint8, (groups, lanes.LANES, 4), parts())
    return _norms(largest), all_scales


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
        whole = lanes.Part.WHOLE
        norms, packed = _write_packed(writer, "set_rows", iter(cut), sets.dim, whole, "set_codes")
        writer.array("set_scales", np.float32, (lanes.LANES,), packed)
        return {"set_norms": norms}
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
