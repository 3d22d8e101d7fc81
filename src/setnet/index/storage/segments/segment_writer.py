"""Writes a segment from chosen rows of a batch or of other segments, in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.index.storage.segments.batch import Batch
from setnet.index.storage.segments.segment import Segment, ragged
from setnet.index.storage.segments.segment_codes import ElementCodes, write_sets
from setnet.index.storage.segments.segment_file import SegmentFileWriter
from setnet.index.storage.segments.segment_lists import SMALLEST_LISTED, write_lists
from setnet.index.storage.shape import SetSpec, Shape

CHUNK = 8192  # items handled at once
SMALLEST_CODED = 256  # items: a smaller segment is scored directly and needs no codes

Source = Batch | Segment
Part = tuple[Source, NDArray[np.int64]]
Piece = tuple[int, NDArray[np.int64], NDArray[np.int64]]  # a source, its rows, their places in the chunk
Cut = tuple[NDArray[np.int64], NDArray[Any]]  # where each row's members begin, and the members of all rows


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
        rows.write_texts(writer, "id")
        rows.write_texts(writer, "attribute")
        coded = len(rows.seq) >= SMALLEST_CODED
        given = rows.in_memory if coded else None
        codes = None if given is None else ElementCodes(given, rows.offsets)
        writer.array("elements", shape.precision, (shape.dim,), rows.elements())
        if coded:
            stored = writer.read_back("elements")
            codes = codes or ElementCodes(stored, rows.offsets)
            info.update(codes.write(writer))
            if lists or (lists is None and len(rows.seq) >= SMALLEST_LISTED):
                write_lists(writer, codes.layout, rows.offsets)
        if shape.sets is not None:
            info.update(write_sets(writer, rows.sets(shape.sets), shape.sets))
        return writer.finish(info)


class _Rows:
    """Rows of several sources in order of ``seq``, read chunk by chunk."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._sources = [source for source, _ in parts]
        which = np.concatenate([np.full(len(rows), i, np.int32) for i, (_, rows) in enumerate(parts)])
        row = np.concatenate([rows for _, rows in parts]).astype(np.int64)
        seq = np.concatenate([source.seq[rows] for source, rows in parts])
        order = np.argsort(seq, kind="stable")
        self._which, self._row, self.seq = which[order], row[order], seq[order]
        self.offsets = self._offsets([source.offsets for source in self._sources])

    def _offsets(self, starts: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return where each row's members begin when those of all rows follow each other."""
        sizes = np.empty(len(self._row), np.int64)
        for i, start in enumerate(starts):
            mine = self._which == i
            rows = self._row[mine]
            sizes[mine] = start[rows + 1] - start[rows]
        return np.concatenate([[0], np.cumsum(sizes)])

    def _chunks(self) -> Iterator[list[Piece]]:
        for at in range(0, len(self._row), CHUNK):
            which, row = self._which[at : at + CHUNK], self._row[at : at + CHUNK]
            present = np.unique(which).tolist() if len(self._sources) > 1 else [0]
            pieces = [(i, row[which == i], np.flatnonzero(which == i)) for i in present]
            yield sorted(pieces, key=lambda piece: int(piece[2][0]))

    def write_texts(self, writer: SegmentFileWriter, name: str) -> None:
        """Write a text per row, and where each begins; attributes only where a row has any."""
        nothing = np.empty(0, np.uint8)
        texts = [
            source.texts(name) or (np.zeros(len(source.seq) + 1, np.int64), nothing)
            for source in self._sources
        ]
        offsets = self._offsets([starts for starts, _ in texts])
        if name == "id" or offsets[-1]:
            writer.array(f"{name}_offsets", np.int64, (), [offsets])
            writer.array(f"{name}_bytes", np.uint8, (), self._members(texts, offsets))

    @property
    def in_memory(self) -> NDArray[Any] | None:
        """The elements of all rows as one array, where a caller gave them so."""
        if len(self._sources) == 1 and isinstance(self._sources[0], Batch):
            span = _span(self._sources[0].offsets, self._row)
            return self._sources[0].elements[span] if isinstance(span, slice) else None
        return None

    def elements(self) -> Iterator[NDArray[Any]]:
        """Yield the elements of all rows."""
        return self._members([(source.offsets, source.elements) for source in self._sources], self.offsets)

    def _members(self, cuts: Sequence[Cut], offsets: NDArray[np.int64]) -> Iterator[NDArray[Any]]:
        """Yield the members of all rows, some rows at a time."""
        for at, pieces in zip(range(0, len(self._row), CHUNK), self._chunks(), strict=True):
            local = offsets[at : at + CHUNK + 1] - offsets[at]
            spans = [
                (_span(local, places), cuts[i][1], _span(cuts[i][0], rows)) for i, rows, places in pieces
            ]
            if all(isinstance(to, slice) for to, _, _ in spans):  # source after source: nothing is mixed
                yield from (members[found] for _, members, found in spans)
                continue
            out = np.empty((local[-1], *spans[0][1].shape[1:]), spans[0][1].dtype)
            for to, members, found in spans:
                out[to] = members[found]
            yield out

    def sets(self, sets: SetSpec) -> Iterator[tuple[NDArray[np.uint8], NDArray[np.float32]]]:
        """Yield codes and scales of the set vectors of all rows."""
        for pieces in self._chunks():
            if len(pieces) == 1:
                yield self._sources[pieces[0][0]].sets_of(pieces[0][1])
                continue
            size = sum(len(places) for _, _, places in pieces)
            codes, scales = np.empty((size, sets.row_bytes), np.uint8), np.empty(size, np.float32)
            for i, rows, places in pieces:
                codes[places], scales[places] = self._sources[i].sets_of(rows)
            yield codes, scales


def _span(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Return where the members of rows are: a slice where the rows follow each other, as most do."""
    if (rows[1:] - rows[:-1] == 1).all():
        return slice(int(offsets[rows[0]]), int(offsets[rows[-1] + 1]))
    return ragged(offsets, rows)
