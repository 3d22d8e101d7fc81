"""What a segment holds: items with their elements, codes for the scan, set vectors, ids and attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from setnet.errors import VersionError
from setnet.index.kernels import backend, lanes
from setnet.index.storage.segment_file import SegmentFile, SegmentWriter
from setnet.sets import codec

__all__ = ["Batch", "Segment", "SetSpec", "Shape", "Source", "ragged", "write_segment"]

CHUNK = 8192  # items handled at once while writing
CODE_ROWS = 2048  # code rows (of 16 elements) quantised at once
SMALLEST_CODED = 256  # items: a smaller segment is scored directly and needs no codes


@dataclass(frozen=True, slots=True)
class SetSpec:
    """The set vectors of an index: who made them, their dimension and bits per dimension.

    ``fingerprint`` tells apart makers of one name; empty where the maker has none.
    """

    name: str
    dim: int
    bits: int
    fingerprint: str = ""

    @property
    def row_bytes(self) -> int:
        """Bytes of one stored set vector."""
        return codec.row_bytes(self.dim, self.bits)


@dataclass(frozen=True, slots=True)
class Shape:
    """Dimension and precision of the elements, and the set vectors beside them if any."""

    dim: int
    precision: str
    sets: SetSpec | None


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


def ragged(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the positions of all members of ``rows`` in an array cut by ``offsets``.

    >>> ragged(np.array([0, 2, 5]), np.array([1, 0])).tolist()
    [2, 3, 4, 0, 1]
    """
    counts = offsets[rows + 1] - offsets[rows]
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    return np.asarray(np.arange(total) + np.repeat(offsets[rows] - (ends - counts), counts), np.int64)


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
                f"{self.file.path} keeps its set vectors as an earlier setnet did: build the index anew"
            )
        return self.file.array("set_rows")


def write_segment(path: Path, parts: list[tuple[Source, NDArray[np.int64]]], shape: Shape) -> int:
    """Write the chosen rows of ``parts``, in order of ``seq``, as one segment; return its footer's checksum.

    Everything is streamed in chunks: merging segments of any size takes a bounded amount of memory.
    """
    which = np.concatenate([np.full(len(rows), i) for i, (_, rows) in enumerate(parts)])
    row = np.concatenate([rows for _, rows in parts]).astype(np.int64)
    seq = np.concatenate([source.seq[rows] for source, rows in parts])
    order = np.argsort(seq, kind="stable")
    which, row, seq = which[order], row[order], seq[order]
    counts = np.empty(len(row), dtype=np.int64)
    for i, (source, _) in enumerate(parts):
        counts[which == i] = source.counts[row[which == i]]
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)

    def chunks() -> Iterator[list[tuple[Source, NDArray[np.int64], NDArray[np.int64]]]]:
        """Yield, chunk by chunk, each source with its rows and their places within the chunk."""
        for at in range(0, len(row), CHUNK):
            w, r = which[at : at + CHUNK], row[at : at + CHUNK]
            yield [
                (source, r[w == i], np.flatnonzero(w == i))
                for i, (source, _) in enumerate(parts)
                if (w == i).any()
            ]

    def texts(read: Callable[[Source, NDArray[np.int64]], list[str]]) -> Iterator[list[bytes]]:
        for pieces in chunks():
            found: dict[int, bytes] = {}
            for source, rows, places in pieces:
                found.update(zip(places.tolist(), (t.encode() for t in read(source, rows)), strict=True))
            yield [found[i] for i in range(len(found))]

    def elements() -> Iterator[NDArray[Any]]:
        for at, pieces in zip(range(0, len(row), CHUNK), chunks(), strict=True):
            local = offsets[at : at + CHUNK + 1] - offsets[at]
            if len(pieces) == 1:
                yield pieces[0][0].elements_of(pieces[0][1])
                continue
            out = np.empty((local[-1], shape.dim), dtype=shape.precision)
            for source, rows, places in pieces:
                out[ragged(local, places)] = source.elements_of(rows)
            yield out

    with SegmentWriter(path) as writer:
        info: dict[str, Any] = {"items": len(row), "elements": int(offsets[-1])}
        writer.array("seq", np.int64, (), [seq])
        writer.array("offsets", np.int64, (), [offsets])
        _write_texts(writer, "id", lambda: texts(lambda s, r: s.ids_of(r)))
        if any(text for part in texts(lambda s, r: s.attributes_of(r)) for text in part):
            _write_texts(writer, "attribute", lambda: texts(lambda s, r: s.attributes_of(r)))
        writer.array("elements", shape.precision, (shape.dim,), elements())
        if len(row) >= SMALLEST_CODED:
            info.update(_write_codes(writer, lanes.layout_of(counts), offsets, shape.dim))
        if shape.sets is not None:
            info.update(_write_sets(writer, chunks(), shape.sets))
        return writer.finish(info)


def _write_texts(writer: SegmentWriter, name: str, texts: Callable[[], Iterator[list[bytes]]]) -> None:
    lengths = [np.array([len(t) for t in part], dtype=np.int64) for part in texts()]
    writer.array(
        f"{name}_offsets", np.int64, (), [np.concatenate([[0], np.cumsum(np.concatenate([*lengths, []]))])]
    )
    writer.array(f"{name}_bytes", np.uint8, (), (np.frombuffer(b"".join(part), np.uint8) for part in texts()))


def _write_codes(
    writer: SegmentWriter, layout: lanes.Layout, offsets: NDArray[np.int64], dim: int
) -> dict[str, Any]:
    """Write the codes of all elements, and return the norms their bounds need.

    The high four bits of each code in lane order are what every search reads; the whole codes, row by row,
    are for the few items whose coarse bound is promising.
    """
    writer.array("lane_rows", np.int32, (), [layout.lane_rows])
    writer.array("row_start", np.int64, (), [layout.row_start])

    def slots() -> Iterator[NDArray[np.int64]]:
        for first, last in lanes.block_ranges(layout.row_start, CODE_ROWS):
            yield lanes.slots(layout, offsets, first, last)

    high = _write_packed(writer, "elements", slots(), dim, 4, "high_codes", "scales")
    stored = writer.read_back("elements")
    width = -(-dim // 4) * 4 + 4
    largest = np.zeros(2)

    def rows() -> Iterator[NDArray[np.uint8]]:
        for at in range(0, len(stored), CODE_ROWS * lanes.LANES):
            n = min(CODE_ROWS * lanes.LANES, len(stored) - at)
            out = np.empty((n, width), np.uint8)
            half = int(stored.dtype.itemsize == 2)
            np.maximum(largest, backend.kernels.pack_rows(stored, half, dim, at, n, out), out=largest)
            yield out

    writer.array("codes", np.uint8, (width,), rows())
    whole = _norms(largest)
    return {"first_wide": layout.first_wide, "high_norms": high, "norms": whole}


def _norms(squares: NDArray[np.float64]) -> list[float]:
    """Return the norms behind squares of residual and code, a hair more: they promise upper bounds."""
    return [float(norm) * 1.0001 + 1e-4 for norm in np.sqrt(squares)]


def _write_packed(
    writer: SegmentWriter,
    source: str,
    slots: Iterator[NDArray[np.int64]],
    dim: int,
    bits: int,
    codes: str,
    scales: str,
) -> list[float]:
    """Quantise rows of an array already written, in lane order; return the norms their bounds need."""
    stored = writer.read_back(source)
    groups = -(-dim // 8) if bits == 4 else -(-dim // 4)
    all_scales: list[NDArray[np.float32]] = []
    largest = np.zeros(2)

    def parts() -> Iterator[NDArray[np.uint8]]:
        for part in slots:
            out = np.empty((len(part), groups, lanes.LANES, 4), np.uint8)
            all_scales.append(np.empty(part.shape, np.float32))
            half = int(stored.dtype.itemsize == 2)
            found = backend.kernels.pack(stored, half, dim, part, int(bits == 4), out, all_scales[-1])
            np.maximum(largest, found, out=largest)
            yield out

    writer.array(codes, np.uint8, (groups, lanes.LANES, 4), parts())
    writer.array(scales, np.float32, (lanes.LANES,), all_scales)
    return _norms(largest)


def _write_sets(
    writer: SegmentWriter,
    chunks: Iterator[list[tuple[Source, NDArray[np.int64], NDArray[np.int64]]]],
    sets: SetSpec,
) -> dict[str, Any]:
    """Write set vectors and the codes that the scan reads, and return the norms their bounds need."""
    all_scales: list[NDArray[np.float32]] = []
    norm, n = 0.0, 0

    def rows() -> Iterator[NDArray[np.uint8]]:
        nonlocal norm, n
        for pieces in chunks:
            size = sum(len(places) for _, _, places in pieces)
            codes, scales = np.empty((size, sets.row_bytes), np.uint8), np.empty(size, np.float32)
            for source, which, places in pieces:
                codes[places], scales[places] = source.sets_of(which)
            all_scales.append(scales)
            n += size
            if sets.bits < 16:
                levels = codec.levels_of(codes, sets.dim, sets.bits)
                norm = max(norm, float(np.linalg.norm(levels, axis=1).max(initial=0.0)) * 1.0001)
            yield codes

    def blocks(stored: NDArray[np.uint8]) -> Iterator[NDArray[np.uint8]]:
        # a chunk is a whole number of blocks, so only the last one can be ragged
        for at in range(0, len(stored), CHUNK):
            part = stored[at : at + CHUNK]
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
        return {
            "set_norms": _write_packed(writer, "set_rows", iter(cut), sets.dim, 8, "set_codes", "set_scales")
        }
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
