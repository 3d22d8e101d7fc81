"""Files and folders of this machine that clients may see, symbolic links resolved.

Photos are opened only inside the indexed folders, one by one or as a zip file that is made while it is sent.
Folders to choose from are listed below the home folder and mounted disks, nowhere else.
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
from typing import Annotated
from zipfile import ZipFile, ZipInfo

from pydantic import Field

from setnet.addresses import is_address, read_address, to_address
from setnet.client import Answer
from setnet.errors import SetNetError
from setnet.library import Library, LibraryPhoto
from setnet.library.folder_scan import is_photo_name
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
_DISKS = ("/media", "/mnt", "/run/media", "/Volumes")
_MOST_FOLDERS = 500
_MOST_ENTRIES = 20_000  # a folder with more is not counted to its end


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


class Folder(Answer):
    """A folder of the server's machine."""

    path: str
    name: str


class Folders(Answer):
    """The folders in a folder, and how many photos lie in it directly."""

    path: Annotated[str | None, Field(description="Null in the list of places to begin")]
    parent: str | None
    folders: list[Folder]
    photos: int
    has_more: Annotated[bool, Field(description="Not all of it is listed or counted")]


def default_roots() -> list[Path]:
    """Return the home folder and the folders where disks are mounted, as far as they are there."""
    return [place for place in (Path.home(), *map(Path, _DISKS)) if place.is_dir()]


def _folders(
    path: str | None, parent: str | None, folders: Sequence[str], photos: int, has_more: bool
) -> Folders:
    named = [Folder(path=place, name=os.path.basename(place) or place) for place in folders]
    return Folders(path=path, parent=parent, folders=named, photos=photos, has_more=has_more)


class FolderBrowser:
    """Lists folders below some roots; links are resolved first, so that none leads out of them."""

    def __init__(self, roots: Sequence[Path] | None = None) -> None:
        self._roots = [os.path.realpath(root) for root in (default_roots() if roots is None else roots)]

    def listing(self, path: str | None) -> Folders:
        """Return the folders in a folder, or the roots."""
        if path is None:
            return _folders(None, None, self._roots, 0, False)
        real = self._inside(path)
        folders: list[str] = []
        photos, seen = 0, 0
        try:
            with os.scandir(real) as entries:
                for seen, entry in enumerate(entries, 1):
                    if seen > _MOST_ENTRIES:
                        break
                    if self._is_folder(entry):
                        folders.append(entry.path)
                    elif is_photo_name(os.fsencode(entry.name)):
                        photos += 1
        except NotADirectoryError:
            raise Problem(404, "this is no folder") from None
        except FileNotFoundError:
            raise Problem(404, "this folder is not there any more") from None
        except OSError as error:
            raise Problem(403, f"this folder cannot be opened: {error.strerror}") from None
        folders.sort(key=lambda folder: os.path.basename(folder).casefold())
        return _folders(
            real,
            None if real in self._roots else os.path.dirname(real),
            folders[:_MOST_FOLDERS],
            photos,
            seen > _MOST_ENTRIES or len(folders) > _MOST_FOLDERS,
        )

    def _inside(self, path: str) -> str:
        try:
            real = os.path.realpath(path) if os.path.isabs(path) else ""
        except (OSError, ValueError):  # a null character, or a name that no file can have
            real = ""
        if not any(is_below(os.fsencode(real), os.fsencode(root)) for root in self._roots):
            roots = ", ".join(self._roots)
            raise Problem(403, f"only folders below {roots} are listed: type the path of another one")
        return real

    def _is_folder(self, entry: os.DirEntry[str]) -> bool:
        """Tell whether an entry is a folder to show: not hidden, with a name that JSON can hold, inside."""
        if entry.name.startswith(".") or not entry.name.isprintable():
            return False
        with suppress(OSError, Problem):
            return entry.is_dir() and bool(not entry.is_symlink() or self._inside(entry.path))
        return False
