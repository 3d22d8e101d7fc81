"""Writes a segment from chosen rows of a batch or of other segments, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels import lanes
from setnet.index.storage.segments.segment import Segment, ragged
from setnet.index.storage.segments.segment_codes import write_codes, write_sets
from setnet.index.storage.segments.segment_file import SegmentFileWriter
from setnet.index.storage.segments.segment_lists import SMALLEST_LISTED, write_lists
from setnet.index.storage.shape import SetSpec, Shape

CHUNK = 8192  # items handled at once
SMALLEST_CODED = 256  # items: a smaller segment is scored directly and needs no codes


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


Source = Batch | Segment
Part = tuple[Source, NDArray[np.int64]]
Piece = tuple[Source, NDArray[np.int64], NDArray[np.int64]]  # a source, its rows, their places in the chunk


def write_segment(path: Path, parts: Sequence[Part], shape: Shape, lists: bool | None = None) -> int:
    """Write the chosen rows of ``parts``, in order of ``seq``, as one segment; return its footer's checksum.

    It has inverted lists if ``lists`` says so, or is None and there are many items.
    Everything is streamed in chunks: merging segments of any size takes a bounded amount of memory.
    """
    rows = _Rows(parts)
    with SegmentFileWriter(path) as writer:
        info: dict[str, Any] = {"items": len(rows.seq), "elements": int(rows.offsets[-1])}
        writer.array("seq", np.int64, (), [rows.seq])
        writer.array("offsets", np.int64, (), [rows.offsets])
        rows.write_texts(writer, "id", lambda source, which: source.ids_of(which))
        rows.write_texts(writer, "attribute", lambda source, which: source.attributes_of(which))
        writer.array("elements", shape.precision, (shape.dim,), rows.elements(shape))
        if len(rows.seq) >= SMALLEST_CODED:
            layout = lanes.layout_of(np.diff(rows.offsets))
            info.update(write_codes(writer, layout, rows.offsets, shape.dim))
            if lists or (lists is None and len(rows.seq) >= SMALLEST_LISTED):
                write_lists(writer, layout, rows.offsets)
        if shape.sets is not None:
            info.update(write_sets(writer, rows.sets(shape.sets), shape.sets))
        return writer.finish(info)


class _Rows:
    """Rows of several sources in order of ``seq``, read chunk by chunk."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._sources = [source for source, _ in parts]
        which = np.concatenate([np.full(len(rows), i) for i, (_, rows) in enumerate(parts)])
        row = np.concatenate([rows for _, rows in parts]).astype(np.int64)
        seq = np.concatenate([source.seq[rows] for source, rows in parts])
        counts = np.concatenate([source.counts[rows] for source, rows in parts])
        order = np.argsort(seq, kind="stable")
        self._which, self._row, self.seq = which[order], row[order], seq[order]
        self.offsets = np.concatenate([[0], np.cumsum(counts[order])]).astype(np.int64)

    def _chunks(self) -> Iterator[list[Piece]]:
        for at in range(0, len(self._row), CHUNK):
            which, row = self._which[at : at + CHUNK], self._row[at : at + CHUNK]
            yield [
                (source, row[which == i], np.flatnonzero(which == i))
                for i, source in enumerate(self._sources)
                if (which == i).any()
            ]

    def write_texts(
        self, writer: SegmentFileWriter, name: str, read: Callable[[Source, NDArray[np.int64]], list[str]]
    ) -> None:
        """Write a text per row, and where each begins; attributes only where a row has any."""

        def texts() -> Iterator[list[bytes]]:
            for pieces in self._chunks():
                found: dict[int, bytes] = {}
                for source, rows, places in pieces:
                    found.update(zip(places.tolist(), (t.encode() for t in read(source, rows)), strict=True))
                yield [found[i] for i in range(len(found))]

        ends = np.cumsum([len(text) for part in texts() for text in part])
        if name == "id" or ends[-1]:
            writer.array(f"{name}_offsets", np.int64, (), [np.concatenate([[0], ends])])
            data = (np.frombuffer(b"".join(part), np.uint8) for part in texts())
            writer.array(f"{name}_bytes", np.uint8, (), data)

    def elements(self, shape: Shape) -> Iterator[NDArray[Any]]:
        for at, pieces in zip(range(0, len(self._row), CHUNK), self._chunks(), strict=True):
            if len(pieces) == 1:
                yield pieces[0][0].elements_of(pieces[0][1])
                continue
            local = self.offsets[at : at + CHUNK + 1] - self.offsets[at]
            out = np.empty((local[-1], shape.dim), dtype=shape.precision)
            for source, rows, places in pieces:
                out[ragged(local, places)] = source.elements_of(rows)
            yield out

    def sets(self, sets: SetSpec) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.float32]]]:
        for pieces in self._chunks():
            size = sum(len(places) for _, _, places in pieces)
            codes, scales = np.empty((size, sets.row_bytes), np.uint8), np.empty(size, np.float32)
            for source, rows, places in pieces:
                codes[places], scales[places] = source.sets_of(rows)
            yield codes, scales
