"""The photos of a library, as its database has them, with their pictures."""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from setnet.durable import own_errors
from setnet.errors import InvalidInputError, StorageError
from setnet.library.database import Database, stored_commits
from setnet.library.paths import THUMBNAILS, as_path, display_path, resolve_path, source_file
from setnet.library.photos import FailedPhoto, LibraryPhoto, StoredFace, taken_number, taken_time
from setnet.library.schema import Counts, read_counts
from setnet.library.stacks import Moment

if TYPE_CHECKING:
    from setnet.library.descriptor_files import ExportReport
    from setnet.library.duplicates import DuplicateGroup, DuplicateOptions
    from setnet.library.library import Library
    from setnet.library.photo_reader import PhotoResult
    from setnet.library.pictures import Draw
    from setnet.library.query import Conditions

_LONGEST_ID = 19  # digits: a number that long may not fit SQLite's integers
_CHUNK = 500  # photos in memory at a time
_AMONG = "(SELECT value FROM json_each(?))"  # any number of ids, given as JSON


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
        self._counted: tuple[int, Counts] | None = None  # as of a commit

    def get_many(self, ids: Iterable[str]) -> dict[str, LibraryPhoto]:
        """Return the finished photos among `ids`, by id; others are left out."""
        numbers = json.dumps([int(i) for i in ids if i.isdecimal() and len(i) < _LONGEST_ID])
        found: dict[str, LibraryPhoto] = {}
        with self._database.reading() as db:
            faces: defaultdict[int, list[StoredFace]] = defaultdict(list)
            for photo, *face in db.execute(
                f"SELECT * FROM faces WHERE photo IN {_AMONG} ORDER BY photo, ordinal",
                (numbers,),
            ).fetchall():
                faces[photo].append(StoredFace(*face))
            for row in db.execute(
                "SELECT id, path, size, hash, taken, width, height, start, stop, best, video, taken_from, "
                f"note, external, colour FROM photos WHERE id IN {_AMONG} AND state = 'ready'",
                (numbers,),
            ).fetchall():
                found[str(row[0])] = _photo(row, tuple(faces.get(row[0], ())))
        return found

    def get(self, photo_id: str) -> LibraryPhoto:
        """Return one photo; an unknown id is an error that says so."""
        found = self.get_many([photo_id]).get(photo_id)
        if found is None:
            raise InvalidInputError(f"no photo {photo_id!r} in this library")
        return found

    def photo_at(self, path: bytes) -> LibraryPhoto:
        """Return the photo of a file; one that the library does not know is an error that says what to do."""
        found = self._select("path = ? AND state = 'ready'", path)
        if not found:
            raise InvalidInputError(
                f"{display_path(path)} is no photo of this library: `setnet index` it first"
            )
        return found[0]

    def video_shots(self, video: bytes) -> list[LibraryPhoto]:
        """Return the shots of a video file in order; one that the library does not know has none."""
        is_shot = "path > ? AND path < ? AND state = 'ready' AND start IS NOT NULL ORDER BY path"
        return self._select(is_shot, video + b"/", video + b"0")  # "0" follows "/"; times have leading zeros

    def all_photos(self) -> Iterator[LibraryPhoto]:
        """Yield every finished photo in the order of ids, a few hundred rows in memory at a time."""
        last = 0
        while found := self._select("id > ? AND state = 'ready' ORDER BY id LIMIT ?", last, _CHUNK):
            last = int(found[-1].id)
            yield from found

    def latest(self, limit: int, before: int | None = None) -> list[LibraryPhoto]:
        """Return finished photos, the last stored first, from the one with id `before` on."""
        first = 2**63 - 1 if before is None else before
        return self._select("id < ? AND state = 'ready' ORDER BY id DESC LIMIT ?", first, limit)

    def _select(self, condition: str, *values: bytes | int) -> list[LibraryPhoto]:
        """Return finished photos in the order of the ids that meet a condition."""
        with self._database.reading() as db:
            ids = [str(row[0]) for row in db.execute(f"SELECT id FROM photos WHERE {condition}", values)]
        found = self.get_many(ids)
        return [found[photo_id] for photo_id in ids if photo_id in found]

    def newest_first(self, ids: Iterable[str]) -> list[str]:
        """Return the finished photos among `ids`, the latest taken first, those of no known time last."""
        with self._database.reading() as db:
            rows = db.execute(
                f"SELECT id FROM photos WHERE id IN {_AMONG} AND state = 'ready' "
                "ORDER BY taken DESC NULLS LAST, id",
                (json.dumps([int(i) for i in ids]),),
            )
            return [str(photo) for (photo,) in rows]

    def by_date(self, conditions: Conditions | None = None) -> list[tuple[int, str | None, Moment]]:
        """Return the id, the month ("2019-07") and the moment of finished photos, the latest taken first.

        Those of no known time come last. Photos of one moment have as many faces, for one.
        """
        given = _tests_of(conditions) if conditions else {}
        where = " AND ".join(["state = 'ready'", *given])
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT id, strftime('%Y-%m', taken, 'unixepoch'), hash, path, taken, taken_from, start, "
                f"faces FROM photos WHERE {where} ORDER BY taken DESC NULLS LAST, id DESC",
                list(given.values()),
            ).fetchall()
        return [(photo, month, Moment.of_row(photo, *facts)) for photo, month, *facts in rows]

    def photo_folders(self) -> dict[bytes, int]:
        """Return how many finished photos and shots lie directly in which folder."""
        with self._database.reading() as db:
            rows = db.execute("SELECT path, start FROM photos WHERE state = 'ready'")
            return Counter(os.path.dirname(source_file(path, start)) for path, start in rows)

    def shot_ids(self) -> set[str]:
        """Return the ids of all shots."""
        with self._database.reading() as db:
            return {str(photo) for (photo,) in db.execute("SELECT id FROM photos WHERE start IS NOT NULL")}

    def tagged_with_others(self, ids: Iterable[str | None]) -> set[str]:
        """Return the photos with a tag of somebody who has none of these ids."""
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT DISTINCT photos.id FROM tags JOIN people ON people.id = person "
                f"JOIN photos ON hash = tags.content WHERE uid NOT IN {_AMONG}",
                (json.dumps([uid for uid in ids if uid is not None]),),
            )
            return {str(photo) for (photo,) in rows}

    def known_files(self) -> dict[bytes, KnownFile]:
        """Return every file the library has looked at, by path, in one read of the table."""
        found: dict[bytes, KnownFile] = {}
        with self._database.reading() as db:
            for path, start, photo, size, mtime_ns, content, state in db.execute(
                "SELECT path, start, id, size, mtime_ns, coalesce(video, hash), state FROM photos"
            ):
                file, ids = source_file(path, start), (photo,)
                if start is not None and (known := found.get(file)) is not None:
                    ids = (*known.ids, photo)
                    if known.state != "ready":
                        state, mtime_ns = known.state, known.mtime_ns
                found[file] = KnownFile(ids, size, mtime_ns, content, state, start is not None)
        return found

    def same_content(self, content_hash: bytes) -> list[tuple[tuple[int, ...], bytes]]:
        """Return (ids, path) of files with this content of which all is stored."""
        files: dict[bytes, list[tuple[int, str]]] = {}
        with self._database.reading() as db:
            rows = db.execute(
                "SELECT id, path, NULL, state FROM photos WHERE hash = ?1 UNION ALL "
                "SELECT id, path, start, state FROM photos WHERE video = ?1 ORDER BY 1",
                (content_hash,),
            )
            for photo, path, start, state in rows:
                files.setdefault(source_file(path, start), []).append((photo, state))
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

    def has_photos_below(self, folder: bytes) -> bool:
        """Return whether a finished photo lies in a folder or below it."""
        inside = folder.rstrip(b"/") + b"/"
        with self._database.reading() as db:
            return bool(
                db.execute(
                    "SELECT EXISTS (SELECT 1 FROM photos WHERE path > ? AND path < ? AND state = 'ready')",
                    (inside, inside[:-1] + b"0"),  # "0" follows "/"
                ).fetchone()[0]
            )

    def counts(self) -> Counts:
        """Return how many photos, faces, failures, people and folders there are."""
        with self._database.reading() as db:
            if db.in_transaction:  # what may be taken back is not kept
                return read_counts(db)
            commit = stored_commits(db)
            if self._counted is None or self._counted[0] != commit:
                self._counted = commit, read_counts(db)
            return self._counted[1]

    def finished(self) -> tuple[int, int]:
        """Return how many photos are finished, and how many faces they have."""
        counts = self.counts()
        return counts.photos, counts.faces

    def commit(self) -> int:
        """Return the number of the last change of photos or people."""
        with self._database.reading() as db:
            return stored_commits(db)

    def meta(self, key: str) -> str | None:
        """Return a stored setting."""
        with self._database.reading() as db:
            row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])


def _tests_of(conditions: Conditions) -> dict[str, Any]:
    """Return conditions as tests of SQL, each with its value."""
    least, most = conditions.faces or (None, None)
    tests: dict[str, Any] = {
        "taken >= ?": taken_number(conditions.after),
        "taken < ?": taken_number(conditions.before),
        "faces >= ?": least,
        "faces <= ?": most,
        "(start IS NOT NULL) = ?": conditions.kind and conditions.kind == "video",
    }
    if conditions.folder is not None:
        inside = resolve_path(conditions.folder).rstrip(b"/") + b"/"
        tests |= {"path > ?": inside, "path < ?": inside[:-1] + b"0"}  # "0" follows "/"
    return {test: value for test, value in tests.items() if value is not None}


def _photo(row: Sequence[Any], faces: tuple[StoredFace, ...]) -> LibraryPhoto:
    photo_id, path, size, content, taken, width, height, start, stop, best, video, *facts = row
    path, taken = source_file(path, start), taken_time(taken)
    shot = (start, stop, best, video or b"")
    return LibraryPhoto(str(photo_id), path, size, content, taken, width, height, faces, *shot, *facts)


LONGEST_EXTERNAL_ID = 200


class Photos(PhotoCatalog):
    """The photos of a library by id: what is stored about them, and what needs the index or picture files."""

    def __init__(self, library: Library) -> None:
        super().__init__(library._database)
        self.path = library.path
        self._library = library
        self._pictures = library.path / THUMBNAILS

    @own_errors
    def face_at(self, text: str) -> tuple[str, int]:
        """Return the photo's id and the number, from 0, of a face such as `group.jpg#3`, from the left.

        A photo with one face needs no number.
        """
        from setnet.library.examples import split_number

        path, number = split_number(text)
        photo = self.photo_at(resolve_path(path))
        faces = len(photo.faces)
        if number is None and faces > 1:
            raise InvalidInputError(
                f"{display_path(photo.path)} has {faces} faces: say which, as in "
                f"{display_path(photo.path.name)}#1 for the first from the left "
                "(`setnet faces PHOTO --sheet faces.html` shows the numbers)"
            )
        if not 1 <= (number or 1) <= faces:
            raise InvalidInputError(
                f"{display_path(photo.path)} has {faces} face(s): the number after # is 1..{faces}, "
                "from the left"
            )
        return photo.id, (number or 1) - 1

    @own_errors
    def descriptors(self, photo_id: str) -> NDArray[np.float32]:
        """Return the (faces, dim) descriptors of a photo, in the order of its faces."""
        return self._library.set_index.elements(photo_id)

    @own_errors
    def add(self, photos: Sequence[PhotoResult]) -> list[str]:
        """Store photos whose faces are known, and return their ids; the next index run groups the faces."""
        from setnet.library.photo_writer import PhotoWriter

        if not photos:
            return []
        with self._library._writing() as index:
            writer = PhotoWriter(self._database, index)
            writer.recover()
            return [str(photo) for photo in writer.store(photos)]

    @own_errors
    def duplicates(self, **options: Unpack[DuplicateOptions]) -> list[DuplicateGroup]:
        """Return the groups of photos that are copies of one photograph; nothing is deleted.

        The options are those of `DuplicateOptions`. What is computed from photos is kept for the next call.
        """
        from setnet.library.duplicates import library_duplicates

        return library_duplicates(self._library, **options)

    @own_errors
    def export(self, file: str | Path) -> ExportReport:
        """Write all descriptors, labels of saved people, counts and paths to an `.npz` file."""
        from setnet.library.descriptor_files import export_descriptors

        return export_descriptors(self._library, Path(file))

    @own_errors
    def thumbnail(self, photo_id: str, side: int = 320) -> bytes:
        """Return a photo as an upright JPEG that fits a square, made once and then kept."""
        from setnet.library.pictures import check_side, jpeg, open_picture, thumbnail

        check_side(side)
        return self.picture(
            self.get(photo_id), str(side), lambda photo: jpeg(thumbnail(open_picture(photo).pixels, side))
        )

    @own_errors
    def face_thumbnail(self, photo_id: str, face: int, side: int = 160) -> bytes:
        """Return a face of a photo as a square JPEG, made once and then kept."""
        from setnet.library.pictures import check_side, draw_face

        check_side(side)
        photo = self.get(photo_id)
        if not 0 <= face < len(photo.faces):
            raise InvalidInputError(f"photo {photo_id} has {len(photo.faces)} faces, none with number {face}")
        return self.picture(photo, f"face{face}-{side}", lambda photo: draw_face(photo, face, side))

    def picture(self, photo: LibraryPhoto, name: str, draw: Draw) -> bytes:
        """Return a picture of a photo, made once by `draw` and then kept under a name."""
        from setnet.library.pictures import cached_picture

        return cached_picture(self._pictures, self, photo, name, draw)

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
                db.execute("UPDATE photos SET external = ? WHERE id = ?", (external_id, int(photo_id)))
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
            row = db.execute("SELECT id FROM photos WHERE external = ?", (external_id,)).fetchone()
        return None if row is None else self.get_many([str(row[0])]).get(str(row[0]))
