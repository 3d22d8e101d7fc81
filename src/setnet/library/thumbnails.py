"""Thumbnails, made once and kept inside the library."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path

from setnet.errors import InvalidInputError
from setnet.library.catalog import Catalog
from setnet.library.pictures import jpeg, thumbnail
from setnet.library.records import LibraryPhoto

__all__ = ["delete_stale", "delete_thumbnails", "thumbnail_of"]

_SIDES = range(16, 4097)


def thumbnail_of(folder: Path, photo: LibraryPhoto, side: int) -> bytes:
    """Return a photo's JPEG that fits a square of `side` pixels, from the folder where it can be."""
    from setnet.faces import open_photo

    if side not in _SIDES:
        raise InvalidInputError(f"a thumbnail has {_SIDES.start} to {_SIDES.stop - 1} pixels, not {side}")
    file = _folder_of(folder, int(photo.id)) / f"{photo.id}-{photo.content}-{side}.jpg"
    try:
        return file.read_bytes()
    except OSError:
        pass
    data = jpeg(thumbnail(open_photo(photo.path).pixels, side))
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}.part")
        part.write_bytes(data)
        os.replace(part, file)
    except OSError:  # a full disk costs time later, not the picture now
        pass
    return data


def delete_thumbnails(folder: Path, ids: Iterable[int]) -> None:
    """Delete all sizes of some photos' thumbnails."""
    for photo_id in ids:
        for file in _folder_of(folder, photo_id).glob(f"{photo_id}-*"):
            file.unlink(missing_ok=True)


def delete_stale(folder: Path, catalog: Catalog) -> None:
    """Delete thumbnails of photos that were changed or removed."""
    if folder.is_dir():
        current = set(catalog.contents())
        for file in folder.glob("*/*"):
            if tuple(file.name.split("-")[:2]) not in current:
                file.unlink(missing_ok=True)


def _folder_of(folder: Path, photo_id: int) -> Path:
    return folder / f"{photo_id % 256:02x}"
