"""Read photos, faces and folders from the library's database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from setnet.errors import InvalidInputError
from setnet.library.store.commit_record import stored_commits
from setnet.library.store.database import Database
from setnet.library.store.paths import as_path, shown
from setnet.library.store.records import FailedPhoto, LibraryPhoto, StoredFace
from setnet.library.store.tables import photo_counts
from setnet.library.store.tables.photo_counts import Counts

_LONGEST_ID = 19  # digits: a number that long may not fit SQLite's integers
_EPOCH = datetime(1970, 1, 1)
_CHUNK = 500  # SQLite's smallest limit of variables in a statement is 999


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as it was last indexed: from this a run decides whether to open it again."""

    id: int
    size: int
    mtime_ns: int
    hash: bytes | None
    state: str


def taken_number(taken: datetime | None) -> float | None:
    """Return a photo's time as a number: cameras write local time without a zone, so none is applied."""
    return None if taken is None else taken.replace(tzinfo=UTC).timestamp()


def taken_time(number: float | None) -> datetime | None:
    """Return the local time of a stored number."""
    return None if number is None else _EPOCH + timedelta(seconds=number)


class PhotoCatalog:
    """The stored photos, faces and folders, read only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def photos(self, ids: Iterable[str]) -> dict[str, LibraryPhoto]:
        """Return the finished photos among `ids`, by id; others are left out."""
        wanted = [int(i) for i in ids if i.isdecimal() and len(i) < _LONGEST_ID]
        found: dict[str, LibraryPhoto] = {}
        with self._database.reading() as db:
            for start in range(0, len(wanted), _CHUNK):
                chunk = wanted[start : start + _CHUNK]
                marks = ",".join("?" * len(chunk))
                faces: defaultdict[int, list[StoredFace]] = defaultdict(list)
                for photo, *face in db.execute(
                    "SELECT photo, ordinal, x0, y0, x1, y1, score, landmarks, quality FROM faces "
                    f"WHERE photo IN ({marks}) ORDER BY photo, ordinal",
                    chunk,
                ).fetchall():
                    faces[photo].append(StoredFace._make(face))
                for row in db.execute(
                    "SELECT id, path, size, hash, taken, width, height FROM photos "
                    f"WHERE id IN ({marks}) AND state = 'ready'",
                    chunk,
                ):
                    found[str(row[0])] = _photo(row, tuple(faces.get(row[0], ())))
        return found

    def photo(self, photo_id: str) -> LibraryPhoto:
        """Return one photo; an unknown id is an error that says so."""
        found = self.photos([photo_id]).get(photo_id)
        if found is None:
            raise InvalidInputError(f"no photo {photo_id!r} in this library")
        return found

    def photo_at(self, path: bytes) -> LibraryPhoto:
        """Return the photo of a file; one that the library does not know is an error that says what to do."""
        with self._database.reading() as db:
            row = db.execute("SELECT id FROM photos WHERE path = ? AND state = 'ready'", (path,)).fetchone()
        if row is None:
            raise InvalidInputError(f"{shown(path)} is no photo of this library: `setnet index` it first")
        return self.photo(str(row[0]))

    def all_photos(self) -> Iterator[LibraryPhoto]:
        """Yield every finished photo in the order of ids, a few hundred rows in memory at a time."""
        last = 0
        while True:
            with self._database.reading() as db:
                rows = db.execute(
                    "SELECT id FROM photos WHERE id > ? AND state = 'ready' ORDER BY id LIMIT ?",
                    (last, _CHUNK),
                ).fetchall()
            if not rows:
                return
            last = rows[-1][0]
            yield from self.photos([str(r[0]) for r in rows]).values()

    def latest(self, limit: int, before: int | None = None) -> list[LibraryPhoto]:
        """Return finished photos, the last stored first, from the one with id `before` on."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT id FROM photos WHERE id < ? AND state = 'ready' ORDER BY id DESC LIMIT ?",
                (2**63 - 1 if before is None else before, limit),
            ).fetchall()
        ids = [str(row[0]) for row in rows]
        found = self.photos(ids)
        return [found[photo_id] for photo_id in ids if photo_id in found]

    def newest_first(self, ids: Iterable[str]) -> list[str]:
        """Return the finished photos among `ids`, the latest taken first, those of no known time last."""
        wanted = [int(i) for i in ids]
        found: list[tuple[float, int]] = []
        with self._database.reading() as db:
            for start in range(0, len(wanted), _CHUNK):
                chunk = wanted[start : start + _CHUNK]
                found += db.execute(
                    "SELECT coalesce(-taken, 1e300), id FROM photos "
                    f"WHERE id IN ({','.join('?' * len(chunk))}) AND state = 'ready'",
                    chunk,
                ).fetchall()
        return [str(photo) for _, photo in sorted(found)]

    def known_files(self) -> dict[bytes, KnownFile]:
        """Return every file the library has looked at, by path, in one read of the table."""
        with self._database.reading() as db:
            rows = db.execute("SELECT path, id, size, mtime_ns, hash, state FROM photos")
            return {row[0]: KnownFile(*row[1:]) for row in rows}

    def unfinished(self) -> list[tuple[int, bytes, str]]:
        """Return photos whose storing was cut short: (id, path, state)."""
        with self._database.reading() as db:
            return db.execute(
                # the first condition is that of the index which makes this quick
                "SELECT id, path, state FROM photos WHERE state <> 'ready' AND state <> 'failed'"
            ).fetchall()

    def same_content(self, content_hash: bytes) -> list[tuple[int, bytes]]:
        """Return (id, path) of finished photos with this content."""
        with self._database.reading() as db:
            return db.execute(
                "SELECT id, path FROM photos WHERE hash = ? AND state = 'ready' ORDER BY id", (content_hash,)
            ).fetchall()

    def contents(self) -> Iterator[tuple[str, str]]:
        """Yield (id, content hash) of every finished photo."""
        with self._database.reading() as db:
            for photo_id, content in db.execute("SELECT id, hash FROM photos WHERE state = 'ready'"):
                yield str(photo_id), content.hex()

    def failures(self) -> list[FailedPhoto]:
        """Return the files that could not be read, in the order of paths."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT id, path, reason FROM photos WHERE state <> 'ready' AND state = 'failed' "
                "ORDER BY path"
            )
            return [FailedPhoto(str(i), as_path(path), reason) for i, path, reason in rows]

    def folders(self) -> list[bytes]:
        """Return the folders that were indexed."""
        with self._database.reading() as db:
            return [row[0] for row in db.execute("SELECT path FROM folders ORDER BY path")]

    def counts(self) -> Counts:
        """Return how many photos, faces, failures, people and folders there are."""
        with self._database.reading() as db:
            # An older database that cannot be written has no numbers to read.
            return photo_counts.kept(db) if self._database.is_current else photo_counts.counted(db)

    def commit(self) -> int:
        """Return the number of the last change of photos or people; 0 where changes are not numbered."""
        with self._database.reading() as db:
            return stored_commits(db) if self._database.is_current else 0

    def meta(self, key: str) -> str | None:
        """Return a stored setting."""
        with self._database.reading() as db:
            row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])


def _photo(row: Sequence[Any], faces: tuple[StoredFace, ...]) -> LibraryPhoto:
    photo_id, path, size, content, taken, width, height = row
    return LibraryPhoto(str(photo_id), path, size, content, taken_time(taken), width, height, faces)
