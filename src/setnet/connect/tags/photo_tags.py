"""Finds the face tags of a photo: in sidecars, in the photo itself, and in Picasa's file of its folder."""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from pathlib import Path
from typing import NamedTuple

from setnet.connect.tags import picasa, safe_xml
from setnet.connect.tags.region_list import RegionList
from setnet.connect.tags.xmp_regions import regions_in_xmp
from setnet.errors import InvalidInputError, PhotoError
from setnet.faces import PhotoHeader, read_header

_KEPT_FOLDERS = 64
_SUFFIXES = (".xmp", ".XMP")

PicasaFile = dict[str, tuple[Path, RegionList]]


class PhotoTags(NamedTuple):
    """The face tags of a photo.

    Attributes
    ----------
    lists
        Each with the file it is in; those of sidecars come first, as they are edited last.
    orientation
        The EXIF orientation of the photo, from 1 to 8.
    problems
        Files that could not be read, or not in full, and why.
    """

    lists: list[tuple[Path, RegionList]]
    orientation: int
    problems: list[tuple[Path, str]]


class TagReader:
    """Reads the face tags of photos, one after the other; files of Picasa's are kept for the next photo."""

    def __init__(self) -> None:
        self._folders: OrderedDict[Path, PicasaFile] = OrderedDict()

    def read(self, photo: Path) -> PhotoTags:
        """Return the face tags of a photo."""
        tags = PhotoTags([], 1, [])
        for sidecar in sidecars_of(photo):
            try:
                data = contents(sidecar, safe_xml.LARGEST)
                lists = [] if data is None else regions_in_xmp(data)
            except InvalidInputError as error:
                tags.problems.append((sidecar, str(error)))
            else:
                tags.lists.extend((sidecar, found) for found in lists)
        header = self._embedded(photo, tags)
        inside = self._picasa(photo.parent, tags).get(photo.name.lower())
        if inside is not None:
            tags.lists.append(inside)
        for file, found in tags.lists:
            tags.problems.extend((file, problem) for problem in found.problems)
        return tags._replace(orientation=header.orientation)

    def _embedded(self, photo: Path, tags: PhotoTags) -> PhotoHeader:
        header = PhotoHeader(None, 1)
        try:
            header = read_header(photo)
            lists = [] if header.xmp is None else regions_in_xmp(header.xmp)
        except (InvalidInputError, PhotoError) as error:
            reason = str(error).removeprefix(f"{os.fsencode(photo).decode('utf-8', 'replace')}: ")
            tags.problems.append((photo, reason))
        else:
            tags.lists.extend((photo, found) for found in lists)
        return header

    def _picasa(self, folder: Path, tags: PhotoTags) -> PicasaFile:
        """Return what Picasa's files in a folder say, by the name of the photo in lower case."""
        known = self._folders.get(folder)
        if known is not None:
            self._folders.move_to_end(folder)
            return known
        found: PicasaFile = {}
        for name in picasa.FILE_NAMES:
            file = folder / name
            try:
                data = contents(file, picasa.LARGEST)
                regions = {} if data is None else picasa.picasa_regions(data)
            except InvalidInputError as error:
                tags.problems.append((file, str(error)))
            else:
                found |= {photo: (file, each) for photo, each in regions.items()}
        self._folders[folder] = found
        if len(self._folders) > _KEPT_FOLDERS:
            self._folders.popitem(last=False)
        return found


def sidecars_of(photo: Path) -> list[Path]:
    """Return what the sidecar of a photo may be called, the least ambiguous name first.

    >>> [path.name for path in sidecars_of(Path("a/b.jpg"))]
    ['b.jpg.xmp', 'b.jpg.XMP', 'b.xmp', 'b.XMP']
    """
    return [photo.with_name(stem + suffix) for stem in (photo.name, photo.stem) for suffix in _SUFFIXES]


def contents(file: Path, largest: int) -> bytes | None:
    """Return the bytes of a file, None where there is none; what is too large or no file is an error."""
    try:
        # without waiting, as a pipe without a writer would block
        with open(file, "rb", opener=lambda p, flags: os.open(p, flags | getattr(os, "O_NONBLOCK", 0))) as f:
            info = os.fstat(f.fileno())
            if not stat.S_ISREG(info.st_mode):
                raise InvalidInputError("is no regular file")
            if info.st_size > largest:
                raise InvalidInputError(f"larger than {largest >> 20} MB: left unread")
            return f.read(largest + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InvalidInputError(f"cannot be read ({error.strerror or error})") from error
