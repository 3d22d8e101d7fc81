"""Codes of elements: written beside them in a segment, and read by the passes of a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels import backend, lanes
from setnet.engine.query import Query
from setnet.engine.segment_file import Ahead, SegmentFileWriter
from setnet.engine.settings import SetSpec
from setnet.heads import codec
from setnet.heads.bit_codes import ROTATION, BitCodec, code_bits

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
