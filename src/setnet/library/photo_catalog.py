"""The photos of a library as its database has them, and the feed of their changes."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from setnet.errors import InvalidInputError
from setnet.library.database import Database, stored_commits
from setnet.library.paths import as_path, display_path, file_of
from setnet.library.photos import FailedPhoto, LibraryPhoto, StoredFace, taken_time
from setnet.library.schema import FACES, Counts, face_number, read_counts

_LONGEST_ID = 19  # digits: a number that long may not fit SQLite's integers
_CHUNK = 500  # SQLite's smallest limit of variables in a statement is 999


@dataclass(frozen=True, slots=True)
class KnownFile:
    """A file as it was last indexed: from this a run decides whether to open it again.

    `ids` are those of its photos: one, or the shots of a video, which are `ready` when all of them are.
    """

    ids: tuple[int, ...]
    size: int
    mtime_ns: int
    hash: bytes | None
    state: str
    is_video: bool = False


class PhotoCatalog:
    """The stored photos, faces and folders, read only."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get_many(self, ids: Iterable[str]) -> dict[str, LibraryPhoto]:
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
                    faces[photo].append(StoredFace(*face))
                for row in db.execute(
                    "SELECT photos.id, path, size, hash, taken, width, height, start, stop, best, video, "
                    "taken_from, note, external FROM photos LEFT JOIN shots USING (id) "
                    f"LEFT JOIN photo_facts USING (id) WHERE photos.id IN ({marks}) "
                    "AND state = 'ready'",
                    chunk,
                ).fetchall():
                    shown_faces = faces.get(row[0], [])
                    if row[_START] is not None:
                        shown_faces = _with_times(db, row[0], shown_faces)
                    found[str(row[0])] = _photo(row, tuple(shown_faces))
        return found

    def get(self, photo_id: str) -> LibraryPhoto:
        """Return one photo; an unknown id is an error that says so."""
        found = self.get_many([photo_id]).get(photo_id)
        if found is None:
            raise InvalidInputError(f"no photo {photo_id!r} in this library")
        return found

    def photo_at(self, path: bytes) -> LibraryPhoto:
        """Return the photo of a file; one that the library does not know is an error that says what to do."""
        with self._database.reading() as db:
            row = db.execute("SELECT id FROM photos WHERE path = ? AND state = 'ready'", (path,)).fetchone()
        if row is None:
            raise InvalidInputError(
                f"{display_path(path)} is no photo of this library: `setnet index` it first"
            )
        return self.get(str(row[0]))

    def shots_of(self, video: bytes) -> list[LibraryPhoto]:
        """Return the shots of a video file in order; one that the library does not know has none."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT photos.id FROM photos JOIN shots USING (id) WHERE path > ? AND path < ? "
                "AND state = 'ready' ORDER BY start",
                (video + b"/", video + b"0"),  # "0" follows "/"
            ).fetchall()
        ids = [str(row[0]) for row in rows]
        found = self.get_many(ids)
        return [found[photo_id] for photo_id in ids if photo_id in found]

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
            yield from self.get_many([str(r[0]) for r in rows]).values()

    def latest(self, limit: int, before: int | None = None) -> list[LibraryPhoto]:
        """Return finished photos, the last stored first, from the one with id `before` on."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT id FROM photos WHERE id < ? AND state = 'ready' ORDER BY id DESC LIMIT ?",
                (2**63 - 1 if before is None else before, limit),
            ).fetchall()
        ids = [str(row[0]) for row in rows]
        found = self.get_many(ids)
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

    def by_date(self) -> list[tuple[int, str | None]]:
        """Return the id and the month ("2019-07") of all finished photos, the latest taken first.

        Those of no known time come last.
        """
        with self._database.reading() as db:
            return db.execute(
                "SELECT id, strftime('%Y-%m', taken, 'unixepoch') FROM photos WHERE state = 'ready' "
                "ORDER BY taken DESC NULLS LAST, id DESC"
            ).fetchall()

    def shot_ids(self) -> set[str]:
        """Return the ids of all shots."""
        with self._database.reading() as db:
            return {str(photo) for (photo,) in db.execute("SELECT id FROM shots")}

    def known_files(self) -> dict[bytes, KnownFile]:
        """Return every file the library has looked at, by path, in one read of the table."""
        found: dict[bytes, KnownFile] = {}
        with self._database.reading() as db:
            for path, start, photo, size, mtime_ns, content, state in db.execute(
                "SELECT path, start, photos.id, size, mtime_ns, coalesce(video, hash), state "
                "FROM photos LEFT JOIN shots USING (id)"
            ):
                file, ids = file_of(path, start), (photo,)
                if start is not None and (known := found.get(file)) is not None:
                    ids = (*known.ids, photo)
                    if known.state != "ready":
                        state, mtime_ns = known.state, known.mtime_ns
                found[file] = KnownFile(ids, size, mtime_ns, content, state, start is not None)
        return found

    def unread_files(self) -> list[bytes]:
        """Return the files that are to be read again."""
        with self._database.reading() as db:
            rows = db.execute(
                # the first condition is that of the index which makes this quick
                "SELECT path, start FROM photos LEFT JOIN shots USING (id) "
                "WHERE state <> 'ready' AND state = 'unread'"
            ).fetchall()
        return [file_of(path, start) for path, start in rows]

    def same_content(self, content_hash: bytes) -> list[tuple[tuple[int, ...], bytes]]:
        """Return (ids, path) of files with this content of which all is stored."""
        files: dict[bytes, list[tuple[int, str]]] = {}
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT id, path, NULL, state FROM photos WHERE hash = ?1 UNION ALL "
                "SELECT photos.id, path, start, state FROM shots JOIN photos USING (id) WHERE video = ?1 "
                "ORDER BY 1",
                (content_hash,),
            )
            for photo, path, start, state in rows:
                files.setdefault(file_of(path, start), []).append((photo, state))
        return [
            (tuple(photo for photo, _ in stored), path)
            for path, stored in files.items()
            if all(state == "ready" for _, state in stored)
        ]

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
            return read_counts(db)

    def commit(self) -> int:
        """Return the number of the last change of photos or people."""
        with self._database.reading() as db:
            return stored_commits(db)

    def meta(self, key: str) -> str | None:
        """Return a stored setting."""
        with self._database.reading() as db:
            row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])


_START = 7  # the column of a shot's start


def _photo(row: Sequence[Any], faces: tuple[StoredFace, ...]) -> LibraryPhoto:
    photo_id, path, size, content, taken, width, height, start, stop, best, video, *facts = row
    path, taken = file_of(path, start), taken_time(taken)
    shot = (start, stop, best, video or b"")
    return LibraryPhoto(str(photo_id), path, size, content, taken, width, height, faces, *shot, *facts)


def _with_times(db: sqlite3.Connection, photo: int, faces: Sequence[StoredFace]) -> list[StoredFace]:
    rows = db.execute(
        "SELECT id, at, seen, track FROM shot_faces WHERE id BETWEEN ? AND ?",
        (face_number(photo, 0), face_number(photo, FACES - 1)),
    )
    times = {number - face_number(photo, 0): values for number, *values in rows}
    return [face.with_times(*times[face.ordinal]) if face.ordinal in times else face for face in faces]


MOST_CHANGES = 1000
_CURSOR = re.compile(r"([0-9a-f]{1,16})\.([0-9]{1,18})(?:\.([0-9]{1,18}))?")


@dataclass(frozen=True, slots=True)
class ItemChange:
    """The last change of a photo or person: `what` is `added`, `changed` or `removed`."""

    kind: str
    id: str
    what: str


@dataclass(frozen=True, slots=True)
class ItemChanges:
    """Changes in the order in which they happened, and the cursor behind the last of them."""

    changes: tuple[ItemChange, ...]
    cursor: str
    more: bool


class _Place(NamedTuple):
    """Where a reader is: the number read last, and where the reader stood when `more` was last false."""

    seen: int
    known: int


def changes_since(db: sqlite3.Connection, cursor: str | None, limit: int) -> ItemChanges:
    """Return what changed behind a cursor; without one, everything there is as added.

    An item that changed several times comes once, with its last change. What came and went since the
    cursor is `removed`.
    """
    if not 1 <= limit <= MOST_CHANGES:
        raise InvalidInputError(f"limit {limit}: a number from 1 to {MOST_CHANGES} is expected")
    (number,) = db.execute("SELECT value FROM sums WHERE name = 'item_changes'").fetchone()
    feed = f"{number:x}"
    place = _parse_cursor(db, cursor, feed)
    rows = db.execute(
        "SELECT c.id, kind, item, coalesce(first, c.id), iif(kind = 'photo', "
        "EXISTS (SELECT 1 FROM photos WHERE id = item AND state = 'ready'), "
        "EXISTS (SELECT 1 FROM people WHERE uid = item)) "
        "FROM item_changes AS c WHERE c.id > ? ORDER BY c.id LIMIT ?",
        (place.seen, limit + 1),
    ).fetchall()
    more = len(rows) > limit
    found = tuple(
        ItemChange(kind, str(item), "removed" if not there else "added" if first > place.known else "changed")
        for _, kind, item, first, there in rows[:limit]
    )
    seen = rows[:limit][-1][0] if rows else place.seen
    return ItemChanges(found, f"{feed}.{seen}.{place.known}" if more else f"{feed}.{seen}", more)


def _parse_cursor(db: sqlite3.Connection, cursor: str | None, feed: str) -> _Place:
    if cursor is None:
        return _Place(0, 0)
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInputError(f"{cursor!r:.80} is no cursor of a changes feed")
    seen = int(match[2])
    known = seen if match[3] is None else int(match[3])
    last = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'item_changes'").fetchone()
    if match[1] != feed or seen > (last[0] if last else 0):
        raise InvalidInputError(
            "this cursor is of another state of the library, which was repaired or restored since: read the "
            "changes from the beginning, without a cursor"
        )
    return _Place(seen, known)
