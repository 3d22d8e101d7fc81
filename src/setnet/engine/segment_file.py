"""Reads the footer of a segment file, trusting nothing in it: every array must lie inside the file."""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from setnet.engine.kernels import backend
from setnet.engine.kernels.backend import threads
from setnet.engine.kernels.lanes import LANES, PANEL
from setnet.engine.settings import Shape
from setnet.errors import StorageError, VersionError
from setnet.heads.bit_codes import code_bits
from setnet.system import total_memory

ALIGN = 64
DTYPES = {np.dtype(kind).str: np.dtype(kind) for kind in ("u1", "u2", "i4", "i8", "f2", "f4")}
LARGEST_NORM = 1e6  # of a code or residual: 4096 dimensions of eight bits stay far below


@dataclass(frozen=True, slots=True)
class ArrayEntry:
    """Where an array lies in a segment file, what it looks like, and its checksum."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    bytes: int
    crc: int


def parsed_footer(path: Path, footer: bytes, end: int) -> tuple[dict[str, Any], dict[str, ArrayEntry]]:
    """Return a footer's numbers and arrays; ``end`` is where the arrays must end."""
    try:
        parsed = json.loads(footer)
        info = _info(parsed["info"])
        entries = parsed["arrays"].items()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StorageError(f"{path} is damaged: its footer cannot be read ({error!r})") from error
    arrays = {}
    for name, entry in entries:
        try:
            arrays[name] = _entry(entry, end)
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{path} is damaged: array {name!r} of its footer is unsound ({error})"
            ) from error
    return info, arrays


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


def _entry(entry: Mapping[str, Any], end: int) -> ArrayEntry:
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"dtype {entry['dtype']!r} is none of {', '.join(DTYPES)}")
    dtype = DTYPES[entry["dtype"]]
    shape = tuple(_whole(size, "shape") for size in entry["shape"])
    offset, size = _whole(entry["offset"], "offset"), _whole(entry["bytes"], "bytes")
    if offset % ALIGN or offset < ALIGN or offset + size > end:
        raise ValueError(f"bytes {offset} to {offset + size} do not lie between {ALIGN} and {end}")
    needed = math.prod(shape) * dtype.itemsize
    if not 1 <= len(shape) <= 4 or max(shape) >= 2**48 or size != -(-needed // ALIGN) * ALIGN:
        raise ValueError(f"shape {shape} of {dtype.str} does not take {size} bytes")
    return ArrayEntry(dtype, shape, offset, size, _whole(entry["crc"], "crc"))


FORMAT = 3
HUGE = 1 << 21  # whole blocks of this size, written at once, let the system keep and map them as one page
HEAD = b"setnet segment\n".ljust(ALIGN, b"\0")
TRAILER = struct.Struct("<QII8s")
TAIL = b"snetend\n"
crc32: Callable[..., int] = getattr(
    backend.kernels, "crc32", zlib.crc32
)  # the same numbers, faster where the machine can
MADV_HUGEPAGE, MADV_POPULATE_READ = 14, 22  # of Linux; elsewhere the calls fail and pages come one by one


class SegmentFileWriter:
    """Writes arrays one after another; `finish` completes the file and forces it to disk.

    Used as a context manager: an error removes the unfinished file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._arrays: dict[str, dict[str, Any]] = {}
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
                self._write(data)
                crc = crc32(data.data, crc)
            rows += len(data)
        padding = b"\0" * (-self._at % ALIGN)
        if padding:
            self._write(padding)
            crc = crc32(padding, crc)
        self._arrays[name] = {
            "dtype": np.dtype(dtype).str,
            "shape": [rows, *width],
            "offset": start,
            "bytes": self._at - start,
            "crc": crc,
        }

    def read_back(self, name: str) -> NDArray[Any]:
        """Return an array already written, mapped from the file: derived arrays are made from it."""
        if name in self._at_once:  # the latest one, and it came in one chunk
            return self._at_once[name]
        self._flush()
        entry = self._arrays[name]
        if 0 in entry["shape"]:
            return np.empty(entry["shape"], dtype=entry["dtype"])
        return np.memmap(self.path, entry["dtype"], "r", entry["offset"], tuple(entry["shape"]))

    def finish(self, info: dict[str, Any]) -> int:
        """Write the footer, force everything to disk, and return the footer's checksum."""
        footer = json.dumps({"format": FORMAT, "arrays": self._arrays, "info": info}).encode()
        crc = crc32(footer)
        self._write(footer)
        self._write(TRAILER.pack(len(footer), crc, FORMAT, TAIL))
        self._flush()
        with _disk_errors(self.path):
            os.fsync(self._file.fileno())
        return crc


class SegmentFile:
    """A segment file whose header, trailer and footer were verified; arrays are read on demand.

    Arrays are views of a memory map and cost no heap. With ``verify="full"`` each is read into memory of our
    own when it is first used and compared with its checksum: what others do to the file afterwards matters
    no more.
    """

    def __init__(self, path: Path, verify: str = "open") -> None:
        self.path = path
        self._handle = os.open(path, os.O_RDONLY)
        self._close = weakref.finalize(self, os.close, self._handle)
        self.bytes = size = os.fstat(self._handle).st_size
        if size < ALIGN + TRAILER.size:
            raise StorageError(f"{path} is truncated: {size} bytes are too few for a segment")
        self._map = None if verify == "full" else self._mapped()
        if self._map is not None:
            self._close()  # the map has a handle of its own
        length, self.crc, version, tail = TRAILER.unpack(self._read(size - TRAILER.size, TRAILER.size))
        self._end = size - TRAILER.size - length
        if tail != TAIL or self._end < ALIGN or self._read(0, ALIGN) != HEAD:
            raise StorageError(f"{path} is truncated or damaged: it has no sound header and trailer")
        if version != FORMAT:
            remedy = "upgrade setnet to open it" if version > FORMAT else "make the index again"
            raise VersionError(f"{path} has format {version}, this setnet reads {FORMAT}: {remedy}")
        footer = self._read(self._end, length)
        if crc32(footer) != self.crc:
            raise StorageError(f"{path} is damaged: the checksum of its footer does not fit")
        self.info, self._arrays = parsed_footer(path, footer, self._end)
        self._ready: set[str] = set()
        self._views: dict[str, NDArray[Any]] = {}

    @property
    def content(self) -> memoryview:
        """All bytes of the file."""
        self.ensure_whole()
        return memoryview(self._read(0, self.bytes) if self._map is None else self._map)

    def _mapped(self) -> mmap.mmap:
        mapped = mmap.mmap(self._handle, self.bytes, access=mmap.ACCESS_READ)
        # in a larger file, reading 2 MB for a scattered row could push out what is needed next
        if self.bytes <= total_memory() // 4:
            with suppress(AttributeError, OSError, ValueError):
                mapped.madvise(MADV_HUGEPAGE)
        return mapped

    def _read(self, at: int, size: int) -> bytes:
        if self._map is not None:
            self.ensure_whole()
            return self._map[at : at + size]
        data = bytearray(size)
        self._fill(memoryview(data), at)
        return bytes(data)

    def _fill(self, buffer: memoryview, at: int) -> None:
        """Read into a buffer, from a position on."""
        done = 0
        while done < len(buffer):
            taken = os.preadv(self._handle, [buffer[done : done + HUGE]], at + done)
            if not taken:
                raise self._truncated()
            done += taken

    def _truncated(self) -> StorageError:
        return StorageError(
            f"{self.path} was truncated while it was open: it had {self.bytes} bytes; run check()"
        )

    def ensure_whole(self) -> None:
        """Raise an error when the file has shrunk: a touch of what was cut off would kill the process."""
        if self._map is not None and self._map.size() < self.bytes:
            raise self._truncated()

    def __contains__(self, name: str) -> bool:
        return name in self._arrays

    def entry(self, name: str) -> ArrayEntry:
        """Return what the footer says of an array; one that is missing is an error."""
        if name not in self._arrays:
            raise StorageError(f"{self.path} is damaged: array {name!r} is missing")
        return self._arrays[name]

    def array(self, name: str) -> NDArray[Any]:
        """Return the array ``name``, read-only."""
        if name not in self._views:
            entry = self.entry(name)
            size = math.prod(entry.shape)
            if self._map is not None:
                flat = np.frombuffer(self._map, entry.dtype, size, entry.offset)
            else:
                flat = np.frombuffer(self._copy(name, entry), entry.dtype, size)
                flat.flags.writeable = False
            self._views[name] = flat.reshape(entry.shape)
        return self._views[name]

    def _copy(self, name: str, entry: ArrayEntry) -> mmap.mmap:
        """Return an array's bytes in memory of our own, page-aligned, after comparing their checksum."""
        copy = mmap.mmap(-1, max(entry.bytes, 1))
        with memoryview(copy) as whole, whole[: entry.bytes] as data:
            self._fill(data, entry.offset)
            if crc32(data) != entry.crc:
                raise StorageError(self._unfit(name))
        return copy

    def _unfit(self, name: str) -> str:
        return f"{self.path} is damaged: the checksum of array {name!r} does not fit"

    def hot(self, name: str) -> NDArray[Any]:
        """Return an array about to be read as a whole, its pages mapped in one go where the system can."""
        if name not in self._ready and self._map is not None:
            self._ready.add(name)
            entry = self.entry(name)
            first = entry.offset // mmap.PAGESIZE * mmap.PAGESIZE
            with suppress(AttributeError, OSError, ValueError):
                self._map.madvise(MADV_POPULATE_READ, first, entry.offset + entry.bytes - first)
        return self.array(name)

    def damage(self) -> list[str]:
        """Return what is wrong with the file's contents, array by array; empty when all checksums fit."""
        problems = []
        at = ALIGN
        for name, entry in self._arrays.items():
            if entry.offset != at:
                problems.append(f"{self.path}: array {name!r} does not begin where the one before ends")
            at = entry.offset + entry.bytes
            if self._checksum(entry) != entry.crc:
                problems.append(self._unfit(name))
        if at != self._end:
            problems.append(f"{self.path}: {self._end - at} bytes belong to no array")
        return problems

    def verify(self) -> None:
        """Raise unless all checksums fit: before the contents are copied, and damage with them."""
        if problems := self.damage():
            raise StorageError(
                f"{problems[0]}. Nothing was replaced: SetIndex.repair keeps what is sound of the index"
            )

    def _checksum(self, entry: ArrayEntry) -> int:
        crc = 0
        for at in range(entry.offset, entry.offset + entry.bytes, HUGE):
            size = min(HUGE, entry.offset + entry.bytes - at)
            if self._map is None:
                crc = crc32(self._read(at, size), crc)
            else:
                self.ensure_whole()
                crc = crc32(np.frombuffer(self._map, np.uint8, size, at), crc)
        return crc


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
    panels = -(-shape.dim // PANEL)
    found: dict[str, Expected] = {
        "seq": ("int64", (items,)),
        "offsets": ("int64", (items + 1,)),
        "id_offsets": ("int64", (items + 1,)),
        "id_bytes": ("uint8", (None,)),
        "elements": (shape.precision, (elements, shape.dim)),
        "lane_rows": ("int32", (None,)),
        "row_start": ("int64", (None,)),
        "codes": ("uint8", (None, panels * 5, LANES, 4)),
        "code_norms": ("uint16", (None, 3, LANES)),
        "fine_codes": ("uint8", (None, panels * 4, LANES, 4)),
        "fine_norms": ("uint16", (None, LANES)),
        "bit_centre": ("float32", (shape.dim,)),
        "bit_codes": ("uint8", (None, code_bits(shape.dim) // 8, LANES)),
        "bit_factors": ("uint16", (None, LANES)),
        "list_centres": ("float32", (None, shape.dim)),
        "list_start": ("int64", (None,)),
        "list_codes": ("uint8", (None, code_bits(shape.dim) // 8, LANES)),
        "list_factors": ("uint16", (None, LANES)),
        "list_lanes": ("int32", (None,)),
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


def slot_fault(slots: NDArray[np.int32], lane_rows: NDArray[np.int32]) -> str | None:
    """Return why slots of inverted lists, -1 for an empty one, do not name lanes that hold an item.

    >>> slot_fault(np.array([1, -1]), np.array([-1, 0])), slot_fault(np.array([0]), np.array([-1, 0]))
    (None, 'a slot names an empty lane')
    """
    if slots.min(initial=-1) < -1 or slots.max(initial=-1) >= len(lane_rows):
        return f"lanes {slots.min()} to {slots.max()} are named of {len(lane_rows)}"
    return "a slot names an empty lane" if (lane_rows[slots[slots >= 0]] < 0).any() else None


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
