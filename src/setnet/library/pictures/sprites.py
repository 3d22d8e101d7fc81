"""Sprites: a few pictures of a shot beside each other in one file, which a page shows one after the other."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library.pictures.small_pictures import jpeg
from setnet.library.pictures.thumbnails import kept
from setnet.library.store.photo_catalog import PhotoCatalog
from setnet.library.store.records import LibraryPhoto

PICTURES = 6
_HEIGHT = 120

DrawSprite = Callable[[LibraryPhoto], bytes]


def sprite_times(photo: LibraryPhoto) -> list[float]:
    """Return the seconds of a video that the sprite of a shot shows."""
    start, stop = photo.start or 0.0, photo.stop or 0.0
    return [start + (stop - start) * (n + 0.5) / PICTURES for n in range(PICTURES)]


def sprite_of(frames: Sequence[NDArray[np.uint8]]) -> bytes:
    """Return pictures of the same size beside each other, as a JPEG."""
    from PIL import Image

    rows, columns = frames[0].shape[:2]
    width = max(1, round(_HEIGHT * columns / rows))
    sheet = Image.new("RGB", (width * len(frames), _HEIGHT))
    for number, frame in enumerate(frames):
        sheet.paste(Image.fromarray(frame).resize((width, _HEIGHT)), (number * width, 0))
    return jpeg(sheet, 70)


def drawn_sprite(photo: LibraryPhoto) -> bytes:
    """Return the sprite of a shot, from its video."""
    from setnet.video import frames_at

    return sprite_of(frames_at(os.fsdecode(photo.path), sprite_times(photo)))


def kept_sprite(folder: Path, catalog: PhotoCatalog, photo_id: str, draw: DrawSprite) -> bytes:
    """Return the sprite of a shot: from the cache in `folder`, else made by `draw` and cached."""
    photo = catalog.photo(photo_id)
    if photo.start is None:
        raise InvalidInputError(f"photo {photo_id} is no shot of a video")
    return kept(folder, catalog, photo, "sprite", lambda: draw(photo))
