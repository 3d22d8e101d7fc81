"""A library's faces described by another model: a new index under way beside its own, then in its place.

The index grows over as many runs as it takes. An item counts as described once a line of `photos.log` says
so, with the moment at which the photo's faces were stored: when a photo has been indexed again since, its
faces are described again.

The faces that stand for people are the rows with a descriptor of their own: example faces, and whatever
else was said about single faces. Each is looked for where its descriptor came from: among the photos that
were just described, else in the file it was taken from, else in the small picture that is kept of it.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.durable import append_durably, replace_file, transaction
from setnet.engine import SetIndex
from setnet.errors import SetNetError, WorkerError
from setnet.faces import Box
from setnet.library.backup import complete_staging, database_to_stage, link_segments, stage_new_state
from setnet.library.creation import create_index, facts_about
from setnet.library.face_references import SAME_FACE
from setnet.library.paths import DATABASE, INDEX, NEXT_INDEX, REDESCRIBED
from setnet.library.photo_catalog import taken_number
from setnet.library.photo_reader import PhotoReader
from setnet.library.photo_result import PhotoTask, descriptors_from_arrays
from setnet.library.photo_writer import attributes_of, mark_unread
from setnet.library.photos import LibraryPhoto
from setnet.library.schema import photo_checksums, refresh_groups
from setnet.sandbox import Limits, Message, Service, WorkerPool, unordered_map
from setnet.sandbox.messages import as_bytes

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.library.photo_result import PhotoResult
    from setnet.sandbox import Limits


class ReembeddedPhoto(NamedTuple):
    """A photo and the new descriptors of its faces, in their order; or why there are none."""

    photo: LibraryPhoto
    descriptors: NDArray[np.float32]
    reason: str | None = None


class FaceDescriber:
    """Reads photo files and describes their known faces; see `PhotoReader` for what the workers protect from.

    Parameters
    ----------
    settings
        With the new descriptor.
    workers
        Number of processes; 0 works in this process.
    limits
        Time and memory that one photo may take.
    """

    def __init__(self, settings: FaceSettings, workers: int, limits: Limits | None = None) -> None:
        from setnet.faces import model_entry

        self._dim = model_entry(settings.descriptor, "descriptor").dim or 0
        service = Service("setnet.library.photo_reader", settings.to_dict())
        self._pool = WorkerPool(service, workers, limits, ahead=1)

    def __enter__(self) -> FaceDescriber:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.close()

    def results(
        self, photos: Iterable[LibraryPhoto], should_stop: Callable[[], bool] | None = None
    ) -> Iterator[ReembeddedPhoto]:
        """Yield the photos with their descriptors as they come, in no fixed order."""
        return unordered_map(self._result, photos, self._pool.capacity, should_stop)

    def _result(self, photo: LibraryPhoto) -> ReembeddedPhoto:
        none = np.zeros((0, self._dim), np.float32)
        if not photo.faces:
            return ReembeddedPhoto(photo, none)
        places: dict[str, NDArray[Any]] = {
            "hash": as_bytes(photo.stored_hash),
            "boxes": np.array([face.box for face in photo.faces], np.float64),
            "landmarks": np.stack([face.landmarks for face in photo.faces]),
        }
        name = "describe"
        if photo.start is not None:  # of a shot the best picture of each person is described
            name = "describe_shot"
            times = [photo.start if face.at is None else face.at for face in photo.faces]
            places |= {"hash": as_bytes(photo.stored_video), "times": np.array(times, np.float64)}
        message = Message(name, {"path": os.fsdecode(photo.stored_path)}, places)
        try:
            return self._pool.call(message, lambda reply: self._parsed(photo, reply))
        except WorkerError as error:
            return ReembeddedPhoto(photo, none, str(error))

    def _parsed(self, photo: LibraryPhoto, reply: Message) -> ReembeddedPhoto:
        if reply.fields.get("reason") is not None:
            return ReembeddedPhoto(photo, np.zeros((0, self._dim), np.float32), reply.text("reason"))
        return ReembeddedPhoto(photo, descriptors_from_arrays(reply, len(photo.faces), self._dim))


_ABOUT, _LOG = "model.json", "photos.log"


class NewIndex:
    """The new index of a library and what is in it already; begun anew when it is of other settings."""

    def __init__(self, library: Path, settings: FaceSettings, dim: int) -> None:
        self.folder = library / REDESCRIBED
        about = {"facts": facts_about(settings, dim)}
        if self._read(_ABOUT) != json.dumps(about):
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(mode=0o700)
            create_index(self.folder / INDEX, settings, dim)
            replace_file(self.folder / _LOG, b"")
            replace_file(self.folder / _ABOUT, json.dumps(about).encode())
        os.utime(self.folder)  # its week begins
        self.index = SetIndex.open(self.folder / INDEX)

    def __enter__(self) -> NewIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.index.close()

    def _read(self, name: str) -> str:
        try:
            return (self.folder / name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def only(self, wanted: Mapping[int, tuple[float, int]]) -> set[int]:
        """Take out what does not, or no longer, describe a photo; return the photos that are described.

        `wanted` has the moment at which each photo was stored, and its number of faces.
        """
        logged = dict(_parsed(line) for line in self._read(_LOG).splitlines())
        there = {int(item.id): item.elements for item in self.index.items()}
        done = {photo for photo in there if wanted.get(photo) == (logged.get(photo), there[photo])}
        if other := [str(photo) for photo in there if photo not in done]:
            self.index.delete(other)
        return done

    def add(self, photos: Sequence[ReembeddedPhoto], stored: Mapping[int, tuple[float, int]]) -> None:
        """Store new descriptors of photos, and then that they are stored."""
        if not photos:
            return
        self.index.add(
            [described.photo.id for described in photos],
            np.concatenate([described.descriptors for described in photos]),
            [len(described.descriptors) for described in photos],
            attributes=[
                attributes_of(photo.stored_path, taken_number(photo.taken), len(photo.faces), photo.start)
                for photo in (described.photo for described in photos)
            ],
        )
        # a new line first: the last one may have been cut short
        lines = (f"\n{d.photo.id} {stored[int(d.photo.id)][0]!r}" for d in photos)
        append_durably(self.folder / _LOG, "".join(lines).encode())

    def delete(self) -> None:
        """Delete all of it: the library has taken it over."""
        self.index.close()
        shutil.rmtree(self.folder)


def _parsed(line: str) -> tuple[int, float | None]:
    """Return the photo of a line and when it was stored; a line that was cut short says nothing.

    >>> _parsed("12 1700000000.5"), _parsed("12 17000"), _parsed("12 1.5 13 2.5"), _parsed("")
    ((12, 1700000000.5), (12, 17000.0), (-1, None), (-1, None))
    """
    photo, _, moment = line.partition(" ")
    try:
        return int(photo), float(moment)
    except ValueError:
        return -1, None


Vector = NDArray[np.float32]
Corners = tuple[float, float, float, float]
_SMALLEST_IN_PICTURE = 32  # pixels of a face in the picture that is kept of it
_WANTED = ("person", "content", "source", "x0", "y0", "x1", "y1", "picture")


class FaceRow(NamedTuple):
    """A row that has the descriptor of a face, and where that face was seen.

    An example stands for a person by its descriptor; what was said about a face holds without one.
    """

    table: str
    id: int
    is_example: bool
    person: int | None
    content: bytes | None
    source: bytes | None
    box: Corners | None
    picture: bytes | None


class NewDescriptor(NamedTuple):
    """The new descriptor of a row, and whether it comes from a `photo` or a `picture`; None: from nowhere."""

    vector: Vector | None
    origin: str


def face_rows(db: sqlite3.Connection) -> list[FaceRow]:
    """Return every row of the database that has a descriptor."""
    found = []
    tables = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    for (table,) in tables:
        columns = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
        if "descriptor" not in columns:
            continue
        chosen = ", ".join(name if name in columns else "NULL" for name in _WANTED)
        for row_id, person, content, source, *rest in db.execute(f"SELECT id, {chosen} FROM {table}"):
            corners, picture = tuple(rest[:4]), rest[4]
            box = None if None in corners else corners
            is_example = "picture" in columns
            found.append(FaceRow(table, row_id, is_example, person, content, source, box, picture))
    return found


class PeopleFaces:
    """Describes face rows, each once: a second call costs only what is new.

    Parameters
    ----------
    db
        The library's database, open for reading.
    index
        The new index, with all photos.
    settings
        With the new descriptor.
    workers, limits
        As for an index run.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        index: SetIndex,
        settings: FaceSettings,
        workers: int,
        limits: Limits | None,
    ) -> None:
        self._db, self._index, self._settings = db, index, settings
        self._workers, self._limits = workers, limits
        self._known: dict[FaceRow, NewDescriptor] = {}

    def described(self, rows: Sequence[FaceRow]) -> dict[FaceRow, NewDescriptor]:
        """Return the new descriptor of each row."""
        new = [row for row in rows if row not in self._known]
        for row in new:
            if (vector := self._in_index(row)) is not None:
                self._known[row] = NewDescriptor(vector, "photo")
        for row, vector in self._in_files([row for row in new if row not in self._known]):
            self._known[row] = NewDescriptor(vector, "photo")
        for row in new:
            if row not in self._known:
                vector = self._in_picture(row.picture)
                self._known[row] = NewDescriptor(vector, "picture" if vector is not None else "nowhere")
        return {row: self._known[row] for row in rows}

    def _in_index(self, row: FaceRow) -> Vector | None:
        """Return the descriptor of the face in a photo of the library: by content, else by path."""
        if row.box is None:
            return None
        places = self._db.execute(
            "SELECT photo, ordinal, x0, y0, x1, y1 FROM photos JOIN faces ON photo = photos.id "
            f"WHERE {'hash = ?1' if row.content is not None else 'path = ?1'} AND state = 'ready' "
            "ORDER BY photo, ordinal",
            (row.content if row.content is not None else row.source,),
        ).fetchall()
        there = [place for place in places if str(place[0]) in self._index]
        best = _best(row.box, (tuple(place[2:]) for place in there))
        return None if best is None else self._index.elements(str(there[best][0]))[there[best][1]]

    def _in_files(self, rows: Sequence[FaceRow]) -> Iterator[tuple[FaceRow, Vector]]:
        """Yield the descriptors of faces in photos that are not of the library, such as portraits."""
        by_file: dict[bytes, list[FaceRow]] = {}
        for row in rows:
            if row.source is not None and row.box is not None and os.path.isfile(row.source):
                by_file.setdefault(row.source, []).append(row)
        if not by_file:
            return
        tasks = [PhotoTask(path) for path in by_file]
        with PhotoReader(self._settings, min(self._workers, len(tasks)), self._limits) as reader:
            for result in reader.results(tasks):
                for row in by_file[result.path]:
                    if (vector := _in_photo(row, result)) is not None:
                        yield row, vector

    def _in_picture(self, picture: bytes | None) -> Vector | None:
        """Return the descriptor of the face in the picture that is kept of it, if it can be seen there."""
        from setnet.faces import extract_faces

        if picture is None:
            return None
        try:
            faces = extract_faces(picture, replace(self._settings, min_face=_SMALLEST_IN_PICTURE))
        except SetNetError:  # no picture any more
            return None
        largest = max(faces, key=lambda face: face.quality.size, default=None)
        return None if largest is None else largest.descriptor


def _in_photo(row: FaceRow, result: PhotoResult) -> Vector | None:
    if row.box is None or result.descriptors is None or row.content not in (None, result.hash):
        return None
    best = _best(row.box, (tuple(face.box) for face in result.faces))
    return None if best is None else result.descriptors[best]


def _best(box: Corners, others: Iterable[Sequence[float]]) -> int | None:
    """Return which box is of the same face, if any."""
    overlaps = [Box(*box).overlap(Box(*other)) for other in others]
    best = max(range(len(overlaps)), key=overlaps.__getitem__, default=None)
    return best if best is not None and overlaps[best] >= SAME_FACE else None


class NewRows(NamedTuple):
    """What changes in the database besides descriptors: facts about the model, photos removed or unread."""

    dim: int
    facts: Mapping[str, str]
    removed: Sequence[int]
    unread: Iterable[int]


def replace_state(
    library: Path, db: sqlite3.Connection, made: NewIndex, people: PeopleFaces, rows: NewRows
) -> dict[FaceRow, NewDescriptor]:
    """Stage the new index and a database that goes with it, and put both in place.

    Returns what became of the faces that stand for people. `db` reads the library's database.
    """
    people.described(face_rows(db))  # most of the work, while others may still change people
    with stage_new_state(library), _nobody_writes(library):
        described = people.described(face_rows(db))
        link_segments(made.folder / INDEX, library / NEXT_INDEX)
        made.index.backup(library / NEXT_INDEX)
        with database_to_stage(library) as copy:
            db.backup(copy)
            _rewrite(copy, described, rows)
        complete_staging(library)
    return described


@contextmanager
def _nobody_writes(library: Path) -> Iterator[None]:
    """Keep others from changing people while the database is copied and replaced.

    Who waited for their turn sees that the file is another one (`Database.writing`).
    """
    connected = sqlite3.connect(library / DATABASE, isolation_level=None, timeout=30)
    with closing(connected), transaction(connected):
        yield


def _rewrite(db: sqlite3.Connection, described: Mapping[FaceRow, NewDescriptor], rows: NewRows) -> None:
    """Give a copied database the new descriptors and facts."""
    # without a log of its own, which would have to be moved with it; deleted descriptors leave no trace
    for setting in (
        "journal_mode = DELETE",
        "secure_delete = ON",
        "foreign_keys = ON",
        "recursive_triggers = ON",
    ):
        db.execute(f"PRAGMA {setting}")
    with transaction(db):
        db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(rows.facts.items()))
        for row, new in described.items():
            if new.vector is None and row.is_example:
                db.execute(f"DELETE FROM {row.table} WHERE id = ?", (row.id,))
                continue
            # zeros are like nobody: what was said about the face goes on to hold for that face alone
            vector = np.zeros(rows.dim) if new.vector is None else new.vector
            value = vector.astype("<f4").tobytes()
            db.execute(f"UPDATE {row.table} SET descriptor = ? WHERE id = ?", (value, row.id))
        db.executemany("DELETE FROM photos WHERE id = ?", [(photo,) for photo in rows.removed])
        refresh_groups(db)
        mark_unread(db, rows.unread)  # the next index run looks at them again
        for photo, checksum in list(photo_checksums(db)):
            db.execute("UPDATE photos SET checksum = ? WHERE id = ?", (checksum, photo))
        db.execute("UPDATE sums SET value = value + 1 WHERE name IN ('commits', 'journal')")
