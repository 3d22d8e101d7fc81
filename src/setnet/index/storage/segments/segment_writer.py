"""Writes a segment from chosen rows of a batch or of other segments, in chunks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.index.kernels import lanes
from setnet.index.storage.segments.batch import Batch
from setnet.index.storage.segments.segment import Segment, ragged
from setnet.index.storage.segments.segment_codes import write_codes, write_sets
from setnet.index.storage.segments.segment_file import SegmentFileWriter
from setnet.index.storage.shape import SetSpec, Shape

__all__ = ["Source", "write_segment"]

CHUNK = 8192  # items handled at once
SMALLEST_CODED = 256  # items: a smaller segment is scored directly and needs no codes

Source = Batch | Segment
Part = tuple[Source, NDArray[np.int64]]
Piece = tuple[Source, NDArray[np.int64], NDArray[np.int64]]  # a source, its rows, their places in the chunk


def write_segment(path: Path, parts: list[Part], shape: Shape) -> int:
    """Write the chosen rows of ``parts``, in order of ``seq``, as one segment; return its footer's checksum.

    Everything is streamed in chunks: merging segments of any size takes a bounded amount of memory.
    """
    rows = _Rows(parts)
    with SegmentFileWriter(path) as writer:
        info: dict[str, Any] = {"items": len(rows.seq), "elements": int(rows.offsets[-1])}
        writer.array("seq", np.int64, (), [rows.seq])
        writer.array("offsets", np.int64, (), [rows.offsets])
        _write_texts(writer, "id", lambda: rows.texts(lambda s, r: s.ids_of(r)))
        if any(text for part in rows.texts(lambda s, r: s.attributes_of(r)) for text in part):
            _write_texts(writer, "attribute", lambda: rows.texts(lambda s, r: s.attributes_of(r)))
        writer.array("elements", shape.precision, (shape.dim,), rows.elements(shape))
        if len(rows.seq) >= SMALLEST_CODED:
            layout = lanes.layout_of(np.diff(rows.offsets))
            info.update(write_codes(writer, layout, rows.offsets, shape.dim))
        if shape.sets is not None:
            info.update(write_sets(writer, rows.sets(shape.sets), shape.sets))
        return writer.finish(info)


class _Rows:
    """Rows of several sources in order of ``seq``, read chunk by chunk."""

    def __init__(self, parts: list[Part]) -> None:
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

    def texts(self, read: Callable[[Source, NDArray[np.int64]], list[str]]) -> Iterator[list[bytes]]:
        for pieces in self._chunks():
            found: dict[int, bytes] = {}
            for source, rows, places in pieces:
                found.update(zip(places.tolist(), (t.encode() for t in read(source, rows)), strict=True))
            yield [found[i] for i in range(len(found))]

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


def _write_texts(writer: SegmentFileWriter, name: str, texts: Callable[[], Iterator[list[bytes]]]) -> None:
    lengths = [np.array([len(t) for t in part], dtype=np.int64) for part in texts()]
    writer.array(
        f"{name}_offsets", np.int64, (), [np.concatenate([[0], np.cumsum(np.concatenate([*lengths, []]))])]
    )
    writer.array(f"{name}_bytes", np.uint8, (), (np.frombuffer(b"".join(part), np.uint8) for part in texts()))
