"""Addresses of files that are on no mounted disk, such as ``s3://bucket/2019``, read through fsspec.

An address in an archive is written as fsspec writes it, ``zip://2019::/data/photos.zip``, or with the archive
first, ``/data/photos.zip::zip://2019``. It is kept in the second form, in which a folder is the beginning of
all that lies in it. Addresses are stored and shown, so one with a password in it is refused: credentials
belong into the configuration of fsspec on each machine.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any
from urllib.parse import quote

from setnet.durable import storage_errors
from setnet.errors import InvalidInputError, MissingExtraError, SetNetError, StorageError

# `Path` makes one slash of two, and none of those at the end
_PART = re.compile(r"([a-z][a-z0-9+.-]+):(?:/+|$)(.*)", re.DOTALL)
_ARCHIVES = ("zip", "tar")
_IN_ARCHIVE = re.compile(rf"::(?:{'|'.join(_ARCHIVES)}):(?:/|$)")
_LOCAL = ("file", "local")
_OBJECTS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss")  # stores in which names have any characters
_CHECKSUMS = ("etag", "contentmd5", "md5hash", "md5", "crc32c", "crc", "digest", "checksum")
_PIECE = 1 << 22  # bytes of a copy that are in memory at once
_LARGEST_COPY = 16 << 30
_TIMES = ("mtime", "lastmodified", "modified", "updated", "datetime")

Text = str | bytes | os.PathLike[str] | os.PathLike[bytes]
_EXTERNAL = "external"


def external_address(external_id: str) -> str:
    """Return the address of a photo of which another program has the file, and setnet the faces alone.

    >>> external_address("DAM/17 b")
    'external://DAM/17%20b'
    """
    return f"{_EXTERNAL}://{quote(external_id)}"


def is_external(path: Text) -> bool:
    """Return whether only another program has the file of a photo."""
    return _scheme(os.fsdecode(path)) == _EXTERNAL


def is_address(path: Text) -> bool:
    """Return whether a path is an address and no path of a mounted disk.

    >>> is_address("s3://bucket/a.jpg"), is_address("/data/p.zip::zip://a.jpg"), is_address("/data/a.jpg")
    (True, True, False)
    """
    text = os.fsdecode(path)
    return _PART.match(text) is not None or _IN_ARCHIVE.search(text) is not None


def to_address(path: Text) -> str:
    """Return an address as it is kept; that of a file on this machine is its absolute path.

    >>> to_address("s3:/bucket/2019/"), to_address("zip://2019::/data/p.zip"), to_address("file:///data/a.jpg")
    ('s3://bucket/2019', '/data/p.zip::zip://2019', '/data/a.jpg')
    """
    parts = os.fsdecode(path).split("::")
    if len(parts) > 1 and _scheme(parts[0]) in _ARCHIVES:
        parts.reverse()
    if len(parts) > 2 or (len(parts) == 2 and _scheme(parts[1]) not in _ARCHIVES):
        raise InvalidInputError(
            "an address is that of a folder or file, or of one in an archive: s3://bucket/folder, or "
            f"zip://folder::/data/photos.zip (archives are {' and '.join(_ARCHIVES)})"
        )
    where = _plain(parts[0])
    return where if len(parts) == 1 else f"{where}::{_scheme(parts[1])}://{_rest(parts[1]).strip('/')}"


def _scheme(part: str) -> str:
    found = _PART.match(part)
    return "" if found is None else found[1]


def _rest(part: str) -> str:
    found = _PART.match(part)
    return part if found is None else found[2]


def _plain(part: str) -> str:
    scheme, rest = _scheme(part), _rest(part)
    if not scheme or scheme in _LOCAL:
        return os.path.abspath(os.path.expanduser(f"/{rest}" if scheme else part))
    if "@" in rest.partition("/")[0] or _has_query(scheme, rest):
        raise InvalidInputError(
            f"a {scheme}:// address with a user, a password or a key in it is not taken, since addresses are "
            "stored and shown: give it without, and put those into fsspec's configuration on each machine"
        )
    return f"{scheme}://{rest.rstrip('/')}"


def _has_query(scheme: str, rest: str) -> bool:
    """Return whether part of an address is no name, but tells the server something, such as a key."""
    if scheme in _OBJECTS:
        return re.search(r"\?.*=", rest, re.DOTALL) is not None
    return "?" in rest or "#" in rest


@dataclass(frozen=True, slots=True)
class AddressedFile:
    """A file at an address; ``stamp`` is another number when its content has changed."""

    address: str
    size: int
    stamp: int


def require_address(address: str) -> None:
    """Raise unless there is something at an address, and this machine can read it."""
    try:
        system, path = file_system_at(address)
        with plain_errors():
            is_there = _is_there(system, path)
    except StorageError as error:
        raise InvalidInputError(f"{address}: {error}") from None
    if not is_there:
        raise InvalidInputError(f"{address}: is not there")


def _is_there(system: Any, path: str) -> bool:
    """Return whether there is something; not by `exists` alone, which takes a refusal for a no in some."""
    try:
        system.info(path)
    except FileNotFoundError:
        return bool(system.exists(path))
    return True


def file_at(address: str) -> AddressedFile:
    """Return what the storage tells of a file, without reading it."""
    system, path = file_system_at(address)
    with plain_errors():
        return _to_file(address, system.info(path))


def read_address(address: str, largest: int) -> tuple[AddressedFile, bytes]:
    """Return a file and its content, of which at most a byte more than ``largest`` is read."""
    system, path = file_system_at(address)
    with plain_errors():
        info = system.info(path)  # before the content: a change in between is then noticed later
        if info.get("size") is not None and info["size"] <= largest:
            return _to_file(address, info), system.cat_file(path)
        with system.open(path, "rb") as file:
            data: bytes = file.read(largest + 1)
        found = _to_file(address, info)
        return AddressedFile(address, max(found.size, len(data)), found.stamp), data


@contextmanager
def local_copy(address: str) -> Iterator[tuple[AddressedFile, int]]:
    """Yield a file, and a descriptor of a copy for those who must read here and there in it.

    The copy has no name: nobody else finds it, and it is gone at the end, however this process ends. It takes
    at most 16 GB, and a quarter of what is free where temporary files are.
    """
    system, path = file_system_at(address)
    folder = Path(tempfile.gettempdir())
    with tempfile.TemporaryFile(buffering=0) as copy:  # so that closing it writes nothing
        left = min(_LARGEST_COPY, shutil.disk_usage(folder).free // 4)
        with plain_errors():
            found = _to_file(address, system.info(path))  # before the content, as in `read_address`
            source = system.open(path, "rb")
        with source:
            while piece := _next_piece(source):
                left -= len(piece)
                if left < 0:
                    raise StorageError(
                        f"is too large for a copy in {folder}: make room there, or let TMPDIR name another "
                        "folder"
                    )
                unwritten = memoryview(piece)
                while unwritten:
                    with storage_errors(folder, "no copy of it can be made: "):
                        unwritten = unwritten[copy.write(unwritten) :]
        yield found, copy.fileno()


def _next_piece(source: Any) -> bytes:
    with plain_errors():
        return bytes(source.read(_PIECE))


def files_below(
    address: str,
    is_wanted: Callable[[str], bool],
    is_entered: Callable[[str], bool],
    on_error: Callable[[str, str], None],
) -> Iterator[AddressedFile]:
    """Yield the files below an address, folder by folder.

    ``is_wanted`` is asked for each file and ``is_entered`` for each folder, by their addresses; ``on_error``
    is told the folders that cannot be listed, and why.
    """
    system, top = file_system_at(address)
    scheme, is_archive = _scheme(address), "::" in address
    pending = [(address, top)]
    while pending:
        folder, path = pending.pop()
        try:
            with plain_errors():
                entries = sorted(system.ls(path, detail=True), key=lambda info: info["name"])
        except StorageError as error:
            on_error(folder, str(error))
            continue
        inner = []
        for info in entries:
            parent, _, name = info["name"].rstrip("/").rpartition("/")
            # a page of links may lead elsewhere, or have keys in them
            if not name or parent != path.rstrip("/") or (not is_archive and _has_query(scheme, name)):
                continue
            inside = f"{folder.rstrip('/')}/{name}" if folder[-3:] != "://" else f"{folder}{name}"
            if info["type"] == "directory":
                inner += [(inside, info["name"])] if is_entered(inside) else []
            elif is_wanted(inside):
                try:
                    with plain_errors():
                        known = info if info.get("size") is not None else system.info(info["name"])
                        found = _to_file(inside, known)
                except StorageError as error:
                    on_error(inside, str(error))
                else:
                    yield found
        pending.extend(reversed(inner))


def file_system_at(address: str) -> tuple[Any, str]:
    """Return the file system of an address and the path in it, without what another call remembered.

    One that sends requests is kept, since it is slow to make; one with a connection, which may break, is not.
    """
    try:
        from fsspec.core import url_to_fs
        from fsspec.registry import available_protocols, get_filesystem_class
    except ModuleNotFoundError:
        raise MissingExtraError(address, "fsspec", "collection") from None
    if is_external(address):
        raise StorageError(
            "no file is here: another program sent the faces of this photo, and can do so again"
        )
    where, _, inner = address.partition("::")
    for scheme in filter(None, (_scheme(where), _scheme(inner))):
        if scheme not in available_protocols():
            kinds = ", ".join(sorted(available_protocols()))
            raise InvalidInputError(f"{scheme}:// is no kind of address that fsspec knows: {kinds}")
    with plain_errors():
        url = f"{inner}::{where}" if inner else where
        is_kept = not inner and get_filesystem_class(_scheme(where)).async_impl
        system, path = url_to_fs(url, skip_instance_cache=not is_kept, use_listings_cache=False)
        return system, str(path)


@contextmanager
def plain_errors() -> Iterator[None]:
    """Turn whatever a storage raises into a sentence; its own text may have keys or signatures in it."""
    try:
        yield
    except (SetNetError, MemoryError):
        raise
    except ImportError as error:  # the text is fsspec's own: which package is needed
        raise InvalidInputError(
            f"this kind of address needs a package that is not installed ({error}): install it on every "
            "machine that reads the photos"
        ) from None
    except FileNotFoundError:
        raise StorageError("is not there") from None
    except PermissionError:
        raise StorageError(
            "access is refused: see that fsspec finds the credentials of this storage on each machine"
        ) from None
    except Exception as error:
        if "Credentials" in type(error).__name__:  # as those of s3:// are called
            raise StorageError("has no credentials here: put them into fsspec's configuration") from None
        raise StorageError(f"cannot be reached or read ({type(error).__name__})") from None


def _to_file(address: str, info: Mapping[str, Any]) -> AddressedFile:
    return AddressedFile(address, int(info.get("size") or 0), _stamp(info))


def _stamp(info: Mapping[str, Any]) -> int:
    """Return a number made of a checksum, else of a time, else one that never comes again."""
    known = {re.sub("[^a-z0-9]", "", str(key).lower()): value for key, value in info.items()}
    for name in (*_CHECKSUMS, *_TIMES):
        if known.get(name) not in (None, ""):
            digest = blake2b(f"{name} {known[name]}".encode(), digest_size=8).digest()
            return int.from_bytes(digest, "little") >> 1
    return time.time_ns()
