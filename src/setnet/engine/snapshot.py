"""A consistent view of an index: its segments and deletions as of one commit."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.budget import LEAST_BYTES
from setnet.engine.catalog import Catalog, ListedSegment
from setnet.engine.columns import RowFilter
from setnet.engine.conditions import conditions_of
from setnet.engine.files import segment_path
from setnet.engine.kernels import backend
from setnet.engine.results import Contents, Item
from setnet.engine.segment import Segment
from setnet.engine.segment_file import SegmentFile
from setnet.engine.settings import Shape
from setnet.errors import StorageError, UnknownAttributeError, choice_error

Allowed = RowFilter | None  # the rows that conditions on attributes leave open

REMEMBERED = 2  # latest conditions whose lanes are kept: a byte for each lane


@dataclass(frozen=True)
class LaneTable:
    """The lanes of all segments side by side: of their elements, or of their set vectors.

    Lane ``i`` of segment ``s`` has the global number ``start[s] + i``; where ``in_order``, it is row ``i``.
    ``latest`` are the rows that conditions left open lately, and the lanes that hold them.
    """

    start: NDArray[np.int64]
    lane_rows: list[NDArray[np.int32]]
    excluded: NDArray[np.int64]
    in_order: bool
    latest: list[tuple[RowFilter, NDArray[np.bool_]]] = field(default_factory=list)

    @property
    def lanes(self) -> int:
        """Number of lanes in all."""
        return int(self.start[-1])

    @property
    def items(self) -> int:
        """Number of items that can be found: neither deleted nor empty."""
        return self.lanes - len(self.excluded)

    def open_lanes(self, allowed: Allowed) -> NDArray[np.bool_]:
        """Return which lanes hold items that can be found and that the conditions, if any, leave open."""
        for rows_open, found in self.latest:
            if rows_open is allowed:
                return found
        is_open = np.ones(self.lanes, bool)
        for s, (start, rows) in enumerate(zip(self.start, self.lane_rows, strict=False)):
            if allowed is not None:
                backend.kernels.take_mask(allowed[s], rows, is_open[start : start + len(rows)])
        is_open[self.excluded] = False
        if allowed is not None:
            self.latest[:] = [(allowed, is_open), *self.latest[: REMEMBERED - 1]]
        return is_open

    def lanes_of(self, rows: list[tuple[int, NDArray[np.int64]]]) -> NDArray[np.int64]:
        """Return the global lanes of (segment, rows), in ascending order."""
        found = [np.flatnonzero(np.isin(self.lane_rows[s], some)) + self.start[s] for s, some in rows]
        return np.concatenate([np.empty(0, np.int64), *found])

    def split(self, lanes: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
        """Return (segment, rows) for global lanes in ascending order."""
        cuts = np.searchsorted(lanes, self.start)
        parts = []
        for s, rows in enumerate(self.lane_rows):
            mine = lanes[cuts[s] : cuts[s + 1]]
            if len(mine):
                here = mine - self.start[s]
                parts.append((s, here if self.in_order else rows[here].astype(np.int64)))
        return parts


def open_segment(root: Path, listed: ListedSegment, shape: Shape) -> Segment:
    """Return a segment that the catalogue lists; another file in its place is an error."""
    number, items, elements, size, crc = listed
    file = SegmentFile(segment_path(root, number))
    if (file.info["items"], file.info["elements"], file.bytes, file.crc) != (items, elements, size, crc):
        raise StorageError(f"{file.path} is not the file that the catalogue lists; run check()")
    return Segment(number, file, shape)


class Snapshot:
    """Segments, deletions and generation, read in one transaction; holds its files open."""

    def __init__(self, catalog: Catalog, root: Path, shape: Shape, known: Mapping[int, Segment]) -> None:
        self.generation: int = catalog.get("generation")
        self.shape = shape
        self.segments: list[Segment] = []
        self.dead: list[NDArray[np.bool_] | None] = []
        next_seq = catalog.get("next_seq")
        for listed in catalog.segments():
            number, items = listed[:2]
            segment = known.get(number) or open_segment(root, listed, shape)
            if items and segment.seq[-1] >= next_seq:
                raise StorageError(
                    f"{segment.file.path} is damaged: it holds items that were never stored; run check()"
                )
            self.segments.append(segment)
            self.dead.append(catalog.dead_rows(number, items))
        self._filters: dict[str, RowFilter] = {}

    def ensure_whole(self) -> None:
        """Raise an error when a file was truncated since it was opened."""
        for segment in self.segments:
            segment.file.ensure_whole()

    @contextmanager
    def intact(self) -> Iterator[None]:
        """Raise an error when a file was truncated before the block had read it: it may have read zeros."""
        try:
            yield
        finally:
            self.ensure_whole()

    @cached_property
    def elements(self) -> LaneTable:
        """The lanes of the elements' codes."""
        return self._lane_table([segment.lane_rows for segment in self.segments], in_order=False)

    @cached_property
    def sets(self) -> LaneTable:
        """The lanes of the set vectors: one per row, rows without elements left out."""
        rows = []
        for segment in self.segments:
            bits = self.shape.sets.bits if self.shape.sets else 1
            lane_rows = np.full(len(segment) if bits == 1 else -(-len(segment) // 16) * 16, -1, np.int32)
            lane_rows[: len(segment)] = np.where(segment.counts > 0, np.arange(len(segment)), -1)
            rows.append(lane_rows)
        return self._lane_table(rows, in_order=True)

    def _lane_table(self, lane_rows: list[NDArray[np.int32]], *, in_order: bool) -> LaneTable:
        start = np.concatenate([[0], np.cumsum([len(rows) for rows in lane_rows])]).astype(np.int64)
        excluded = [np.empty(0, np.int64)]
        for at, rows, dead in zip(start, lane_rows, self.dead, strict=False):
            out = rows < 0 if dead is None else (rows < 0) | dead[rows]
            excluded.append(np.flatnonzero(out) + at)
        return LaneTable(start, lane_rows, np.concatenate(excluded), in_order)

    @cached_property
    def _parts(self) -> dict[tuple[int, ...], Snapshot]:
        return {}

    def part(self, numbers: tuple[int, ...]) -> Snapshot:
        """Return some of the segments as a snapshot of their own; the latest are remembered."""
        if (part := self._parts.get(numbers)) is None:
            part = copy(self)
            for name in ("elements", "sets", "_parts"):  # of all segments
                part.__dict__.pop(name, None)
            part.segments, part.dead = [self.segments[s] for s in numbers], [self.dead[s] for s in numbers]
            part._filters = {}
            if len(self._parts) == REMEMBERED:
                self._parts.clear()
            self._parts[numbers] = part
        return part

    @property
    def attribute_names(self) -> set[str]:
        """The names of the attributes that items have."""
        return {name for segment in self.segments for name in segment.columns}

    @property
    def listed_items(self) -> tuple[int, int]:
        """How many items the segments have, and how many of them are in inverted lists."""
        listed = sum(len(segment) for segment in self.segments if segment.listed)
        return sum(map(len, self.segments)), listed

    def over_budget(self) -> int:
        """Return how many living items have more elements than their bytes hold."""
        most = self.shape.bytes_per_item // LEAST_BYTES
        counts = (segment.counts[self.alive(s)] for s, segment in enumerate(self.segments))
        return sum(int(np.count_nonzero(count > most)) for count in counts) if most else 0

    def set_norms(self) -> tuple[float, float]:
        """Return the largest norms of a set vector's residual and code, in units of their scale."""
        found = [s.file.info["set_norms"] for s in self.segments if "set_norms" in s.file.info]
        residual, norm = np.max(found, axis=0).tolist() if found else (0.0, 0.0)
        return residual, norm

    def alive(self, segment: int) -> NDArray[np.int64]:
        """Return the rows of a segment that are not deleted."""
        dead = self.dead[segment]
        return np.arange(len(self.segments[segment])) if dead is None else np.flatnonzero(~dead)

    def sample(self, count: int) -> NDArray[np.float32]:
        """Return ``count`` elements of living items, all when there are no more, evenly spaced over them."""
        found = [np.empty((0, self.shape.dim), np.float32)]
        alive = [self.alive(s) for s in range(len(self.segments))]
        sizes = [segment.counts[rows] for segment, rows in zip(self.segments, alive, strict=True)]
        start = np.cumsum([0, *(int(size.sum()) for size in sizes)])
        wanted = np.linspace(0, start[-1] - 1, min(count, int(start[-1]))).astype(np.int64)
        for s, segment in enumerate(self.segments):
            mine = wanted[(wanted >= start[s]) & (wanted < start[s + 1])] - start[s]
            ends = np.cumsum(sizes[s])
            row = np.searchsorted(ends, mine, side="right")
            rows, which = np.unique(alive[s][row], return_inverse=True)
            place = np.cumsum(segment.counts[rows]) - segment.counts[rows]
            place = place[which] + mine - (ends - sizes[s])[row]
            found.append(segment.elements_of(rows)[place].astype(np.float32))
        return np.concatenate(found)

    def items(self) -> Iterator[Item]:
        """Yield all living items in the order of segments and rows, a chunk of them in memory at a time."""
        for s in range(len(self.segments)):
            rows = self.alive(s)
            for at in range(0, len(rows), 1024):
                yield from self.items_of(s, rows[at : at + 1024])

    def items_of(self, s: int, rows: NDArray[np.int64]) -> list[Item]:
        """Return items by segment and rows."""
        segment = self.segments[s]
        with self.intact():
            ids, values = segment.ids_of(rows), segment.attributes_of(rows)
        return list(map(Item, ids, segment.counts[rows].tolist(), values))

    def contents(self) -> Contents:
        """Return ids, counts and elements of all living items, in the order of segments and rows."""
        parts = [Contents([], np.empty(0, np.int64), np.empty((0, self.shape.dim), np.float32))]
        parts += self.blocks(sys.maxsize)
        return Contents(
            [name for part in parts for name in part.ids],
            np.concatenate([part.counts for part in parts]),
            np.concatenate([part.elements for part in parts]),
        )

    def blocks(self, items: int) -> Iterator[Contents]:
        """Yield ids, counts and elements of so many living items at a time, of one segment each."""
        for s, segment in enumerate(self.segments):
            alive = self.alive(s)
            for at in range(0, len(alive), items):
                rows = alive[at : at + items]
                with self.intact():
                    elements = segment.elements_of(rows).astype(np.float32)
                    part = Contents(segment.ids_of(rows), segment.counts[rows], elements)
                yield part

    def find(self, seqs: NDArray[np.int64]) -> list[tuple[int, NDArray[np.int64]]]:
        """Return (segment, rows) of the living items with these sequence numbers."""
        found = []
        with self.intact():
            for s, segment in enumerate(self.segments):
                at = np.searchsorted(segment.seq, seqs)
                here = at < len(segment)
                here[here] = segment.seq[at[here]] == seqs[here]
                rows = at[here]
                dead = self.dead[s]
                if dead is not None:
                    rows = rows[~dead[rows]]
                if len(rows):
                    found.append((s, rows.astype(np.int64)))
        return found

    def allowed(self, where: Mapping[str, Any]) -> RowFilter:
        """Return which rows satisfy the conditions; the latest answers are remembered."""
        key = repr(sorted((name, repr(value)) for name, value in where.items()))
        if key not in self._filters:
            if len(self._filters) >= 8:
                self._filters.pop(next(iter(self._filters)), None)  # another thread may have been faster
            self._filters[key] = self._rows_where(where)
        return self._filters[key]

    def _rows_where(self, where: Mapping[str, Any]) -> RowFilter:
        tables: list[list[tuple[NDArray[np.bool_], NDArray[np.int32]]]] = [[] for _ in self.segments]
        for name, given in where.items():
            conditions = conditions_of({name: given})
            if name not in self.attribute_names:
                names = sorted(self.attribute_names) or ["(no item has any attribute)"]
                raise UnknownAttributeError(str(choice_error("attribute", name, names)))
            for own, segment in zip(tables, self.segments, strict=True):
                own.append(segment.values_where(name, conditions))
        return RowFilter([(len(segment), own) for segment, own in zip(self.segments, tables, strict=True)])
