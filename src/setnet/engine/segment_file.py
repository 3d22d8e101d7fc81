"""Reads the footer of a segment file, trusting nothing in it: every array must lie inside the file."""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from setnet.engine.kernels import backend
from setnet.engine.kernels.backend import threads
from setnet.engine.kernels.lanes import LANES, PANEL
from setnet.engine.lists import DEPTHS, PROBES, code_units
from setnet.engine.settings import Shape
from setnet.errors import StorageError, VersionError
from setnet.system import total_memory

ALIGN = 64
DTYPES = {np.dtype(kind).str: np.dtype(kind) for kind in ("u1", "u2", "i4", "i8", "f2", "f4")}
LARGEST_NORM = 1e6  # of a code or residual: 4096 dimensions of eight bits stay far below


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """What an array in a segment file looks like, where it lies, and the number of its first block."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    bytes: int
    block: int


def parsed_footer(path: Path, footer: bytes, end: int) -> tuple[dict[str, Any], dict[str, ArrayEntry], int]:
    """Return a footer's numbers, arrays, and the checksum of the checksums; the file's arrays end at ``end``.

    The arrays follow each other from the header on in the order in which they are named.
    """
    try:
        parsed = json.loads(footer)
        info = _info(parsed["info"])
        sums = _whole(parsed["checksums"], "checksum")
        entries = [(str(name), (kind, shape)) for name, (kind, shape) in parsed["arrays"].items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StorageError(f"{path} is damaged: its footer cannot be read ({error!r})") from error
    arrays = dict[str, ArrayEntry]()
    at, block = ALIGN, 0
    for name, (kind, shape) in entries:
        try:
            arrays[name] = entry = _entry(kind, shape, at, block, end)
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{path} is damaged: array {name!r} of its footer is unsound ({error})"
            ) from error
        at, block = at + entry.bytes, block + -(-entry.bytes // BLOCK)
    if at + _aligned(4 * block) != end:
        raise StorageError(f"{path} is damaged: its arrays end at {at} with {block} checksums, not at {end}")
    return info, arrays, sums


def _aligned(size: int) -> int:
    return -(-size // ALIGN) * ALIGN


def _sums_bytes(sums: list[NDArray[np.uint32]]) -> bytes:
    """Return checksums as a file has them, filled to a multiple of 64 bytes."""
    found = np.concatenate([np.empty(0, np.uint32), *sums]).tobytes()
    return found.ljust(_aligned(len(found)), b"\0")


def _whole(value: Any, what: str) -> int:
    if type(value) is not int or not 0 <= value < 2**63:
        raise ValueError(f"{what} {value!r} is no size")
    return value


def _info(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a segment: of items, elements and blocks, and the norms behind its bounds."""
    found: dict[str, Any] = {name: _whole(info[name], name) for name in ("items", "elements")}
    if "first_wide" in info:
        found["first_wide"] = _whole(info["first_wide"], "first_wide")
    found["columns"] = [str(name) for name in info["columns"]]
    if len(set(found["columns"])) != len(info["columns"]):
        raise ValueError(f"columns {info['columns']!r:.80} are no names")
    if "set_norms" in info:
        residual, norm = (float(value) for value in info["set_norms"])
        if not (0 <= residual <= LARGEST_NORM and 0 <= norm <= LARGEST_NORM):
            raise ValueError(f"set_norms {info['set_norms']!r} are no norms")
        found["set_norms"] = [residual, norm]
    return found


def _entry(kind: Any, sizes: Any, at: int, block: int, end: int) -> ArrayEntry:
    if kind not in DTYPES:
        raise ValueError(f"dtype {kind!r} is none of {', '.join(DTYPES)}")
    dtype, shape = DTYPES[kind], tuple(_whole(size, "shape") for size in sizes)
    if not 1 <= len(shape) <= 4 or max(shape) >= 2**48:
        raise ValueError(f"shape {shape} is that of no array")
    size = _aligned(math.prod(shape) * dtype.itemsize)
    if at + size > end:
        raise ValueError(f"shape {shape} of {dtype.str} takes {size} bytes from {at} on, beyond {end}")
    return ArrayEntry(dtype, shape, at, size, block)


FORMAT = 4
BLOCK = 1 << 12  # bytes under one checksum; the last block of an array may be shorter
HUGE = 1 << 21  # whole blocks of this size, written at once, let the system keep and map them as one page
HEAD = b"setnet segment\n".ljust(ALIGN, b"\0")
TRAILER = struct.Struct("<QII8s")
TAIL = b"snetend\n"
MADV_HUGEPAGE = 14  # of Linux; elsewhere the call fails
RUN = 1 << 23  # bytes verified by one thread while others verify others


class AbandonedError(Exception):
    """A segment is not wanted any more; its unfinished file is gone."""


class SegmentFileWriter:
    """Writes arrays one after another; `finish` completes the file and forces it to disk.

    Used as a context manager: an error removes the unfinished file, and so does `AbandonedError`, which is
    raised soon after another thread has set ``stop``.
    """

    def __init__(self, path: Path, stop: Event | None = None) -> None:
        self.path = path
        self._stop = stop
        self._arrays: dict[str, ArrayEntry] = {}
        self._sums: list[NDArray[np.uint32]] = []
        self._blocks = 0
        self._at_once: dict[str, NDArray[Any]] = {}
        with _disk_errors(path):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = open(handle, "wb", buffering=0)  # noqa: SIM115 - closed in __exit__
        self._at, self._held, self._block = 0, 0, np.empty(HUGE, np.uint8).data
        self._write(HEAD)

    def __enter__(self) -> SegmentFileWriter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._file.close()
        if kind is not None:
            self.path.unlink(missing_ok=True)

    def _write(self, data: Any) -> None:
        view = memoryview(data).cast("B")
        while view:
            taken = view[: HUGE - self._at % HUGE]
            if len(taken) == HUGE:
                self._to_disk(taken)
            else:
                self._block[self._held : self._held + len(taken)] = taken
                self._held += len(taken)
            self._at += len(taken)
            view = view[len(taken) :]
            if self._at % HUGE == 0:
                self._flush()

    def _flush(self) -> None:
        held, self._held = self._held, 0
        self._to_disk(self._block[:held])

    def _to_disk(self, view: memoryview) -> None:
        with _disk_errors(self.path):
            while view:
                view = view[self._file.write(view) :]

    def array(
        self, name: str, dtype: DTypeLike, width: tuple[int, ...], chunks: Iterable[NDArray[Any]]
    ) -> None:
        """Append array ``name`` of rows shaped ``width``, given in chunks so as not to hold it."""
        start, crc, rows = self._at, 0, 0
        for chunk in chunks:
            data = np.ascontiguousarray(chunk, dtype=dtype)
            self._at_once = {name: data} if not rows else {}
            if data.size:
                crc = self._write_summed(data, self._at - start, crc)
            rows += len(data)
        crc = self._write_summed(np.zeros(-self._at % ALIGN, np.uint8), self._at - start, crc)
        size = self._at - start
        if size % BLOCK:
            self._sums.append(np.array([crc], np.uint32))
        self._arrays[name] = ArrayEntry(np.dtype(dtype), (rows, *width), start, size, self._blocks)
        self._blocks += -(-size // BLOCK)

    def _write_summed(self, data: NDArray[Any], before: int, crc: int) -> int:
        """Write a part of an array after others; return the checksum of its last block so far."""
        if self._stop and self._stop.is_set():
            raise AbandonedError
        sums = np.empty((before % BLOCK + data.nbytes) // BLOCK, np.uint32)
        crc = backend.kernels.checksum_blocks(data, BLOCK, before % BLOCK, crc, sums)
        self._sums.append(sums)
        self._write(data)
        return crc

    def read_back(self, name: str) -> NDArray[Any]:
        """Return an array already written, mapped from the file: derived arrays are made from it."""
        if name in self._at_once:  # the latest one, and it came in one chunk
            return self._at_once[name]
        self._flush()
        entry = self._arrays[name]
        if 0 in entry.shape:
            return np.empty(entry.shape, entry.dtype)
        return np.memmap(self.path, entry.dtype, "r", entry.offset, entry.shape)

    def finish(self, info: dict[str, Any]) -> int:
        """Write checksums and footer, force everything to disk, and return the footer's checksum."""
        sums = _sums_bytes(self._sums)
        arrays = {name: [entry.dtype.str, entry.shape] for name, entry in self._arrays.items()}
        footer = json.dumps({"checksums": zlib.crc32(sums), "arrays": arrays, "info": info}).encode()
        crc = zlib.crc32(footer)
        self._write(sums)
        self._write(footer)
        self._write(TRAILER.pack(len(footer), crc, FORMAT, TAIL))
        self._flush()
        with _disk_errors(self.path):
            os.fsync(self._file.fileno())
        return crc


class _Map(mmap.mmap):
    """A file in memory, where reading bytes that it has no more is no end of the process."""

    watched = -1

    def __del__(self) -> None:
        backend.kernels.unwatch(self.watched)


class SegmentFile:
    """A segment file whose header, trailer and footer were verified; arrays are read on demand.

    Arrays are views of a memory map. Whoever reads one calls `verify` before: it compares the checksums of
    those blocks that it has not compared before.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with open(path, "rb") as file:
            self.bytes = size = os.fstat(file.fileno()).st_size
            if size < ALIGN + TRAILER.size:
                raise StorageError(f"{path} is truncated: {size} bytes are too few for a segment")
            self._map = _Map(file.fileno(), size, access=mmap.ACCESS_READ)
        self._map.watched = backend.kernels.watch(self._map)
        # in a larger file, reading 2 MB for a scattered row could push out what is needed next
        if size <= total_memory() // 4:
            with suppress(AttributeError, OSError, ValueError):
                self._map.madvise(MADV_HUGEPAGE)
        length, self.crc, version, tail = TRAILER.unpack(self._map[size - TRAILER.size :])
        end = size - TRAILER.size - length
        if tail != TAIL or end < ALIGN or self._map[:ALIGN] != HEAD:
            raise StorageError(f"{path} is truncated or damaged: it has no sound header and trailer")
        if version != FORMAT:
            remedy = "upgrade setnet to open it" if version > FORMAT else "make the index again"
            raise VersionError(f"{path} has format {version}, this setnet reads {FORMAT}: {remedy}")
        footer = self._map[end : end + length]
        if zlib.crc32(footer) != self.crc:
            raise StorageError(f"{path} is damaged: the checksum of its footer does not fit")
        self.info, self._arrays, self._sums_crc = parsed_footer(path, footer, end)
        blocks = sum(-(-entry.bytes // BLOCK) for entry in self._arrays.values())
        self._sums = np.frombuffer(
            self._map, np.uint32, _aligned(4 * blocks) // 4, end - _aligned(4 * blocks)
        )
        self._seen = np.zeros(blocks, np.uint8)
        self._views: dict[str, NDArray[Any]] = {}
        self.ensure_whole()

    @property
    def content(self) -> memoryview:
        """All bytes of the file."""
        self.ensure_whole()
        return memoryview(self._map)

    def ensure_whole(self) -> None:
        """Raise an error when some bytes of the file could not be read, or have been cut off."""
        if backend.kernels.is_struck(self._map.watched) or self._map.size() < self.bytes:
            raise StorageError(
                f"{self.path} was truncated while it was open, or the disk cannot read it: it had "
                f"{self.bytes} bytes; run check() on the index"
            )

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def entry(self, name: str) -> ArrayEntry:
        """Return what the footer says of an array; one that is missing is an error."""
        if name not in self._arrays:
            raise StorageError(f"{self.path} is damaged: array {name!r} is missing")
        return self._arrays[name]

    def array(self, name: str) -> NDArray[Any]:
        """Return the array ``name``, read-only and as it is."""
        if name not in self._views:
            entry = self.entry(name)
            flat = np.frombuffer(self._map, entry.dtype, math.prod(entry.shape), entry.offset)
            self._views[name] = flat.reshape(entry.shape)
        return self._views[name]

    def verify(self, name: str) -> None:
        """Raise an error unless the checksums of a whole array fit; several threads read a large one."""
        starts = range(0, self.entry(name).bytes, RUN)
        runs = [(np.array([at]), np.array([min(at + RUN, self.entry(name).bytes)])) for at in starts]
        others = [threads("verify").submit(self.verify_bytes, name, *run) for run in runs[1:]]
        for run in runs[:1]:
            self.verify_bytes(name, *run)
        for other in others:
            other.result()

    def verify_bytes(self, name: str, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        """Raise an error unless the checksums of the blocks with some bytes of an array fit."""
        data, sums, seen = self._checked(name)
        bad = backend.kernels.damaged_block(data, BLOCK, sums, seen, starts, ends)
        if bad >= 0:
            self.ensure_whole()
            raise StorageError(f"{self._unfit(name, bad)}; run check() on the index")

    def _checked(self, name: str) -> tuple[NDArray[np.uint8], NDArray[np.uint32], NDArray[np.uint8]]:
        """Return an array's bytes, their checksums, and which were found to fit."""
        entry = self.entry(name)
        blocks = slice(entry.block, entry.block + -(-entry.bytes // BLOCK))
        data = np.frombuffer(self._map, np.uint8, entry.bytes, entry.offset)
        return data, self._sums[blocks], self._seen[blocks]

    def _unfit(self, name: str, block: int) -> str:
        return (
            f"{self.path} is damaged: the checksum of array {name!r} does not fit in its bytes "
            f"{block * BLOCK} to {(block + 1) * BLOCK}"
        )

    def damaged_blocks(self) -> dict[str, NDArray[np.int64]]:
        """Return the numbers of the damaged blocks of each array, from reading all of them again.

        Where the file's checksums are damaged instead, as the checksum of those computed tells, none is.
        """
        computed, found = list[NDArray[np.uint32]](), {}
        for name, entry in self._arrays.items():
            data, sums, _ = self._checked(name)
            own = np.empty(len(sums), np.uint32)
            rest = backend.kernels.checksum_blocks(data, BLOCK, 0, 0, own)
            own[entry.bytes // BLOCK :] = rest
            computed.append(own)
            found[name] = np.flatnonzero(own != sums)
        self.ensure_whole()
        if zlib.crc32(_sums_bytes(computed)) == self._sums_crc:
            return {}
        return {name: blocks for name, blocks in found.items() if len(blocks)}

    def damage(self) -> list[str]:
        """Return what is wrong with the file's contents, array by array; empty when all checksums fit."""
        found = [self._unfit(name, int(blocks[0])) for name, blocks in self.damaged_blocks().items()]
        if zlib.crc32(self._sums.tobytes()) != self._sums_crc:
            found.append(f"{self.path} is damaged: the checksum of its checksums does not fit")
        return found

    def require_sound(self) -> None:
        """Raise unless all checksums fit: before the contents are copied, and damage with them."""
        if problems := self.damage():
            raise StorageError(
                f"{problems[0]}. Nothing was replaced: SetIndex.repair keeps what is sound of the index"
            )


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"cannot write {path}: {error.strerror or error}; nothing already stored was changed. "
            "Free some space or check permissions, then repeat the call"
        ) from error


Expected = tuple[str, tuple[int | None, ...]]  # dtype, and sizes; None where another array says how many


def expected_arrays(info: Mapping[str, Any], shape: Shape) -> dict[str, Expected]:
    """Return dtype and shape of every array that a segment can have, by what its footer says of it."""
    items, elements = info["items"], info["elements"]
    panels, units = -(-shape.dim // PANEL), code_units(shape.dim)
    found: dict[str, Expected] = {
        "seq": ("int64", (items,)),
        "offsets": ("int64", (items + 1,)),
        "id_offsets": ("int64", (items + 1,)),
        "id_bytes": ("uint8", (None,)),
        "elements": (shape.precision, (elements, shape.dim)),
        "budget_runs": ("int64", (None, 3)),
        "budget_codes": ("uint8", (None,)),
        "lane_rows": ("int32", (None,)),
        "row_start": ("int64", (None,)),
        "codes": ("uint8", (None, panels * 5, LANES, 4)),
        "code_norms": ("uint16", (None, 3, LANES)),
        "fine_codes": ("uint8", (None, panels * 4, LANES, 4)),
        "fine_norms": ("uint16", (None, LANES)),
        "list_rows": ("uint8", (elements, units * 4)),
        "list_row_factors": ("uint16", (elements,)),
        "list_centres": ("uint8", (None, 2 * units, LANES, 4)),
        "list_half_squares": ("float32", (None,)),
        "list_start": ("int64", (None,)),
        "list_codes": ("uint8", (None, units, LANES, 4)),
        "list_factors": ("uint16", (None, LANES)),
        "list_items": ("int32", (None,)),
        "list_recall": ("float32", (len(DEPTHS), len(PROBES))),
    }
    for i in range(len(info["columns"])):
        found[f"column_{i}_numbers"] = ("int32", (items,))
        found[f"column_{i}_values"] = ("int64", (None,))
        found[f"column_{i}_texts"] = ("uint8", (None,))
    return found | _expected_sets(items, shape)


def _expected_sets(items: int, shape: Shape) -> dict[str, Expected]:
    sets = shape.sets
    if sets is None:
        return {}
    blocks = -(-items // LANES)
    if sets.bits == 1:
        return {"set_codes": ("uint8", (items, sets.row_bytes)), "set_scales": ("float32", (items,))}
    if sets.bits >= 16:
        return {
            "set_rows": (f"float{sets.bits}", (items, sets.dim)),
            "set_codes": ("uint8", (blocks, -(-sets.dim // 4), LANES, 4)),
            "set_scales": ("float32", (blocks, LANES)),
        }
    return {
        "set_rows": ("uint8", (items, sets.row_bytes)),
        "set_codes": ("uint8", (blocks, sets.row_bytes // 4, LANES, 4)),
        "set_scales": ("float32", (blocks * LANES,)),
    }


def offsets_fault(offsets: NDArray[np.int64], length: int) -> str | None:
    """Return why offsets do not cut an array of ``length`` entries into runs; None when they do.

    >>> offsets_fault(np.array([0, 2, 5]), 5), offsets_fault(np.array([0, 3, 2]), 2)
    (None, 'they fall')
    """
    if offsets[0] != 0 or offsets[-1] != length:
        return f"they run from {offsets[0]} to {offsets[-1]}, not from 0 to {length}"
    return None if (offsets[1:] >= offsets[:-1]).all() else "they fall"


def sequence_fault(seq: NDArray[np.int64]) -> str | None:
    """Return why numbers are no sequence numbers; None when they are positive and rise."""
    if len(seq) and seq[0] < 1:
        return f"they begin with {seq[0]}"
    return None if (seq[1:] > seq[:-1]).all() else "they do not rise"


def lane_fault(
    lane_rows: NDArray[np.int32], row_start: NDArray[np.int64], first_wide: int, counts: NDArray[np.int64]
) -> str | None:
    """Return why lanes and blocks do not hold every element of every item once; None when they do."""
    blocks, rest = divmod(len(lane_rows), LANES)
    if rest or len(row_start) != blocks + 1 or not 0 <= first_wide <= blocks:
        return f"{len(lane_rows)} lanes do not fit {len(row_start) - 1} blocks, {first_wide} of them narrow"
    if len(lane_rows) and (lane_rows.min() < -1 or lane_rows.max() >= len(counts)):
        return f"rows {lane_rows.min()} to {lane_rows.max()} are named of {len(counts)}"
    held = np.append(counts, 0)[lane_rows]  # an empty lane is -1: the last entry
    placed = np.zeros(len(counts) + 1, bool)
    placed[lane_rows] = True
    if not np.array_equal(placed[:-1], counts > 0) or np.count_nonzero(lane_rows >= 0) != placed[:-1].sum():
        return "an item with elements is not in one lane"
    by_block = held.reshape(blocks, LANES)
    if (by_block[first_wide:, 1:] > 0).any():
        return "a wide item shares its block"
    tallest = by_block.max(axis=1, initial=0)
    tallest[first_wide:] = -(-tallest[first_wide:] // LANES)
    if row_start[0] != 0 or not np.array_equal(np.diff(row_start), tallest):
        return "blocks are not as tall as their items"
    return None


def item_fault(items: NDArray[np.int32], counts: NDArray[np.int64]) -> str | None:
    """Return why slots of inverted lists, -1 for an empty one, do not name each element's item.

    >>> item_fault(np.array([1, -1, 1]), np.array([0, 2])), item_fault(np.array([0, 1]), np.array([0, 2]))
    (None, 'the items are not named as often as they have elements')
    """
    if items.min(initial=-1) < -1 or items.max(initial=-1) >= len(counts):
        return f"items {items.min()} to {items.max()} are named of {len(counts)}"
    if np.array_equal(np.bincount(items[items >= 0], minlength=len(counts)), counts):
        return None
    return "the items are not named as often as they have elements"


T = TypeVar("T")


class Prefetch(Generic[T]):
    """An iterable computed by another thread, one value ahead; the first one from the start.

    >>> list(Prefetch(n * n for n in range(4)))
    [0, 1, 4, 9]
    """

    def __init__(self, values: Iterable[T]) -> None:
        self._values = iter(values)
        self._next = threads("write").submit(self._step)

    def _step(self) -> list[T]:
        for value in self._values:
            return [value]
        return []

    def __iter__(self) -> Iterator[T]:
        while found := self._next.result():
            self._next = threads("write").submit(self._step)
            yield found[0]
