"""What other programs keep in step with a library by: ids of their own, and a feed of changes."""

from __future__ import annotations

import sqlite3

from setnet.durable import own_errors
from setnet.errors import InvalidInputError, StorageError
from setnet.library.library_pictures import LibraryPictures
from setnet.library.photo_catalog import ItemChanges, changes_since
from setnet.library.photos import LibraryPhoto

LONGEST_EXTERNAL_ID = 200


class LibraryItems(LibraryPictures):
    """The part of `Library` about ids of other programs and changes."""

    @own_errors
    def changes(self, since: str | None = None, limit: int = 200) -> ItemChanges:
        """Return which photos and people were added, changed or removed behind a cursor, in order.

        Without `since` everything there is comes as added. The `cursor` of the result leads on, at once where
        there is `more`, and later else.
        """
        with self._database.reading() as db:
            return changes_since(db, since, limit)

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
        self.catalog.photo(photo_id)
        try:
            with self._database.writing() as db:
                db.execute(
                    "INSERT INTO photo_facts (id, external) VALUES (?, ?) "
                    "ON CONFLICT (id) DO UPDATE SET external = excluded.external",
                    (int(photo_id), external_id),
                )
        except StorageError as error:
            if isinstance(error.__cause__, sqlite3.IntegrityError):
                other = self.photo_with_external_id(external_id or "")
                raise InvalidInputError(
                    f"the external id {external_id!r} is that of photo {other.id if other else 'another'}"
                ) from None
            raise
        return self.catalog.photo(photo_id)

    @own_errors
    def photo_with_external_id(self, external_id: str) -> LibraryPhoto | None:
        """Return the photo that another program knows by this id, or None."""
        with self._database.reading() as db:
            row = db.execute("SELECT id FROM photo_facts WHERE external = ?", (external_id,)).fetchone()
        return None if row is None else self.catalog.photos([str(row[0])]).get(str(row[0]))
