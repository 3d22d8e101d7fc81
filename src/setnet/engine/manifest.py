"""What a collection is made of: its files, in a folder or at an address, and the manifests that list them."""

from __future__ import annotations

import json
import os
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from hashlib import blake2b
from math import gcd
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

from setnet.addresses import file_system_at, is_address, plain_errors, to_address
from setnet.engine.segment import Segment
from setnet.engine.settings import Settings
from setnet.errors import InvalidInputError, MissingExtraError, NotAnIndexError, StorageError, VersionError
from setnet.system import cache_folder, sync_folder

FORMAT, VERSION = "setnet collection", 1
MANIFESTS, SEGMENTS = "manifests", "segments"
TABLES = ("items", "elements")  # of Parquet: a row for each item, and one for each element
_NAME = re.compile(r"[0-9a-f]{32}\.seg")

Share = tuple[int, int]  # part i of n, from 1
WHOLE: Share = (1, 1)


def parse_part(text: str) -> Share:
    """Return a part written as ``i/n``.

    >>> parse_part("2/8")
    (2, 8)
    """
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip())
    part = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= part[0] <= part[1]:
        raise InvalidInputError(f"part {text!r}: i/n is expected, with i from 1 to n, such as 2/8")
    return part


def may_share(one: Share, other: Share) -> bool:
    """Return whether two parts, of whatever numbers of parts, can have an item in common.

    Items are dealt out by the remainder of a number of theirs.

    >>> may_share((1, 4), (2, 4)), may_share((1, 2), (3, 4)), may_share((1, 2), (2, 4))
    (False, True, False)
    """
    return (one[0] - other[0]) % gcd(one[1], other[1]) == 0


def is_in_part(key: bytes, part: Share) -> bool:
    """Return whether what has this key, such as a path, is dealt out to a part.

    >>> [is_in_part(b"a.jpg", (i, 2)) for i in (1, 2)], is_in_part(b"a.jpg", WHOLE)
    ([True, False], True)
    """
    return zlib.crc32(key) % part[1] == part[0] - 1


class Folder:
    """A collection in a folder of this machine, or of a file system that several machines share."""

    fresh_seconds = 0.0

    def __init__(self, root: Path) -> None:
        self.root = root

    def __str__(self) -> str:
        return str(self.root)

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none where it is not there."""
        return os.listdir(self.root / folder) if (self.root / folder).is_dir() else []

    def names_before(self, folder: str, before: float) -> list[str]:
        """Return the names of those files in a folder that were written before a time."""
        names = self.names(folder)
        return [name for name in names if (self.root / folder / name).stat().st_mtime < before]

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        return (self.root / name).read_bytes()

    def create(self, name: str, data: bytes) -> bool:
        """Make a file that is whole from the start, and durable; tell whether there was none before."""
        place = self.root / name
        unfinished = place.with_name(f".{uuid4().hex}")
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            try:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
                os.link(unfinished, place)
            except FileExistsError:
                return False
            finally:
                unfinished.unlink()
        sync_folder(place.parent)
        return True

    def place(self, name: str) -> Path:
        """Return where a new file is to be written, which `publish` then adds to the others."""
        place = self.root / name
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return place

    def publish(self, name: str) -> None:
        """Make the name of a new file durable."""
        sync_folder((self.root / name).parent)

    def fetch(self, name: str) -> Path:
        """Return where a file can be read."""
        return self.root / name

    def remove(self, name: str) -> None:
        """Remove a file, if it is there."""
        (self.root / name).unlink(missing_ok=True)


class RemoteFolder(Folder):
    """A collection at an address that fsspec knows; segments that are read are copied to this machine."""

    fresh_seconds = 2.0

    def __init__(self, address: str) -> None:
        self.address = to_address(address)
        digest = blake2b(self.address.encode(), digest_size=8).hexdigest()
        super().__init__(cache_folder() / "collections" / digest)
        self._system, self._top = file_system_at(self.address)

    def __str__(self) -> str:
        return self.address

    def _at(self, name: str) -> str:
        return f"{self._top.rstrip('/')}/{name}"

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            with plain_errors():
                yield
        except StorageError as error:
            raise StorageError(f"{self.address}: {error}") from None

    def names(self, folder: str) -> list[str]:
        """Return the names of the files in a folder; none where it is not there."""
        with self._reaching():
            try:
                found = self._system.ls(self._at(folder), detail=False)
            except FileNotFoundError:
                return []
            return [str(path).rstrip("/").rpartition("/")[2] for path in found]

    def names_before(self, folder: str, before: float) -> list[str]:
        """Return the names of those files that were written before a time; of stores that tell it."""
        found = []
        for name in self.names(folder):
            with self._reaching():
                info = self._system.info(self._at(f"{folder}/{name}"))
            times = [info.get(key) for key in ("LastModified", "mtime", "created")]
            written = next((time for time in times if time is not None), None)
            written = written.timestamp() if isinstance(written, datetime) else written
            if isinstance(written, int | float) and written < before:
                found.append(name)
        return found

    def read(self, name: str) -> bytes:
        """Return a file's bytes."""
        with self._reaching():
            return bytes(self._system.cat_file(self._at(name)))

    def create(self, name: str, data: bytes) -> bool:
        """Make a file; tell whether there was none before."""
        with self._reaching():
            try:
                self._system.pipe_file(self._at(name), data, mode="create")
            except FileExistsError:
                return False
            except (NotImplementedError, TypeError):
                raise InvalidInputError(
                    f"{self.address} is read-only: this kind of address cannot create a file only where "
                    "there is none"
                ) from None
        return True

    def publish(self, name: str) -> None:
        """Copy a new file to the address."""
        with self._reaching():
            self._system.put_file(str(self.root / name), self._at(name))

    def fetch(self, name: str) -> Path:
        """Return where the copy of a file is, after making it."""
        place = self.place(name)
        if not place.exists():
            unfinished = place.with_name(f".{uuid4().hex}")
            try:
                with self._reaching():
                    self._system.get_file(self._at(name), str(unfinished))
                unfinished.replace(place)
            finally:
                unfinished.unlink(missing_ok=True)
        return place

    def remove(self, name: str) -> None:
        """Remove a file and its copy, if they are there."""
        super().remove(name)
        with self._reaching(), suppress(FileNotFoundError):
            self._system.rm_file(self._at(name))

    def forget(self, named: set[str]) -> None:
        """Remove the copies of segments that a manifest does not name any more."""
        for name in super().names(SEGMENTS):
            if name not in named and _NAME.fullmatch(name):
                super().remove(f"{SEGMENTS}/{name}")


def folder_at(address: str | Path) -> Folder:
    """Return the files of a collection."""
    return RemoteFolder(os.fspath(address)) if is_address(address) else Folder(Path(address).expanduser())


def is_collection(address: str | Path) -> bool:
    """Return whether there is, or can only be, a collection at a path or address."""
    return is_address(address) or (Path(address) / MANIFESTS).is_dir()


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A segment as a manifest lists it.

    Attributes
    ----------
    first
        What is added to the numbers of its items, which say in which order items were added.
    part
        Which items it can have, and others cannot: those of part i of n.
    deleted
        Which rows are deleted, as bits; empty when none is.
    tables
        Whether there are tables beside it, whose rows are those of its items and elements.
    """

    name: str
    items: int
    elements: int
    bytes: int
    crc: int
    columns: tuple[str, ...] = ()
    listed: bool = False
    first: int = 0
    part: Share = WHOLE
    deleted: str = ""
    dead: int = 0
    dead_elements: int = 0
    tables: bool = False

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> ListedFile:
        """Return what a manifest lists, trusting nothing in it."""
        made = cls(**{**given, "columns": tuple(map(str, given["columns"])), "part": tuple(given["part"])})
        numbers = (made.items, made.elements, made.bytes, made.crc, made.first, made.dead, *made.part)
        if not all(type(n) is int and 0 <= n < 2**62 for n in numbers) or not _NAME.fullmatch(made.name):
            raise ValueError(f"{made.name!r} is no segment")
        parse_part("/".join(map(str, made.part)))
        return made

    @property
    def files(self) -> list[str]:
        """The files that it consists of."""
        tables = [table_path(kind, self.name) for kind in TABLES] if self.tables else []
        return [f"{SEGMENTS}/{self.name}", *tables]

    @property
    def living(self) -> int:
        """How many items are not deleted."""
        return self.items - self.dead

    def dead_rows(self) -> NDArray[np.bool_] | None:
        """Return which rows are deleted; None when none is."""
        if not self.deleted:
            return None
        limit = -(-self.items // 8)
        bits = zlib.decompressobj().decompress(b64decode(self.deleted), limit)
        return np.unpackbits(np.frombuffer(bits.ljust(limit, b"\0"), np.uint8), count=self.items).astype(bool)

    def without(self, rows: NDArray[np.int64], segment: Segment) -> ListedFile:
        """Return it with more rows deleted."""
        dead = self.dead_rows()
        dead = np.zeros(self.items, bool) if dead is None else dead
        dead[rows] = True
        if not dead.any():
            return self
        bits = b64encode(zlib.compress(np.packbits(dead).tobytes())).decode()
        elements = int(segment.counts[dead].sum())
        return replace(self, deleted=bits, dead=int(np.count_nonzero(dead)), dead_elements=elements)


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a collection is at one time: its settings, its segments, and what is deleted of them.

    ``about`` says what the vectors are of, such as the model that made them.
    """

    number: int
    settings: Settings
    about: Mapping[str, Any] = field(default_factory=dict)
    next_seq: int = 1
    segments: tuple[ListedFile, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the manifest as JSON with a checksum."""
        body = {
            "format": FORMAT, "version": VERSION, "number": self.number, "settings": self.settings.as_json(),
            "about": dict(self.about), "next_seq": self.next_seq,
            "segments": [asdict(listed) for listed in self.segments],
        }  # fmt: skip
        return json.dumps({"crc": _crc(body), "manifest": body}, separators=(",", ":")).encode()

    @classmethod
    def parse(cls, data: bytes, where: str) -> Manifest:
        """Return a manifest that was read, trusting nothing in it."""
        try:
            stored = json.loads(data)
            body = stored["manifest"]
            if body["format"] != FORMAT or body["version"] > VERSION:
                raise VersionError(
                    f"{where}: version {body['version']} is newer than this setnet: upgrade it"
                )
            if stored["crc"] != _crc(body):
                raise ValueError("its checksum does not fit")
            segments = tuple(map(ListedFile.parse, body["segments"]))
            settings = Settings.of_json(body["settings"])
            return cls(int(body["number"]), settings, body["about"], int(body["next_seq"]), segments)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(f"{where} is damaged: {error}") from None

    def of_part(self, part: Share) -> list[ListedFile]:
        """Return the segments that the i-th of n searchers has: each goes to the one with the fewest bytes.

        A segment that is added moves no other.
        """
        loads = [0] * part[1]
        own = []
        for listed in self.segments:
            least = loads.index(min(loads))
            loads[least] += listed.bytes
            if least == part[0] - 1:
                own.append(listed)
        return own


def _crc(body: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True).encode())


def manifest_path(number: int) -> str:
    """Return where a manifest is."""
    return f"{MANIFESTS}/{number:08d}.json"


def table_path(kind: str, name: str) -> str:
    """Return where a table of a segment is."""
    return f"{kind}/{name.removesuffix('.seg')}.parquet"


def pyarrow() -> tuple[Any, Any]:
    """Return the packages that read and write tables."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError:
        raise MissingExtraError("a collection with tables", "pyarrow", "collection") from None
    return pyarrow, pyarrow.parquet


def manifest_numbers(files: Folder) -> list[int]:
    """Return the numbers of the manifests, in order."""
    names = (name.removesuffix(".json") for name in files.names(MANIFESTS) if name.endswith(".json"))
    return sorted(int(name) for name in names if name.isdecimal())


def newest_manifest(files: Folder, known: Manifest | None = None) -> Manifest:
    """Return the newest manifest, which need not be read again if it is the known one."""
    for attempt in range(5):
        numbers = manifest_numbers(files)
        if not numbers:
            raise NotAnIndexError(f"{files} holds no collection: make one with Collection.create")
        if known is not None and known.number == numbers[-1]:
            return known
        try:
            return Manifest.parse(files.read(manifest_path(numbers[-1])), f"{files}: manifest {numbers[-1]}")
        except (FileNotFoundError, StorageError):  # removed since, as there are newer ones
            if attempt == 4:
                raise
    raise AssertionError


def items_in(segments: Sequence[ListedFile]) -> int:
    """Return the number of items that are not deleted."""
    return sum(listed.living for listed in segments)


def living_rows(listed: ListedFile) -> NDArray[np.int64]:
    """Return the rows of a segment that are not deleted."""
    dead = listed.dead_rows()
    return np.arange(listed.items) if dead is None else np.flatnonzero(~dead)
