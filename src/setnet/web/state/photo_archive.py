"""Several photos as one zip file that is made while it is sent."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from zipfile import ZipFile, ZipInfo

from setnet.library import LibraryPhoto, display_path
from setnet.web.server.problems import Problem
from setnet.web.state.photo_files import open_below

_OLDEST = 1980  # a zip file knows no year before


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

    def taken(self) -> bytes:
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
                with archive.open(_entry(photo, names), "w", force_zip64=opened.size >= 1 << 31) as entry:
                    for piece in opened.chunks():
                        entry.write(piece)
                        yield outbox.taken()
            if missing:
                archive.writestr("not included.txt", "\n".join(missing) + "\n")
        yield outbox.taken()


def _entry(photo: LibraryPhoto, names: set[str]) -> ZipInfo:
    """Return the head of a file in the archive, with a name that no other has."""
    whole = Path(display_path(photo.path.name))
    name, number = whole.name, 1
    while name in names:
        number += 1
        name = f"{whole.stem} ({number}){whole.suffix}"
    names.add(name)
    entry = ZipInfo(name)
    if photo.taken is not None and photo.taken.year >= _OLDEST:
        entry.date_time = photo.taken.timetuple()[:6]
    return entry
