"""The photos of a library, with their pictures, descriptors and the ids that other programs know them by."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from setnet.durable import own_errors
from setnet.errors import InvalidInputError, StorageError
from setnet.library.examples import face_at
from setnet.library.paths import THUMBNAILS
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.photos import LibraryPhoto

if TYPE_CHECKING:
    from setnet.library.library import Library
    from setnet.library.pictures import Draw, DrawFace, DrawSprite

LONGEST_EXTERNAL_ID = 200


class Photos(PhotoCatalog):
    """The photos of a library by id: what is stored about them, and what needs the index or picture files."""

    def __init__(self, library: Library) -> None:
        super().__init__(library.database)
        self.path = library.path
        self._library = library
        self._pictures = library.path / THUMBNAILS

    @own_errors
    def face_at(self, text: str) -> tuple[str, int]:
        """Return the photo's id and the number, from 0, of a face such as `group.jpg#3`."""
        return face_at(text, self)

    @own_errors
    def descriptors(self, photo_id: str) -> NDArray[np.float32]:
        """Return the (faces, dim) descriptors of a photo, in the order of its faces."""
        return self._library.set_index.elements(photo_id)

    @own_errors
    def thumbnail(self, photo_id: str, side: int = 320, draw: Draw | None = None) -> bytes:
        """Return a photo as an upright JPEG that fits a square, made once (by `draw`) and then kept."""
        from setnet.library.pictures import draw_thumbnail, thumbnail_of

        return thumbnail_of(self._pictures, self, photo_id, side, draw or draw_thumbnail)

    @own_errors
    def face_thumbnail(
        self, photo_id: str, face: int, side: int = 160, draw: DrawFace | None = None
    ) -> bytes:
        """Return a face of a photo as a square JPEG, made once (by `draw`) and then kept."""
        from setnet.library.pictures import draw_face_thumbnail, face_thumbnail_of

        return face_thumbnail_of(self._pictures, self, photo_id, face, side, draw or draw_face_thumbnail)

    @own_errors
    def sprite(self, photo_id: str, draw: DrawSprite | None = None) -> bytes:
        """Return a few pictures of a shot beside each other as a JPEG, made once (by `draw`), then kept."""
        from setnet.library.pictures import cached_sprite, draw_sprite

        return cached_sprite(self._pictures, self, photo_id, draw or draw_sprite)

    @own_errors
    def set_external_id(self, photo_id: str, external_id: str | None) -> LibraryPhoto:
        """Let another program know a photo by an id of its own; None takes it away.

        The id stays with the photo when its file is moved or changed, and goes with it.
        """
        if external_id is not None and not (
            1 <= len(external_id) <= LONGEST_EXTERNAL_ID and external_id.isprintable()
        ):
            raise InvalidInputError(
                f"an external id has 1 to {LONGEST_EXTERNAL_ID} printable characters, not {external_id!r:.80}"
            )
        self.get(photo_id)
        try:
            with self._database.writing() as db:
                db.execute(
                    "INSERT INTO photo_facts (id, external) VALUES (?, ?) "
                    "ON CONFLICT (id) DO UPDATE SET external = excluded.external",
                    (int(photo_id), external_id),
                )
        except StorageError as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError):
                other = self.with_external_id(external_id or "")
                raise InvalidInputError(
                    f"the external id {external_id!r} is that of photo {other.id if other else 'another'}"
                ) from None
            raise
        return self.get(photo_id)

    @own_errors
    def with_external_id(self, external_id: str) -> LibraryPhoto | None:
        """Return the photo that another program knows by this id, or None."""
        with self._database.reading() as db:
            row = db.execute("SELECT id FROM photo_facts WHERE external = ?", (external_id,)).fetchone()
        return None if row is None else self.get_many([str(row[0])]).get(str(row[0]))
