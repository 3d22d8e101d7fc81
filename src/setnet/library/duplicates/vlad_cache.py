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
from setnet.errors import StorageError
from setnet.library.duplicates.dense_sift import Floats
from setnet.library.duplicates.described_photo import DescribedPhoto
from setnet.library.duplicates.vocabulary import SHIPPED, VLAD_DIM
from setnet.library.store.database import make_private

_TABLE = (
    "CREATE TABLE vlads (hash BLOB PRIMARY KEY, pixels INTEGER NOT NULL, vlads BLOB NOT NULL) WITHOUT ROWID"
)
_REFUSED = OSError, sqlite3.Error, StorageError  # a disk that is full, failing or another user's

_Rows = dict[bytes, tuple[int, Floats]]


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
        self.known: _Rows = {}
        self._db: sqlite3.Connection | None = None
        with suppress(*_REFUSED):
            self._db, rows = _opened(path)
            with transaction(self._db):
                others = rows.keys() - set(wanted)
                self._db.executemany("DELETE FROM vlads WHERE hash = ?", ((key,) for key in others))
            self.known = {key: row for key, row in rows.items() if key not in others}

    def store(self, photos: Iterable[DescribedPhoto]) -> None:
        """Keep the VLADs of photos; a disk that refuses costs time later, and nothing now."""
        rows = [(photo.hash, photo.pixels, photo.vlads.astype("<f4").tobytes()) for photo in photos]
        if self._db is not None:
            with suppress(*_REFUSED), transaction(self._db):
                self._db.executemany("INSERT OR REPLACE INTO vlads VALUES (?, ?, ?)", rows)

    def close(self) -> None:
        """Close the file."""
        if self._db is not None:
            self._db.close()
            self._db = None


def _opened(path: Path) -> tuple[sqlite3.Connection, _Rows]:
    """Return the database and its rows; one that is damaged, or of another vocabulary, is made anew."""
    shipped = zlib.crc32(files(__package__).joinpath(SHIPPED).read_bytes()) >> 1  # fits a signed number
    for _ in range(2):
        make_private(path)
        db = sqlite3.connect(path, isolation_level=None, timeout=1.0)
        try:
            if db.execute("PRAGMA user_version").fetchone()[0] != shipped:
                with transaction(db):
                    db.execute("DROP TABLE IF EXISTS vlads")
                    db.execute(_TABLE)
                    db.execute(f"PRAGMA user_version = {shipped}")
            return db, _rows(db)
        except sqlite3.DatabaseError as error:
            db.close()
            if isinstance(error, sqlite3.OperationalError):  # locked, read-only, full: it may be sound
                raise
            path.unlink()
    raise sqlite3.DatabaseError(f"{path} cannot be made")


def _rows(db: sqlite3.Connection) -> _Rows:
    """Return the rows that make sense."""
    found: _Rows = {}
    for key, pixels, data in db.execute("SELECT hash, pixels, vlads FROM vlads"):
        if isinstance(data, bytes) and len(data) == 8 * VLAD_DIM and isinstance(pixels, int):
            vlads = np.frombuffer(data, "<f4").reshape(2, VLAD_DIM)
            if np.isfinite(vlads).all():
                found[key] = pixels, vlads
    return found
