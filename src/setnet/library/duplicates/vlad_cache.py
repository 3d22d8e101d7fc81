"""VLADs of a library's photos, kept by content, so that a second run reads only what is new.

The file can be made again from the photos: where it cannot be read or written, a run takes longer, no more.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Collection, Iterable
from contextlib import suppress
from importlib.resources import files
from pathlib import Path

import numpy as np

from setnet.durable import transaction
from setnet.library.duplicates.dense_sift import Floats
from setnet.library.duplicates.described_photo import DescribedPhoto
from setnet.library.duplicates.vocabulary import SHIPPED, VLAD_DIM
from setnet.library.store.database import make_private

_TABLE = (
    "CREATE TABLE vlads (hash BLOB PRIMARY KEY, pixels INTEGER NOT NULL, vlads BLOB NOT NULL) WITHOUT ROWID"
)


class VladCache:
    """A database of one table; open while a run goes on.

    Parameters
    ----------
    path
        The file; made where there is none.
    wanted
        Hashes of the contents that the library has: rows of others are deleted.
    """

    def __init__(self, path: Path, wanted: Collection[bytes]) -> None:
        self.known: dict[bytes, tuple[int, Floats]] = {}
        self._db: sqlite3.Connection | None = None
        with suppress(OSError, sqlite3.Error):
            self._db = _opened(path)
            self.known = self._read(self._db, set(wanted))

    def _read(self, db: sqlite3.Connection, wanted: set[bytes]) -> dict[bytes, tuple[int, Floats]]:
        rows = {row[0]: row[1:] for row in db.execute("SELECT hash, pixels, vlads FROM vlads")}
        with transaction(db):
            db.executemany("DELETE FROM vlads WHERE hash = ?", ((key,) for key in rows.keys() - wanted))
        read = ((key, pixels, np.frombuffer(data, "<f4")) for key, (pixels, data) in rows.items())
        return {
            key: (pixels, vlads.reshape(2, VLAD_DIM))
            for key, pixels, vlads in read
            if key in wanted and len(vlads) == 2 * VLAD_DIM and np.isfinite(vlads).all()
        }

    def store(self, photos: Iterable[DescribedPhoto]) -> None:
        """Keep the VLADs of photos; a disk that refuses costs time later, and nothing now."""
        rows = [(photo.hash, photo.pixels, photo.vlads.astype("<f4").tobytes()) for photo in photos]
        if self._db is not None:
            with suppress(OSError, sqlite3.Error), transaction(self._db):
                self._db.executemany("INSERT OR REPLACE INTO vlads VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None


def _opened(path: Path) -> sqlite3.Connection:
    """Return the database; one that is damaged, or of another vocabulary, is made anew."""
    shipped = zlib.crc32(files(__package__).joinpath(SHIPPED).read_bytes()) >> 1  # fits a signed number
    for _ in range(2):
        make_private(path)
        db = sqlite3.connect(path, isolation_level=None, timeout=1.0)
        try:
            if db.execute("PRAGMA user_version").fetchone()[0] == shipped:
                return db
            with transaction(db):
                db.execute("DROP TABLE IF EXISTS vlads")
                db.execute(_TABLE)
                db.execute(f"PRAGMA user_version = {shipped}")
            return db
        except sqlite3.DatabaseError as error:
            db.close()
            if isinstance(error, sqlite3.OperationalError):  # locked, read-only, full: it may be sound
                raise
            path.unlink()
    raise sqlite3.DatabaseError(f"{path} cannot be made")
