"""The files of photos, symbolic links resolved.

They are opened only inside the indexed folders, one by one or as a zip file that is made while it is sent.
"""

from __future__ import annotations

import io
import os
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from zipfile import ZipFile, ZipInfo

from setnet.addresses import is_address, is_external, read_address, to_address
from setnet.errors import SetNetError
from setnet.library import Library, LibraryPhoto
from setnet.library.paths import display_path, is_below, resolve_path
from setnet.web.problems import Problem

_CHUNK = 1 << 18
_LARGEST_FETCHED = 512 << 20
_KINDS = ("avif", "bmp", "gif", "heic", "heif", "jpeg", "png", "tiff", "webp")
_VIDEO_KINDS = {
    "mp4": "mp4",
    "m4v": "mp4",
    "mov": "quicktime",
    "webm": "webm",
    "mkv": "x-matroska",
    "ogv": "ogg",
    "3gp": "3gpp",
    "avi": "x-msvideo",
}
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_OTHER_SUFFIXES = {"jpe": "jpeg", "jpg": "jpeg", "tif": "tiff"}
_OLDEST_YEAR = 1980  # a zip file knows no year before


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """An open file and its size."""

    file: FileIO
    size: int

    def chunks(self, first: int = 0, last: int | None = None) -> Iterator[bytes]:
        """Yield the file, or its bytes from `first` to `last`, piece by piece and close it."""
        with self.file as file:
            file.seek(first)
            # A file that grows meanwhile must not outgrow its announced length.
            left = (self.size if last is None else last + 1) - first
            while left > 0 and (piece := file.read(min(_CHUNK, left))):
                left -= len(piece)
                yield piece


def real_path(library: Library, photo: LibraryPhoto) -> str:
    """Return where the photo really is; refuse what links lead out of the indexed folders."""
    return _real_path_below(photo.path, library.folders)


def _real_path_below(path: str | Path, folders: Iterable[Path]) -> str:
    if is_external(path):
        raise Problem(404, "no file of this photo is here: another program sent its faces")
    if is_address(path):
        if any(is_below(resolve_path(path), resolve_path(folder)) for folder in folders):
            return to_address(path)
        raise Problem(403, "this photo lies outside the indexed folders now: it is not served")
    real = os.path.realpath(path)
    for folder in folders:
        root = os.path.realpath(folder)
        if real == root or real.startswith(root.rstrip(os.sep) + os.sep):
            return real
    raise Problem(403, "this photo lies outside the indexed folders now: it is not served")


def open_inside(library: Library, photo: LibraryPhoto) -> OpenedFile:
    """Open a photo's file."""
    return open_below(photo.path, library.folders)


def open_below(photo: str | Path, folders: Iterable[Path]) -> OpenedFile:
    """Open a photo's file, which must really lie below one of the folders."""
    path = _real_path_below(photo, folders)
    if is_address(path):
        return _fetch(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise Problem(404, "the photo's file is gone: index again to notice where it went") from None
    except OSError as error:
        raise Problem(403, f"the photo's file cannot be opened: {error.strerror}") from None
    try:
        info = os.fstat(descriptor)
        if not stat.S_ISREG(info.st_mode):
            raise Problem(403, "the photo's place is taken by something that is no file")
        # A folder on the way may have become a link since it was checked: compare with what was opened.
        with suppress(FileNotFoundError):
            if os.readlink(f"/proc/self/fd/{descriptor}") != path:
                raise Problem(403, "the photo's file was moved while it was opened")
    except BaseException:
        os.close(descriptor)
        raise
    # An object and not a bare number: it is closed too when a client goes before the first piece.
    return OpenedFile(FileIO(descriptor), info.st_size)


def _fetch(address: str) -> OpenedFile:
    """Return what is at an address as an open file that is in memory alone."""
    try:
        _, data = read_address(address, _LARGEST_FETCHED)
    except SetNetError as error:
        raise Problem(404, f"the photo {error}") from None
    if len(data) > _LARGEST_FETCHED:
        raise Problem(
            404, f"larger than {_LARGEST_FETCHED >> 20} MB, and not on this machine: it is not fetched"
        )
    file = FileIO(os.memfd_create("photo"), "r+")
    file.write(data)
    file.seek(0)
    return OpenedFile(file, len(data))


def media_type(path: Path) -> str:
    """Return the media type of a photo; never one that a browser would run."""
    suffix = path.suffix.lower().removeprefix(".")
    kind = _OTHER_SUFFIXES.get(suffix, suffix)
    if suffix in _VIDEO_KINDS:
        return f"video/{_VIDEO_KINDS[suffix]}"
    return f"image/{kind}" if kind in _KINDS else "application/octet-stream"


def byte_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the first and last byte that a Range header asks for; None for all of the file.

    Several ranges at once are answered by the whole file, as the standard allows.

    >>> byte_range("bytes=10-19", 100), byte_range("bytes=90-", 100), byte_range("bytes=-5", 100)
    ((10, 19), (90, 99), (95, 99))
    """
    parts = _RANGE.fullmatch(header or "")
    if parts is None or not (parts[1] or parts[2]):
        return None
    if not parts[1]:
        first, last = max(0, size - int(parts[2])), size - 1
    else:
        first, last = int(parts[1]), min(int(parts[2] or size), size - 1)
        if parts[2] and int(parts[2]) < first:
            return None
    if first > last:
        raise Problem(416, f"the file has {size} bytes")
    return first, last


class _Outbox(io.RawIOBase):
    """Holds what was written until it is taken; a zip file that cannot seek needs no more."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object) -> int:
        piece = bytes(data)  # type: ignore[call-overload]
        self._pieces.append(piece)
        return len(piece)

    def take(self) -> bytes:
        data = b"".join(self._pieces)
        self._pieces.clear()
        return data


class PhotoArchive:
    """The files of photos; a video with several shots among them comes once."""

    def __init__(self, photos: Sequence[LibraryPhoto], folders: Sequence[Path]) -> None:
        self.photos = list({photo.path: photo for photo in photos}.values())
        self._folders = folders

    def chunks(self) -> Iterator[bytes]:
        """Yield the zip file piece by piece; no more than a piece of a photo is held in memory."""
        outbox, names, missing = _Outbox(), set[str](), list[str]()
        with ZipFile(outbox, "w") as archive:  # photos are compressed already: stored as they are
            for photo in self.photos:
                try:
                    opened = open_below(photo.path, self._folders)
                except Problem as error:
                    missing.append(f"{display_path(photo.path)}: {error.detail}")
                    continue
                with archive.open(_zip_entry(photo, names), "w", force_zip64=opened.size >= 1 << 31) as entry:
                    for piece in opened.chunks():
                        entry.write(piece)
                        yield outbox.take()
            if missing:
                archive.writestr("not included.txt", "\n".join(missing) + "\n")
        yield outbox.take()


def _zip_entry(photo: LibraryPhoto, names: set[str]) -> ZipInfo:
    """Return the head of a file in the archive, with a name that no other has."""
    whole = Path(display_path(photo.path.name))
    name, number = whole.name, 1
    while name in names:
        number += 1
        name = f"{whole.stem} ({number}){whole.suffix}"
    names.add(name)
    entry = ZipInfo(name)
    if photo.taken is not None and photo.taken.year >= _OLDEST_YEAR:
        entry.date_time = photo.taken.timetuple()[:6]
    return entry
