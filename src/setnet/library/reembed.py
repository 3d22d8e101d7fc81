"""Describes all faces of a library again by another model: what was found, named and said about them stays.

It is an index run over the photos that the library has: files are read again, but nothing is looked for in
them, as the places of the faces are known. The new index grows beside the old one, over as many runs as it
takes, and the old one answers all searches until the new one replaces it in one step.

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
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.durable import replace_file, storage_errors, transaction
from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, SetNetError
from setnet.faces import Box
from setnet.library.backup import complete_staging, database_to_stage, link_segments, stage_new_state
from setnet.library.creation import create_index, facts_about, model_fingerprint, restrict_files
from setnet.library.face_references import SAME_FACE
from setnet.library.index_run import (
    BATCH_PHOTOS,
    IndexProgress,
    Pace,
    RunOptions,
    store_in_batches,
)
from setnet.library.paths import DATABASE, INDEX, NEXT_INDEX, REEMBEDDED, as_path, display_path
from setnet.library.photo_reader import DescribedPhoto, PhotoReader, PhotoResult, PhotoTask
from setnet.library.photo_writer import MAX_SEGMENTS, index_attributes, mark_unread
from setnet.library.photos import LibraryPhoto, taken_number
from setnet.library.schema import refresh_checksums, refresh_groups
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.library.library import Library

Vector = NDArray[np.float32]
StoredPhotos = dict[int, tuple[float, int]]  # when each photo was stored, and its number of faces


@dataclass(frozen=True, slots=True)
class ReembedReport:
    """The end of a run; paths are absolute.

    Attributes
    ----------
    total
        Photos that have to be described.
    described, faces
        Photos described in this run, and their faces.
    kept
        Photos that an interrupted run before had described.
    removed
        Photos whose files are gone.
    failed
        Photos that could not be read, and why; `setnet index` looks at them again.
    examples_from_photos, examples_from_pictures
        Example faces of people, by where they were seen again.
    lost
        Example faces that were not: the person, and the photo they came from.
    is_done
        Whether there was nothing to do, as the library was described by this model before.
    """

    descriptor: str
    dim: int
    total: int = 0
    described: int = 0
    faces: int = 0
    kept: int = 0
    removed: int = 0
    failed: tuple[tuple[Path, str], ...] = ()
    examples_from_photos: int = 0
    examples_from_pictures: int = 0
    lost: tuple[tuple[str, Path | None], ...] = ()
    interrupted: bool = False
    is_done: bool = False
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether every photo and every example was described and the run came to its end."""
        return not self.failed and not self.lost and not self.interrupted

    @property
    def summary(self) -> str:
        """The run in one sentence."""
        if self.is_done:
            return f"the library is described by {self.descriptor} already"
        photos, faces = pluralise(self.described, "photo"), pluralise(self.faces, "face")
        parts = [f"{photos} with {faces} described by {self.descriptor}"]
        if self.kept:
            parts.append(f"{self.kept:,} before")
        if self.removed:
            parts.append(f"{self.removed:,} removed")
        examples = self.examples_from_photos + self.examples_from_pictures
        if examples:
            parts.append(f"{examples:,} examples of people")
        return f"{', '.join(parts)}, in {self.seconds:.1f} s"

    def to_dict(self, path_text: Callable[[Path], str] = str) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return asdict(self) | {
            "failed": [{"photo": path_text(path), "reason": why} for path, why in self.failed],
            "lost": [
                {"person": person, "photo": None if path is None else path_text(path)}
                for person, path in self.lost
            ],
        }


def reembed(library: Library, descriptor: str | None, options: RunOptions) -> ReembedReport:
    """Describe all faces of a library again; `setnet.library.Library.reembed` says what it means."""
    settings = replace(library.settings, descriptor=descriptor or library.settings.descriptor)
    with storage_errors(library.path), library._lock_writing():
        made_with = library.photos.meta("model")
        if made_with == model_fingerprint(settings) and " " in made_with:  # with the hash of the file
            shutil.rmtree(library.path / REEMBEDDED, ignore_errors=True)  # left by a kill at the very end
            return ReembedReport(settings.descriptor, library.dim, is_done=True)
        report = _ReembedRun(library, settings, options).run()
        restrict_files(library.path, group_readable=library.group_readable)
    return report


class _ReembedRun:
    """One run, which completes the new index or leaves it for the next; nobody else may be writing."""

    def __init__(self, library: Library, settings: FaceSettings, options: RunOptions) -> None:
        from setnet.faces import model_entry, model_paths

        entry = model_entry(settings.descriptor, "descriptor")
        model_paths(entry)
        assert entry.dim is not None
        self._library, self._settings, self._options, self._dim = library, settings, options, entry.dim
        self._start, self._pace = perf_counter(), Pace()
        self._described = self._faces = self._kept = 0
        self._failed: dict[int, tuple[Path, str]] = {}

    def run(self) -> ReembedReport:
        """Describe what is not yet described and, when all is, put the new state in place."""
        with self._library.database.reading() as db:
            rows = db.execute("SELECT id, stored, faces FROM photos WHERE state = 'ready'")
            stored: StoredPhotos = {photo: (moment, faces) for photo, moment, faces in rows}
        gone = self._gone(stored)
        for photo in gone:
            del stored[photo]
        people: dict[FaceRow, NewDescriptor] = {}
        interrupted = False
        with NewIndex(self._library.path, self._settings, self._dim) as made:
            done = made.only(stored)
            self._kept = len(done)
            try:
                self._describe(made, stored, [photo for photo in stored if photo not in done])
                people = self._replace(made, gone)
            except KeyboardInterrupt:
                interrupted = True
        origins = [new.origin for row, new in people.items() if row.table == "examples"]
        return ReembedReport(
            descriptor=self._settings.descriptor,
            dim=self._dim,
            total=len(stored),
            described=self._described,
            faces=self._faces,
            kept=self._kept,
            removed=0 if interrupted else len(gone),
            failed=tuple(self._failed.values()),
            examples_from_photos=origins.count("photo"),
            examples_from_pictures=origins.count("picture"),
            lost=self._lost(people),
            interrupted=interrupted,
            seconds=perf_counter() - self._start,
        )

    def _gone(self, stored: StoredPhotos) -> list[int]:
        """Return the photos with faces whose files are not there; that is an error unless they may go."""
        gone = [
            (photo, path)
            for path, file in self._library.photos.known_files().items()
            if any(stored.get(photo, (0.0, 0))[1] for photo in file.ids) and not os.path.exists(path)
            for photo in file.ids
        ]
        if gone and not self._options.agree_to_prune(len(gone), len(stored)):
            raise InvalidInputError(
                f"{len(gone):,} of {len(stored):,} photos are not where they were, so their faces cannot be "
                f"described again (the first is {display_path(gone[0][1])}). If a disk is not mounted, mount "
                "it; if they were moved, `setnet index` finds them again; if they are gone for good, --prune "
                "removes them from the library (with --yes if they are more than a tenth)"
            )
        return [photo for photo, _ in gone]

    def _describe(self, made: NewIndex, stored: StoredPhotos, ids: Sequence[int]) -> None:
        if not ids:
            return
        batch: list[DescribedPhoto] = []

        def take(described: DescribedPhoto) -> None:
            photo = described.photo
            if described.reason is not None:
                self._failed[int(photo.id)] = (as_path(photo.stored_path), described.reason)
            else:
                batch.append(described)
                self._described += 1
                self._faces += len(described.descriptors)
            self._show("describing faces", self._described + len(self._failed), len(ids))

        def flush() -> None:
            made.add(batch, stored)
            batch.clear()

        options = self._options
        with PhotoReader(self._settings, options.workers_for(len(ids)), options.limits) as reader:
            results = reader.describe(self._photos(ids), options.should_stop)
            store_in_batches(results, batch, take, flush, options)
        if made.index.stats().segments > MAX_SEGMENTS:
            self._show("tidying up", len(ids), len(ids))
            made.index.compact(lists=False)

    def _photos(self, ids: Sequence[int]) -> Iterator[LibraryPhoto]:
        for start in range(0, len(ids), BATCH_PHOTOS):
            yield from self._library.photos.get_many(map(str, ids[start : start + BATCH_PHOTOS])).values()

    def _replace(self, made: NewIndex, gone: Sequence[int]) -> dict[FaceRow, NewDescriptor]:
        """Stage the new index and a database that goes with it, and put both in place."""
        self._show("describing people", self._described, self._described)
        place = self._library.path
        with self._library.database.reading() as db:
            people = PeopleFaces(db, made.index, self._settings, self._options)
            people.described(face_rows(db))  # most of the work, while others may still change people
            # Nobody changes people while the database is copied; who waited sees that it is another file.
            connected = sqlite3.connect(place / DATABASE, isolation_level=None, timeout=30)
            with stage_new_state(place), closing(connected), transaction(connected):
                described = people.described(face_rows(db))
                link_segments(made.folder / INDEX, place / NEXT_INDEX)
                made.index.backup(place / NEXT_INDEX)
                with database_to_stage(place) as copy:
                    db.backup(copy)
                    self._rewrite(copy, described, gone)
                complete_staging(place)
        made.delete()
        return described

    def _rewrite(
        self, db: sqlite3.Connection, described: Mapping[FaceRow, NewDescriptor], gone: Sequence[int]
    ) -> None:
        """Give a copied database the new descriptors and facts."""
        # without a log of its own, which would have to be moved with it; deleted descriptors leave no trace
        db.execute("PRAGMA journal_mode = DELETE")
        for setting in ("secure_delete", "foreign_keys", "recursive_triggers"):
            db.execute(f"PRAGMA {setting} = ON")
        with transaction(db):
            facts = facts_about(self._settings, self._dim)
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(facts.items()))
            for row, new in described.items():
                if new.vector is None and row.is_example:
                    db.execute(f"DELETE FROM {row.table} WHERE id = ?", (row.id,))
                    continue
                # zeros are like nobody: what was said about the face goes on to hold for that face alone
                vector = np.zeros(self._dim) if new.vector is None else new.vector
                value = vector.astype("<f4").tobytes()
                db.execute(f"UPDATE {row.table} SET descriptor = ? WHERE id = ?", (value, row.id))
            db.executemany("DELETE FROM photos WHERE id = ?", [(photo,) for photo in gone])
            refresh_groups(db)
            mark_unread(db, self._failed)  # the next index run looks at them again
            refresh_checksums(db)
            db.execute("UPDATE sums SET value = value + 1 WHERE name IN ('commits', 'journal')")

    def _lost(self, people: Mapping[FaceRow, NewDescriptor]) -> tuple[tuple[str, Path | None], ...]:
        lost = [row for row, new in people.items() if row.table == "examples" and new.vector is None]
        if not lost:
            return ()
        with self._library.database.reading() as db:  # the old one, in which all names still are
            names = dict(db.execute("SELECT id, name FROM people").fetchall())
        return tuple(
            (names.get(row.person, "?"), None if row.source is None else as_path(row.source)) for row in lost
        )

    def _show(self, stage: str, done: int, total: int) -> None:
        if self._options.progress is not None:
            failed, seconds = len(self._failed), perf_counter() - self._start
            rate = self._pace.rate(done)
            self._options.progress(
                IndexProgress(stage, done, total, self._kept, self._faces, failed, seconds, rate=rate)
            )


_ABOUT = "model.json"


class NewIndex:
    """The new index of a library and what is in it already; begun again when it is of other settings.

    The attribute `stored` of an item is the moment at which the photo's faces were stored: when a photo has
    been indexed again since, its faces are described again.
    """

    def __init__(self, library: Path, settings: FaceSettings, dim: int) -> None:
        self.folder = library / REEMBEDDED
        about, file = json.dumps({"facts": facts_about(settings, dim)}), self.folder / _ABOUT
        if not file.is_file() or file.read_text(encoding="utf-8") != about:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder.mkdir(mode=0o700)
            create_index(self.folder / INDEX, settings, dim)
            replace_file(file, about.encode())
        os.utime(self.folder)  # its week begins
        self.index = SetIndex.open(self.folder / INDEX)

    def __enter__(self) -> NewIndex:
        return self

    def __exit__(self, *_: object) -> None:
        self.index.close()

    def only(self, stored: StoredPhotos) -> set[int]:
        """Take out what does not, or no longer, describe a photo; return the photos that are described."""
        there = {int(item.id): (item.attributes.get("stored"), item.elements) for item in self.index.items()}
        done = {photo for photo, facts in there.items() if stored.get(photo) == facts}
        if other := [str(photo) for photo in there if photo not in done]:
            self.index.delete(other)
        return done

    def add(self, photos: Sequence[DescribedPhoto], stored: StoredPhotos) -> None:
        """Store new descriptors of photos."""
        if not photos:
            return
        self.index.add(
            [photo.id for photo, *_ in photos],
            np.concatenate([described.descriptors for described in photos]),
            [len(described.descriptors) for described in photos],
            attributes=[
                index_attributes(photo.stored_path, taken_number(photo.taken), len(photo.faces), photo.start)
                | {"stored": stored[int(photo.id)][0]}
                for photo, *_ in photos
            ],
        )

    def delete(self) -> None:
        """Delete all of it: the library has taken it over."""
        self.index.close()
        shutil.rmtree(self.folder)


_SMALLEST_IN_PICTURE = 32  # pixels of a face in the picture that is kept of it
# The tables with descriptors, and whether these stand for a person, with a picture.
_TABLES = {"examples": True, "labels": False, "removed_examples": True, "removed_labels": False}


class FaceRow(NamedTuple):
    """A row that has the descriptor of a face, and where that face was seen.

    An example stands for a person by its descriptor; what was said about a face holds without one.
    """

    table: str
    id: int
    is_example: bool
    person: int
    content: bytes | None
    source: bytes | None
    box: Box | None
    picture: bytes | None


class NewDescriptor(NamedTuple):
    """The new descriptor of a row, and whether it comes from a `photo` or a `picture`; None: from nowhere."""

    vector: Vector | None
    origin: str


def face_rows(db: sqlite3.Connection) -> list[FaceRow]:
    """Return every row of the database that has a descriptor."""
    found = []
    for table, is_example in _TABLES.items():
        columns = "source, x0, y0, x1, y1, picture" if is_example else "NULL, x0, y0, x1, y1, NULL"
        rows = db.execute(f"SELECT id, person, content, {columns} FROM {table}")
        for number, person, content, source, *box, picture in rows:
            place = None if None in box else Box(*box)
            found.append(FaceRow(table, number, is_example, person, content, source, place, picture))
    return found


class PeopleFaces:
    """Describes face rows, each once: a second call costs only what is new.

    `db` reads the library's database, and `index` is the new one, with all photos.
    """

    def __init__(
        self, db: sqlite3.Connection, index: SetIndex, settings: FaceSettings, options: RunOptions
    ) -> None:
        self._db, self._index, self._settings, self._options = db, index, settings, options
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
                self._known[row] = self._in_picture(row.picture)
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
        best = _best(row.box, (Box(*place[2:]) for place in there))
        return None if best is None else self._index.elements(str(there[best][0]))[there[best][1]]

    def _in_files(self, rows: Sequence[FaceRow]) -> Iterator[tuple[FaceRow, Vector]]:
        """Yield the descriptors of faces in photos that are not of the library, such as portraits."""
        by_file: dict[bytes, list[FaceRow]] = {}
        for row in rows:
            if row.source is not None and row.box is not None and os.path.isfile(row.source):
                by_file.setdefault(row.source, []).append(row)
        if not by_file:
            return
        workers = self._options.workers_for(len(by_file))
        with PhotoReader(self._settings, workers, self._options.limits) as reader:
            for result in reader.results(map(PhotoTask, by_file)):
                for row in by_file[result.path]:
                    if (vector := _in_photo(row, result)) is not None:
                        yield row, vector

    def _in_picture(self, picture: bytes | None) -> NewDescriptor:
        """Return the descriptor of the face in the picture that is kept of it, if it can be seen there."""
        from setnet.faces import extract_faces

        try:
            settings = replace(self._settings, min_face=_SMALLEST_IN_PICTURE)
            faces = [] if picture is None else extract_faces(picture, settings)
        except SetNetError:  # no picture any more
            faces = []
        if not faces:
            return NewDescriptor(None, "nowhere")
        return NewDescriptor(max(faces, key=lambda face: face.quality.size).descriptor, "picture")


def _in_photo(row: FaceRow, result: PhotoResult) -> Vector | None:
    if row.box is None or result.descriptors is None or row.content not in (None, result.hash):
        return None
    best = _best(row.box, (face.box for face in result.faces))
    return None if best is None else result.descriptors[best]


def _best(box: Box, others: Iterable[Box]) -> int | None:
    """Return which box is of the same face, if any."""
    overlaps = [box.overlap(other) for other in others]
    best = max(range(len(overlaps)), key=overlaps.__getitem__, default=None)
    return best if best is not None and overlaps[best] >= SAME_FACE else None
