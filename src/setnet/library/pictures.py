"""Small pictures made from photos: faces, thumbnails and sprites, the last two cached inside the library."""

from __future__ import annotations

import io
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.addresses import is_address, local_copy
from setnet.errors import InvalidInputError, PhotoError, StorageError
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.photos import LibraryPhoto

if TYPE_CHECKING:
    from PIL.Image import Image

    from setnet.faces import Box, Photo

SPRITE = "sprite"  # what pictures of a shot beside each other are called
THUMBNAIL_SIDE = 320  # of those that are made while indexing
_FACE_SIDE = 128
_FACE_MARGIN = 0.35


def face_picture(pixels: NDArray[np.uint8], box: Box, side: int = _FACE_SIDE) -> bytes:
    """Return a square JPEG of a face with some room around it."""
    from PIL import Image

    height, width = pixels.shape[:2]
    half = max(box.x1 - box.x0, box.y1 - box.y0) * (0.5 + _FACE_MARGIN)
    half = max(2.0, min(half, width / 2, height / 2))
    x = min(max((box.x0 + box.x1) / 2, half), width - half)
    y = min(max((box.y0 + box.y1) / 2, half), height - half)
    crop = pixels[int(y - half) : int(y + half), int(x - half) : int(x + half)]
    return jpeg(Image.fromarray(np.ascontiguousarray(crop)).resize((side, side), Image.Resampling.LANCZOS))


def thumbnail(pixels: NDArray[np.uint8], side: int) -> Image:
    """Return the photo made small enough for a square of `side` pixels."""
    from PIL import Image

    image = Image.fromarray(pixels)
    image.thumbnail((side, side), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return image


def mean_colour(image: Image) -> int:
    """Return the mean of an image's colours as 0xrrggbb."""
    from PIL import Image

    return int.from_bytes(image.resize((1, 1), Image.Resampling.BOX).tobytes(), "big")


def jpeg(image: Image, quality: int = 85) -> bytes:
    """Return the image as a JPEG without metadata."""
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=quality)
    return buffer.getvalue()


_SIDES = range(16, 4097)

Draw = Callable[[LibraryPhoto], bytes]


def open_picture(photo: LibraryPhoto, face: int | None = None) -> Photo:
    """Return a photo, opened; of a shot its best picture, or the best one of a face in it."""
    from setnet.faces import Photo, open_photo

    if photo.start is None:
        return open_photo(photo.path)
    at = photo.best if face is None else photo.faces[face].at
    (pixels,) = _frames(photo, [photo.start if at is None else at])
    return Photo(pixels, None, pixels.shape[1], pixels.shape[0], "video")


def _frames(photo: LibraryPhoto, times: Sequence[float]) -> list[NDArray[np.uint8]]:
    from setnet.video import frames_at

    path = os.fsdecode(photo.stored_path)
    if not is_address(path):
        return frames_at(path, times)
    try:
        with local_copy(path) as (_, copy):
            return frames_at(f"/dev/fd/{copy}", times)
    except StorageError as error:
        raise PhotoError(f"{path}: {error}") from None


def draw_face(photo: LibraryPhoto, face: int, side: int = _FACE_SIDE) -> bytes:
    """Return a square JPEG of a face of a photo."""
    opened = open_picture(photo, face)
    return face_picture(opened.pixels, opened.in_pixels(photo.faces[face].box), side)


def draw_face_if_there(photo: LibraryPhoto, face: int) -> bytes | None:
    """Return a small JPEG of a face; None where the photo's file cannot be read."""
    with suppress(PhotoError, IndexError):  # gone, or on a disk that is away
        return draw_face(photo, face)
    return None


def check_side(side: int) -> None:
    """Raise for a size that no picture is made in."""
    if side not in _SIDES:
        raise InvalidInputError(f"a picture has {_SIDES.start} to {_SIDES.stop - 1} pixels, not {side}")


def cached_picture(folder: Path, catalog: PhotoCatalog, photo: LibraryPhoto, name: str, draw: Draw) -> bytes:
    """Return a picture of a photo from the cache, else made by `draw` and cached under a name."""
    with suppress(OSError):
        return _picture_file(folder, photo.id, photo.content, name).read_bytes()
    data = draw(photo)
    cache_picture(folder, photo.id, photo.content, name, data)
    if photo.id not in catalog.get_many([photo.id]):  # forgotten meanwhile, with the thumbnails it had
        with suppress(OSError):
            _picture_file(folder, photo.id, photo.content, name).unlink(missing_ok=True)
    return data


def cache_picture(folder: Path, photo_id: str, content: str, name: str, data: bytes) -> None:
    """Put a picture of a photo into the cache under a name, as whole as the disk allows."""
    file = _picture_file(folder, photo_id, content, name)
    with suppress(OSError):  # a full disk costs time later, not the picture now
        for place in (folder, file.parent):  # not the library: one that was deleted must not come back
            with suppress(FileExistsError):
                place.mkdir(mode=0o700)
        part = file.with_suffix(f".{os.getpid()}.{threading.get_ident()}.part")
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as opened:
            opened.write(data)
        os.replace(part, file)


def _picture_file(folder: Path, photo_id: str, content: str, name: str) -> Path:
    return folder / f"{int(photo_id) % 256:02x}" / f"{photo_id}-{content}-{name}.jpg"


def delete_stale(folder: Path, catalog: PhotoCatalog) -> None:
    """Delete thumbnails of photos that were changed or removed."""
    if folder.is_dir():
        current = set(catalog.contents())
        for file in folder.glob("*/*"):
            if tuple(file.name.split("-")[:2]) not in current:
                file.unlink(missing_ok=True)
