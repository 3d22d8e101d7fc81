"""Sprites of shots, made when a video is indexed or when one is asked for, and cached inside the library."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from setnet.errors import InvalidInputError
from setnet.library.pictures.thumbnails import keep, kept
from setnet.library.store.photo_catalog import PhotoCatalog
from setnet.library.store.records import LibraryPhoto

SPRITE = "sprite"
DrawSprite = Callable[[LibraryPhoto], bytes]


def drawn_sprite(photo: LibraryPhoto) -> bytes:
    """Return the sprite of a shot, from its video."""
    from setnet.video import frames_at, sprite_of, sprite_times

    times = sprite_times(photo.start or 0.0, photo.stop or 0.0)
    return sprite_of(frames_at(os.fsdecode(photo.path), times))


def kept_sprite(folder: Path, catalog: PhotoCatalog, photo_id: str, draw: DrawSprite) -> bytes:
    """Return the sprite of a shot: from the cache in `folder`, else made by `draw` and cached.

    That of a shot just indexed is in the cache; a restored library or a full disk have none.
    """
    photo = catalog.photo(photo_id)
    if photo.start is None:
        raise InvalidInputError(f"photo {photo_id} is no shot of a video")
    return kept(folder, catalog, photo, SPRITE, lambda: draw(photo))


def keep_sprite(folder: Path, photo_id: int, content: bytes, sprite: bytes) -> None:
    """Put the sprite of a shot into the cache."""
    keep(folder, str(photo_id), content.hex(), SPRITE, sprite)
