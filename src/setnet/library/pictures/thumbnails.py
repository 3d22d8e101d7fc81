"""Thumbnails of photos, cached inside the library."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.errors import InvalidInputError
from setnet.library.maintenance.permissions import make_folder, write_private
from setnet.library.pictures.small_pictures import face_picture, jpeg, thumbnail
from setnet.library.store.photo_catalog import PhotoCatalog
from setnet.library.store.records import LibraryPhoto

if TYPE_CHECKING:
    from setnet.faces import Photo

_SIDES = range(16, 4097)

Draw = Callable[[LibraryPhoto, int], bytes]
DrawFace = Callable[[LibraryPhoto, int, int], bytes]


def drawn(photo: LibraryPhoto, side: int) -> bytes:
    """Return a photo's JPEG that fits a square of `side` pixels."""
    return jpeg(thumbnail(opened_picture(photo).pixels, side))


def drawn_face(photo: LibraryPhoto, face: int, side: int) -> bytes:
    """Return a square JPEG of a face of a photo."""
    opened = opened_picture(photo, face)
    return face_picture(opened.pixels, opened.in_pixels(photo.faces[face].box), side)


def opened_picture(photo: LibraryPhoto, face: int | None = None) -> Photo:
    """Return a photo, opened; of a shot its best picture, or the best one of a face in it."""
    from setnet.faces import Photo, open_photo

    if photo.start is None:
        return open_photo(photo.path)
    from setnet.video import frames_at

    at = photo.best if face is None else photo.faces[face].at
    (pixels,) = frames_at(os.fsdecode(photo.path), [photo.start if at is None else at])
    return Photo(pixels, None, pixels.shape[1], pixels.shape[0], "video")


def thumbnail_of(folder: Path, catalog: PhotoCatalog, photo_id: str, side: int, draw: Draw) -> bytes:
    """Return a photo's thumbnail: from the cache in `folder`, else made by `draw` and cached."""
    if side not in _SIDES:
        raise InvalidInputError(f"a thumbnail has {_SIDES.start} to {_SIDES.stop - 1} pixels, not {side}")
    photo = catalog.photo(photo_id)
    return kept(folder, catalog, photo, str(side), lambda: draw(photo, side))


def face_thumbnail_of(
    folder: Path, catalog: PhotoCatalog, photo_id: str, face: int, side: int, draw: DrawFace
) -> bytes:
    """Return the picture of a face of a photo: from the cache in `folder`, else made by `draw` and cached."""
    if side not in _SIDES:
        raise InvalidInputError(f"a picture has {_SIDES.start} to {_SIDES.stop - 1} pixels, not {side}")
    photo = catalog.photo(photo_id)
    if not 0 <= face < len(photo.faces):
        raise InvalidInputError(f"photo {photo_id} has {len(photo.faces)} faces, none with number {face}")
    return kept(folder, catalog, photo, f"face{face}-{side}", lambda: draw(photo, face, side))


def kept(
    folder: Path, catalog: PhotoCatalog, photo: LibraryPhoto, name: str, draw: Callable[[], bytes]
) -> bytes:
    """Return a picture of a photo from the cache, else made by `draw` and cached under a name."""
    try:
        return _file(folder, photo.id, photo.content, name).read_bytes()
    except OSError:
        pass
    data = draw()
    keep(folder, photo.id, photo.content, name, data)
    if photo.id not in catalog.photos([photo.id]):  # forgotten meanwhile, with the thumbnails it had
        with suppress(OSError):
            _file(folder, photo.id, photo.content, name).unlink(missing_ok=True)
    return data


def keep(folder: Path, photo_id: str, content: str, name: str, data: bytes) -> None:
    """Put a picture of a photo into the cache under a name, as whole as the disk allows."""
    file = _file(folder, photo_id, content, name)
    try:
        make_folder(folder, folder.parent)  # not its parents: a deleted library must not come back
        make_folder(file.parent, folder.parent)
        part = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}.part")
        write_private(part, data, folder.parent)
        os.replace(part, file)
    except OSError:  # a full disk costs time later, not the picture now
        pass


def _file(folder: Path, photo_id: str, content: str, name: str) -> Path:
    return folder / f"{int(photo_id) % 256:02x}" / f"{photo_id}-{content}-{name}.jpg"


def delete_stale(folder: Path, catalog: PhotoCatalog) -> None:
    """Delete thumbnails of photos that were changed or removed."""
    if folder.is_dir():
        current = set(catalog.contents())
        for file in folder.glob("*/*"):
            if tuple(file.name.split("-")[:2]) not in current:
                file.unlink(missing_ok=True)
