"""What a library draws of its photos and shots, and keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from setnet.durable import own_errors
from setnet.library.library_groups import LibraryGroups
from setnet.library.paths import THUMBNAILS

if TYPE_CHECKING:
    from setnet.library.pictures import Draw, DrawFace, DrawSprite


class LibraryPictures(LibraryGroups):
    """The part of `Library` about pictures."""

    @own_errors
    def thumbnail(self, photo_id: str, side: int = 320, draw: Draw | None = None) -> bytes:
        """Return a photo as an upright JPEG that fits a square, made once (by `draw`) and then kept."""
        from setnet.library.pictures import draw_thumbnail, thumbnail_of

        folder = self.path / THUMBNAILS
        return thumbnail_of(folder, self.catalog, photo_id, side, draw or draw_thumbnail)

    @own_errors
    def face_thumbnail(
        self, photo_id: str, face: int, side: int = 160, draw: DrawFace | None = None
    ) -> bytes:
        """Return a face of a photo as a square JPEG, made once (by `draw`) and then kept."""
        from setnet.library.pictures import draw_face_thumbnail, face_thumbnail_of

        folder = self.path / THUMBNAILS
        return face_thumbnail_of(folder, self.catalog, photo_id, face, side, draw or draw_face_thumbnail)

    @own_errors
    def sprite(self, photo_id: str, draw: DrawSprite | None = None) -> bytes:
        """Return a few pictures of a shot beside each other as a JPEG, made once (by `draw`), then kept."""
        from setnet.library.pictures import cached_sprite, draw_sprite

        return cached_sprite(self.path / THUMBNAILS, self.catalog, photo_id, draw or draw_sprite)
