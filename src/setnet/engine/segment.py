"""A segment: immutable arrays of some items, as they are read and as they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.budget import element_bytes, element_codec, turned
from setnet.engine.codes import ElementCodes, write_sets
from setnet.engine.columns import Column, merged_column
from setnet.engine.conditions import Condition, Value
from setnet.engine.kernels.lanes import LANES
from setnet.engine.lists import write_lists
from setnet.engine.query import Query
from setnet.engine.segment_file import (
    SegmentFile,
    SegmentFileWriter,
    expected_arrays,
    item_fault,
    lane_fault,
    offsets_fault,
    sequence_fault,
)
from setnet.engine.settings import SetSpec, Shape
from setnet.errors import StorageError
from setnet.heads import codec


@dataclass(frozen=True)
class Batch:
    """Rows given by a caller of `add`; read like a `Segment` when they are written."""

    ids: Sequence[str]
    seq: NDArray[np.int64]
    counts: NDArray[np.int64]
    offsets: NDArray[np.int64]
    elements: NDArray[Any]
    columns: dict[str, Column]
    set_codes: NDArray[np.uint8]
    set_scales: NDArray[np.float32]
    stored: Sequence[tuple[Segment, NDArray[np.int64]]] = ()  # the same rows, where they are in an index

    def codes_of(self, rows: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
        """Return the budget codes of rows with the same number of elements, (rows, elements, size)."""
        if self.stored:
            which = np.repeat(np.arange(len(self.stored)), [len(own) for _, own in self.stored])[rows]
            own = np.concatenate([own for _, own in self.stored])[rows]
            parts = [self.stored[i][0].codes_of(own[which == i], size) for i in np.unique(which).tolist()]
            return np.concatenate(parts)[np.argsort(np.argsort(which, kind="stable"))]
        elements = self.elements[ragged(self.offsets, rows)]
        return element_codec(size, elements.shape[1]).encode(elements).reshape(len(rows), -1, size)

    def id_texts(self) -> Texts:
        """Return all ids one after another in UTF-8."""
        return joined_texts(self.ids)

    def sets_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return codes and scales of set vectors."""
        if (rows[1:] - rows[:-1] == 1).all():  # nearly always
            part = slice(rows[0], rows[-1] + 1)
            return self.set_codes[part], self.set_scales[part]
        return self.set_codes[rows], self.set_scales[rows]


def joined_texts(texts: Sequence[str]) -> Texts:
    """Return where each text begins in the bytes of all of them, and these bytes."""
    data = "".join(texts).encode()
    ends = np.fromiter(accumulate(map(len, texts)), np.int64, len(texts))
    if len(texts) and ends[-1] != len(data):  # not all of it is ASCII
        ends = np.fromiter(accumulate(len(text.encode()) for text in texts), np.int64, len(texts))
    return np.concatenate([[0], ends]), np.frombuffer(data, np.uint8)


CODE_ARRAYS = ("lane_rows", "row_start", "codes", "code_norms", "fine_codes", "fine_norms")
ROW_ARRAYS = ("codes", "code_norms", "fine_codes", "fine_norms")
LIST_ARRAYS = ("list_rows", "list_row_factors", "list_centres", "list_half_squares", "list_start",
               "list_codes", "list_factors", "list_items", "list_recall")  # fmt: skip
BUDGET_ARRAYS = ("budget_runs", "lane_rows", "budget_codes")
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

    No array leaves here before its shape, its checksums, and where they are positions its values, were found
    to be sound: what is damaged or crafted raises `StorageError` naming the file and the array. A repair
    reads arrays ``as_they_are``, and takes only rows whose checksums fit.
    """

    def __init__(self, number: int, file: SegmentFile, shape: Shape, as_they_are: bool = False) -> None:
        self.number = number
        self._as_they_are = as_they_are
        self.file = file
        self.shape = shape
        self.coded = "codes" in file
        self.budget = shape.bytes_per_item
        self.listed = self.coded and "list_start" in file
        self._expected = expected_arrays(file.info, shape)
        self._sound: set[str] = set()
        self.seq: NDArray[np.int64] = self.array("seq")
        self.offsets: NDArray[np.int64] = self.array("offsets")
        self._check_shape("budget_codes" if self.budget else "elements")

    def __len__(self) -> int:
        return len(self.seq)

    def array(self, name: str) -> NDArray[Any]:
        """Return an array that was found to be sound."""
        if name not in self._sound:
            self._check_shape(name)
            if not self._as_they_are:
                self.file.verify(name)
                if fault := self._fault(name):
                    raise self._damaged(name, fault)
            self._sound.add(name)
        return self.file.array(name)

    def rows_of(self, name: str, first: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[Any]:
        """Return an array whose entries from each of ``first`` to before ``end`` were found to be sound.

        It is for arrays that hold no positions, of which few entries are read.
        """
        if name not in self._sound:
            self._check_shape(name)
            width = self.file.array(name)[:1].nbytes
            if width and not self._as_they_are:
                self.file.verify_bytes(name, first * width, end * width)
        return self.file.array(name)

    def _check_shape(self, name: str) -> None:
        entry, (dtype, sizes) = self.file.entry(name), self._expected[name]
        fits = len(entry.shape) == len(sizes) and all(
            size in (found, None) for size, found in zip(sizes, entry.shape, strict=True)
        )
        if entry.dtype != dtype or not fits:
            raise self._damaged(name, f"{entry.dtype} of shape {entry.shape}, not {dtype} of {sizes}")

    def _damaged(self, name: str, fault: str) -> StorageError:
        return StorageError(f"{self.file.path} is damaged: array {name!r}: {fault}; run check() on the index")

    def _fault(self, name: str) -> str | None:
        """Return what is wrong with the values of an array that hold positions."""
        file, length = self.file, self.file.entry(name).shape[0]
        if name == "seq":
            return sequence_fault(file.array(name))
        if name == "offsets":
            return offsets_fault(file.array(name), file.info["elements"])
        if name == "id_offsets" or name.endswith("_values"):
            texts = "id_bytes" if name == "id_offsets" else name.replace("values", "texts")
            return offsets_fault(file.array(name), len(self.array(texts)))
        if name.endswith("_numbers"):
            numbers, values = file.array(name), len(self.array(name.replace("numbers", "values"))) - 1
            is_sound = numbers.min(initial=-1) >= -1 and numbers.max(initial=-1) < values
            return None if is_sound else f"it names values that are none of {values}"
        if self.budget and name == "lane_rows":
            return self._run_fault()
        if name == "budget_codes":
            self.array("lane_rows")  # and with it the runs
            wanted = int((self.runs[:, 0] * self.run_sizes() * self._run_items()).sum())
            return None if length == wanted else f"{length} bytes, not {wanted}"
        if name == "lane_rows":
            wide = file.info.get("first_wide", -1)
            return lane_fault(file.array(name), self.array("row_start"), wide, self.counts)
        if name in ROW_ARRAYS:
            self.array("lane_rows")  # and with it the heights of all blocks
            rows = int(self.array("row_start")[-1])
            return None if length == rows else f"{length} rows, not {rows}"
        if name in ("list_half_squares", "list_start", "list_factors", "list_items"):
            return self._list_fault(name, length)
        return "it is empty" if name == "row_start" and not length else None

    def _list_fault(self, name: str, length: int) -> str | None:
        blocks = len(self.array("list_codes"))
        lists = len(self.array("list_centres")) * LANES
        rows = {
            "list_half_squares": lists,
            "list_start": lists + 1,
            "list_factors": blocks,
            "list_items": blocks * LANES,
        }[name]
        if length != rows:
            return f"{length} rows, not {rows}"
        if name == "list_start":
            return offsets_fault(self.file.array(name), blocks)
        return item_fault(self.file.array(name), self.counts) if name == "list_items" else None

    @property
    def runs(self) -> NDArray[np.int64]:
        """Of items with as many elements: how many, the lane of the first, and where its codes begin."""
        return self.array("budget_runs")

    def run_sizes(self) -> NDArray[np.int64]:
        """Return the bytes of each element of each run."""
        sizes = [element_bytes(self.budget, count, self.shape.dim) for count in self.runs[:, 0].tolist()]
        return np.array(sizes, np.int64)

    def _run_items(self) -> NDArray[np.int64]:
        return np.diff(self.runs[:, 1], append=np.count_nonzero(self.file.array("lane_rows") >= 0))

    def _run_fault(self) -> str | None:
        """Return why lanes do not hold all items by their number of elements; None when they do."""
        lanes, counts, runs = self.file.array("lane_rows"), self.counts, self.runs
        used = np.flatnonzero(counts > 0)
        rows = used[np.argsort(counts[used], kind="stable")]
        if len(lanes) != -(-len(rows) // LANES) * LANES or not np.array_equal(lanes[: len(rows)], rows):
            return "an item with elements is not in its lane"
        elements, first, items = np.unique(counts[rows], return_index=True, return_counts=True)
        if (lanes[len(rows) :] != -1).any() or not np.array_equal(runs[:, :2].T, [elements, first]):
            return "its runs are not those of its items"
        size = elements * self.run_sizes() * items
        return None if np.array_equal(runs[:, 2], np.cumsum(size) - size) else "its codes do not follow"

    @cached_property
    def lanes(self) -> NDArray[np.int64]:
        """The lane of each row by budget codes; -1 without elements."""
        found = np.full(len(self), -1)
        rows = self.array("lane_rows")
        used = np.flatnonzero((rows >= 0) & (rows < len(self)))
        found[rows[used]] = used
        return found

    def code_places(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return where the budget codes of rows with elements begin, and the bytes of each element."""
        lane = self.lanes[rows]
        run = np.searchsorted(self.runs[:, 1], lane, side="right") - 1
        elements, first, start = self.runs[run].T
        size = self.run_sizes()[run]
        return start + (lane - first) * elements * size, size

    def codes_of(self, rows: NDArray[np.int64], size: int) -> NDArray[np.uint8]:
        """Return the budget codes of rows with the same number of elements, (rows, elements, size)."""
        start, _ = self.code_places(rows)
        width = int(self.counts[rows[0]]) * size
        codes: NDArray[np.uint8] = self.array("budget_codes")[start[:, None] + np.arange(width)]
        return codes.reshape(len(rows), -1, size)

    def _decoded(self, rows: NDArray[np.int64], decode: str) -> NDArray[np.float32]:
        """Return what budget codes of rows stand for, by the method of `ElementCodec` of this name."""
        counts = self.counts[rows]
        starts, out = np.cumsum(counts) - counts, np.empty((int(counts.sum()), self.shape.dim), np.float32)
        for count in np.unique(counts[counts > 0]).tolist():
            mine = np.flatnonzero(counts == count)
            size = element_bytes(self.budget, count, self.shape.dim)
            codes = self.codes_of(rows[mine], size).reshape(-1, size)
            places = (starts[mine, None] + np.arange(count)).reshape(-1)
            out[places] = getattr(element_codec(size, self.shape.dim), decode)(codes)
        return out

    def comparable(self, rows: NDArray[np.int64], query: Query) -> Comparable:
        """Return elements, where each row's begin, the rows among them, and the query in their space."""
        if not self.budget:
            return self.elements_with(rows), self.offsets, rows, query
        offsets = np.concatenate([[0], np.cumsum(self.counts[rows])])
        return self._decoded(rows, "coordinates"), offsets, np.arange(len(rows)), turned(query)

    def problems(self) -> list[str]:
        """Return what is wrong with the checksums or else the arrays; empty when nothing is."""
        if found := self.file.damage():
            return found
        for name in self._expected:
            try:
                needed = (
                    CODE_ARRAYS * self.coded + LIST_ARRAYS * self.listed + BUDGET_ARRAYS * bool(self.budget)
                )
                if name in self.file or name.startswith(("id_", "column_")) or name in needed:
                    self.array(name)
            except StorageError as error:
                found.append(str(error))
        if self.budget:
            return found
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
        if self.coded or self.budget:
            return self.array("lane_rows")
        return np.where(self.counts > 0, np.arange(len(self)), -1).astype(np.int32)

    def id_texts(self) -> Texts:
        """Return all ids one after another in UTF-8."""
        return self.array("id_offsets"), self.array("id_bytes")

    def ids_of(self, rows: NDArray[np.int64]) -> list[str]:
        """Return the ids of rows."""
        offsets, texts = self.id_texts()
        ends = offsets[rows + 1].tolist()
        try:
            return [str(texts.data[a:z], "utf-8") for a, z in zip(offsets[rows].tolist(), ends, strict=True)]
        except UnicodeDecodeError as error:
            raise self._damaged("id_bytes", str(error)) from error

    @cached_property
    def columns(self) -> dict[str, Column]:
        """The attributes of all rows, by name."""
        arrays = ("numbers", "values", "texts")
        return {
            name: Column(*(self.array(f"column_{i}_{array}") for array in arrays))
            for i, name in enumerate(self.file.info["columns"])
        }

    def values_where(
        self, name: str, conditions: Sequence[Condition]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int32]]:
        """Return which values of an attribute satisfy conditions, and the number of each row's value."""
        if name not in self.columns:
            return np.zeros(0, bool), np.full(len(self), -1, np.int32)
        with self._readable_columns():
            return self.columns[name].values_where(conditions), self.columns[name].numbers

    def attributes_of(self, rows: NDArray[np.int64]) -> list[dict[str, Value]]:
        """Return the attributes of rows, by name."""
        found: list[dict[str, Value]] = [{} for _ in rows]
        with self._readable_columns():
            for name, column in self.columns.items():
                numbers = column.numbers[rows]
                values = {i: column.value(i) for i in np.unique(numbers).tolist() if i >= 0}
                for attributes, number in zip(found, numbers.tolist(), strict=True):
                    if number >= 0:
                        attributes[name] = values[number]
        return found

    @contextmanager
    def _readable_columns(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise self._damaged("attributes", str(error)) from error

    def elements_with(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the elements of all rows, of which those of some rows were found to be sound."""
        return self.rows_of("elements", self.offsets[rows], self.offsets[rows + 1])

    def elements_of(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the elements of rows."""
        if self.budget:
            return self._decoded(rows, "decode")
        return self.elements_with(rows)[ragged(self.offsets, rows)]

    def sets_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
        """Return codes and scales of set vectors."""
        sets = self.shape.sets
        if sets is None or "set_codes" not in self.file:
            return np.empty((len(rows), 0), np.uint8), np.ones(len(rows), np.float32)
        stored = self.sets_with(rows)[rows]
        if sets.bits >= 16:
            return codec.encode(stored, sets.bits), np.ones(len(rows), np.float32)
        return stored, self.array("set_scales").reshape(-1)[rows]

    def sets_with(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """Return the set vectors as stored, one row each, of which some rows were found to be sound.

        At one bit the scan reads these very rows.
        """
        sets = self.shape.sets
        return self.rows_of("set_codes" if sets and sets.bits == 1 else "set_rows", rows, rows + 1)


CHUNK = 8192  # items handled at once
SMALLEST_CODED = 256  # items: a smaller segment is scored directly and needs no codes

Source = Batch | Segment
# elements, where those of each row begin, rows, and the query in the elements' space
Comparable = tuple[NDArray[Any], NDArray[np.int64], NDArray[np.int64], Query]
Part = tuple[Source, NDArray[np.int64]]
Piece = tuple[int, NDArray[np.int64], NDArray[np.int64]]  # a source, its rows, their places in the chunk
Cut = tuple[NDArray[np.int64], NDArray[Any]]  # where each row's members begin, and the members of all rows


def write_segment(
    path: Path,
    parts: Sequence[Part],
    shape: Shape,
    lists: bool = False,
    stop: Event | None = None,
) -> int:
    """Write the chosen rows of ``parts``, in order of ``seq``, as one segment; return its footer's checksum.

    It has inverted lists if ``lists`` says so.
    Everything is streamed in chunks: merging segments of any size takes a bounded amount of memory.
    """
    rows = _Rows(parts)
    with SegmentFileWriter(path, stop) as writer:
        info: dict[str, Any] = {"items": len(rows.seq), "elements": int(rows.offsets[-1])}
        writer.array("seq", np.int64, (), [rows.seq])
        writer.array("offsets", np.int64, (), [rows.offsets])
        rows.write_ids(writer)
        info["columns"] = rows.write_columns(writer)
        if shape.bytes_per_item:
            rows.write_budget_codes(writer, shape)
        coded = len(rows.seq) >= SMALLEST_CODED and not shape.bytes_per_item
        given = rows.in_memory if coded else None
        codes = None if given is None else ElementCodes(given, rows.offsets)
        if not shape.bytes_per_item:
            writer.array("elements", shape.precision, (shape.dim,), rows.elements())
        if coded:
            stored = writer.read_back("elements")
            codes = codes or ElementCodes(stored, rows.offsets)
            info.update(codes.write(writer))
            if lists:
                write_lists(writer, rows.offsets)
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

    def write_ids(self, writer: SegmentFileWriter) -> None:
        """Write the ids of all rows, and where each begins."""
        texts = [source.id_texts() for source in self._sources]
        offsets = self._offsets([starts for starts, _ in texts])
        writer.array("id_offsets", np.int64, (), [offsets])
        writer.array("id_bytes", np.uint8, (), self._members(texts, offsets))

    def write_columns(self, writer: SegmentFileWriter) -> list[str]:
        """Write the attributes of all rows; return their names."""
        names = sorted({name for source in self._sources for name in source.columns})
        for i, name in enumerate(names):
            parts = []
            for s, source in enumerate(self._sources):
                places = np.flatnonzero(self._which == s)
                parts.append((source.columns.get(name), self._row[places], places))
            column = merged_column(parts, len(self._row))
            writer.array(f"column_{i}_numbers", np.int32, (), [column.numbers])
            writer.array(f"column_{i}_values", np.int64, (), [column.offsets])
            writer.array(f"column_{i}_texts", np.uint8, (), [column.texts])
        return names

    def write_budget_codes(self, writer: SegmentFileWriter, shape: Shape) -> None:
        """Write the budget codes of all elements: by the items' number of elements, then in order."""
        counts = np.diff(self.offsets)
        order = np.argsort(counts, kind="stable")
        order = order[counts[order] > 0]
        elements, first, items = np.unique(counts[order], return_index=True, return_counts=True)
        sizes = [element_bytes(shape.bytes_per_item, count, shape.dim) for count in elements.tolist()]
        ends = np.cumsum(elements * items * np.array(sizes, np.int64))
        starts = np.concatenate([[0], ends])[: len(elements)]

        def codes() -> Iterator[NDArray[np.uint8]]:
            for count, size, at, end in zip(
                elements.tolist(), sizes, first.tolist(), (first + items).tolist(), strict=True
            ):
                step = max(1, CHUNK // count)
                for places in (order[i : min(i + step, end)] for i in range(at, end, step)):
                    out = np.empty((len(places), count, size), np.uint8)
                    which = self._which[places]
                    for i in np.unique(which).tolist():
                        out[which == i] = self._sources[i].codes_of(self._row[places[which == i]], size)
                    yield out.reshape(-1)

        writer.array("budget_runs", np.int64, (3,), [np.stack([elements, first, starts], axis=1)])
        writer.array("lane_rows", np.int32, (), [order, np.full(-len(order) % LANES, -1)])
        writer.array("budget_codes", np.uint8, (), codes())

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
