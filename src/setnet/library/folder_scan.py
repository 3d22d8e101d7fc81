"""Walks folders and lists the photo files in them.

Patterns leave files and folders out. A folder that seems to be on an unplugged disk is told from one whose
photos are gone.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fnmatch import translate

from setnet.addresses import file_at, files_below, is_address
from setnet.errors import InvalidInputError, SetNetError
from setnet.faces.photo import format_by_beginning
from setnet.faces.raw import RAW_FORMATS
from setnet.library.paths import is_below

_LONGEST_PATTERN = 1000


class Exclusion:
    """Tells which files and folders are left out, by patterns with `*`, `?` and `[...]`.

    A pattern without a slash is compared with names, one with a slash with the end of paths, and one that
    begins with a slash with whole paths. What lies in a folder that is left out is left out with it.

    >>> leaves_out = Exclusion(["private", "*.tmp.jpg", "2019/raw"])
    >>> leaves_out(b"/p/private"), leaves_out(b"/p/2019/raw"), leaves_out(b"/p/2020/raw")
    (True, True, False)
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        parts = [translate(pattern if pattern[0] == "/" else f"*/{pattern}") for pattern in patterns]
        self._pattern = re.compile("|".join(parts)) if parts else None

    def __call__(self, path: bytes) -> bool:
        """Return whether an absolute path is left out."""
        return self._pattern is not None and self._pattern.match(os.fsdecode(path)) is not None


def check_patterns(patterns: Sequence[str]) -> list[str]:
    """Return patterns without a slash at the end; empty ones are dropped, what cannot be one is an error.

    >>> check_patterns(["private/", ""])
    ['private']
    """
    found = []
    for pattern in patterns:
        if len(pattern) > _LONGEST_PATTERN or "\0" in pattern:
            raise InvalidInputError(
                f"a pattern to exclude has at most {_LONGEST_PATTERN} characters, and no null character"
            )
        if clean := pattern.strip().rstrip("/"):
            found.append(clean)
    return found


def _suffixes(formats: str) -> frozenset[bytes]:
    return frozenset(f".{name}".encode() for name in formats.split())


_RAW = _suffixes(RAW_FORMATS)
_PHOTOS = _suffixes("jpg jpeg jpe jfif png webp tif tiff bmp gif heic heif hif avif") | _RAW
_VIDEOS = _suffixes("mp4 m4v mov mkv webm avi 3gp 3g2 mpg mpeg mts m2ts ts wmv asf flv ogv")
# Folders that programs fill with copies of the photos beside them.
_SKIPPED_FOLDERS = frozenset((b"@eaDir", b"#recycle", b"$RECYCLE.BIN", b"__MACOSX", b"lost+found"))


def is_photo_name(name: bytes) -> bool:
    """Tell whether a file name is a photo's: known suffix, not hidden (so no `._IMG.jpg` sidecars)."""
    return not name.startswith(b".") and os.path.splitext(name)[1].lower() in _PHOTOS


def is_raw_name(name: bytes) -> bool:
    """Tell whether a file name is that of a raw file of a camera."""
    return os.path.splitext(name)[1].lower() in _RAW


def is_video_name(name: bytes) -> bool:
    """Tell whether a file name is a video's, as `is_photo_name` does for photos."""
    return not name.startswith(b".") and os.path.splitext(name)[1].lower() in _VIDEOS


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A photo file on disk as a scan saw it."""

    path: bytes
    size: int
    mtime_ns: int


@dataclass
class FolderScan:
    """One walk over folders; iterate `files()`, and read `unreadable` and `skipped` afterwards.

    Parameters
    ----------
    roots
        Absolute folders (or single photo files), or addresses of them.
    left_out
        Absolute folders that are left out, such as the library's own.
    is_excluded
        Tells which other files and folders are left out, by absolute path.
    videos
        Whether videos are listed too, but those that are part of a live photo: one item with its photo.
    """

    roots: Sequence[bytes]
    left_out: Collection[bytes] = ()
    is_excluded: Callable[[bytes], bool] = field(default_factory=Exclusion)
    videos: bool = False
    # folders and files that could not be read, and those that look like photos and are none of the files;
    # each with the reason
    unreadable: list[tuple[bytes, str]] = field(default_factory=list)
    skipped: list[tuple[bytes, str]] = field(default_factory=list)
    _seen: set[tuple[int, int]] = field(default_factory=set)

    def files(self) -> Iterator[FoundFile]:
        """Yield each photo once, folder by folder in the order of names.

        Symbolic links to folders are followed after all real folders, and a folder that was seen is
        not entered again: a loop ends, and a photo keeps its real path where it has one.
        """
        links: list[bytes] = []
        for root in self.roots:
            if is_address(root):
                yield from self._files_at_address(os.fsdecode(root))
            elif os.path.isfile(root):
                yield from self._single(root)
            else:
                yield from self._walk(root, links)
        while links:
            yield from self._walk(links.pop(0), links)

    def _is_wanted(self, name: bytes) -> bool:
        return is_photo_name(name) or (self.videos and is_video_name(name))

    def _files_at_address(self, root: str) -> Iterator[FoundFile]:
        """Yield the photos and videos at an address."""

        def is_listed(address: str) -> bool:
            path = os.fsencode(address)
            return self._is_wanted(os.path.basename(path)) and not self.is_excluded(path)

        def is_entered(address: str) -> bool:
            path = os.fsencode(address)
            name = os.path.basename(path)
            return not (name.startswith(b".") or name in _SKIPPED_FOLDERS or self.is_excluded(path))

        def unreadable(address: str, reason: str) -> None:
            self.unreadable.append((os.fsencode(address), reason))

        try:
            is_file = self._is_wanted(os.path.basename(os.fsencode(root)))
            files = [file_at(root)] if is_file else files_below(root, is_listed, is_entered, unreadable)
            for file in files:
                yield FoundFile(os.fsencode(file.address), file.size, file.stamp)
        except SetNetError as error:
            unreadable(root, str(error))

    def _single(self, path: bytes) -> Iterator[FoundFile]:
        try:
            info = os.stat(path)
        except OSError as error:
            self.unreadable.append((path, error.strerror or str(error)))
            return
        yield FoundFile(path, info.st_size, info.st_mtime_ns)

    def _walk(self, top: bytes, links: list[bytes]) -> Iterator[FoundFile]:
        pending = [top]
        while pending:
            folder = pending.pop()
            if folder in self.left_out or not self._enter(folder):
                continue
            try:
                entries = sorted(os.scandir(folder), key=lambda e: e.name)
            except OSError as error:
                self.unreadable.append((folder, error.strerror or str(error)))
                continue
            inner: list[bytes] = []
            stems = {os.path.splitext(e.name)[0] for e in entries if is_photo_name(e.name)}
            for entry in entries:
                if self._is_live(entry, stems):
                    continue
                yield from self._visit(entry, inner, links)
            pending.extend(reversed(inner))

    def _is_live(self, entry: os.DirEntry[bytes], stems: Collection[bytes]) -> bool:
        from setnet.video.boxes import is_live_video

        stem, suffix = os.path.splitext(entry.name)
        return self.videos and suffix.lower() == b".mov" and stem in stems and is_live_video(entry.path)

    def _enter(self, folder: bytes) -> bool:
        try:
            info = os.stat(folder)
        except OSError as error:
            self.unreadable.append((folder, error.strerror or str(error)))
            return False
        key = (info.st_dev, info.st_ino)
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _visit(
        self, entry: os.DirEntry[bytes], inner: list[bytes], links: list[bytes]
    ) -> Iterator[FoundFile]:
        if self.is_excluded(entry.path):
            return
        try:
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith(b".") and entry.name not in _SKIPPED_FOLDERS:
                    inner.append(entry.path)
                return
            if not self._is_wanted(entry.name):
                if entry.is_symlink() and not entry.name.startswith(b".") and entry.is_dir():
                    links.append(entry.path)
                elif is_unnamed_photo(entry):
                    self.skipped.append((entry.path, _NO_SUFFIX))
                return
            info = entry.stat()
            if stat.S_ISREG(info.st_mode):
                yield FoundFile(entry.path, info.st_size, info.st_mtime_ns)
            elif stat.S_ISDIR(info.st_mode):
                links.append(entry.path)
        except OSError as error:
            is_dangling = isinstance(error, FileNotFoundError) and entry.is_symlink()
            problem = (entry.path, "a link to a file that is gone" if is_dangling else str(error.strerror))
            (self.skipped if is_dangling else self.unreadable).append(problem)


_NO_SUFFIX = "its name has no suffix such as .jpg, by which setnet knows photos: rename it"


def is_unnamed_photo(entry: os.DirEntry[bytes]) -> bool:
    """Return whether a file whose name has no suffix begins as photos do."""
    if b"." in entry.name or not entry.is_file():
        return False
    with open(entry.path, "rb") as file:
        return format_by_beginning(file.read(12)) is not None


_REMEDY = "its photos stay in the library until it is back, or until you `setnet forget` it"


_MAX_SHARE = 10


def is_few(gone: int, known: int) -> bool:
    """Return whether so few photos are gone that they may be removed without a question.

    If more than a tenth is gone, a disk may be away.

    >>> is_few(10, 100), is_few(11, 100)
    (True, False)
    """
    return gone * _MAX_SHARE <= known


def missing_roots(
    roots: Sequence[bytes], folders: Collection[bytes], known: Collection[bytes]
) -> list[tuple[bytes, str]]:
    """Return the roots of a run that are not there, or empty like an unused mount point, and what to do.

    `folders` and `known` are the library's folders and photos. A single photo that is gone was deleted; a
    folder inside the library's, or one in which there never was a photo, may be empty.
    """
    found = []
    for root in roots:
        if is_address(root):  # the scan says what is wrong with it
            continue
        if not os.path.exists(root):
            if root not in known:
                found.append((root, f"is not there (is its disk plugged in?): {_REMEDY}"))
        elif root in folders and _is_empty(root) and any(is_below(path, root) for path in known):
            found.append((root, f"is empty (is its disk plugged in?): {_REMEDY}"))
    return found


def _is_empty(folder: bytes) -> bool:
    with suppress(OSError), os.scandir(folder) as entries:
        return next(entries, None) is None
    return False
