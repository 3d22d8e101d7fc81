"""A segment: one immutable file of named arrays, written in one stream, read through a memory map.

Layout: 64 bytes of magic; the arrays, each padded to 64 bytes; a JSON footer naming every array with its
type, shape, place and CRC-32; a 24-byte trailer with the footer's length and CRC-32. Every byte of the file
is covered by a checksum or compared with a constant. A file without a sound trailer is not a segment.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from setnet.errors import StorageError, VersionError
from setnet.index.kernels import backend
from setnet.index.storage.segments.segment_footer import ALIGN, ArrayEntry, parsed_footer
from setnet.system import total_memory

FORMAT = 1
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
        if version > FORMAT:
            raise VersionError(
                f"{path} has format {version}, this setnet reads up to {FORMAT}: upgrade setnet to open it"
            )
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
