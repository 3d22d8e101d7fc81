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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.durable import storage_errors, transaction
from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, NotAnIndexError, SetNetError
from setnet.faces import Box
from setnet.library.backup import complete_staging, database_to_stage, link_segments, stage_new_state
from setnet.library.creation import create_index, facts_about, model_fingerprint, restrict_files
from setnet.library.face_references import find_face
from setnet.library.index_run import (
    BATCH_PHOTOS,
    IndexProgress,
    IndexReport,
    Pace,
    RunOptions,
    store_in_batches,
)
from setnet.library.paths import DATABASE, NEXT_INDEX, REEMBEDDED, as_path, display_path, is_gone
from setnet.library.photo_reader import DescribedPhoto, PhotoReader, PhotoResult, PhotoTask
from setnet.library.photo_writer import index_attributes, mark_unread
from setnet.library.photos import LibraryPhoto, content_hash, taken_number
from setnet.library.schema import refresh_checksums, refresh_groups

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.library.library import Library

Vector = NDArray[np.float32]
StoredPhotos = dict[int, tuple[float, int]]  # when each photo was stored, and its number of faces


def reembed(library: Library, descriptor: str | None, options: RunOptions) -> IndexReport:
    """Describe all faces of a library again; `setnet.library.Library.reembed` says what it means."""
    settings = replace(library.settings, descriptor=descriptor or library.settings.descriptor)
    with storage_errors(library.path), library._lock_writing():
        made_with = library.photos.meta("model")
        if made_with == model_fingerprint(settings) and " " in made_with:  # with the hash of the file
            shutil.rmtree(library.path / REEMBEDDED, ignore_errors=True)  # left by a kill at the very end
            photos = library.photos.finished()[0]
            return IndexReport(scanned=photos, unchanged=photos)
        report = _ReembedRun(library, settings, options).run()
        restrict_files(library.path)
    return report


class _ReembedRun:
    """One run, which completes the new index or leaves it for the next; nobody else may be writing."""

    def __init__(self, library: Library, settings: FaceSettings, options: RunOptions) -> None:
        from setnet.faces import model_entry, model_paths

        entry = model_entry(settings.descriptor, "descriptor")
        model_paths(entry)
        assert entry.dim is not None
        self._library, self._settings, self._options, self._dim = library, settings, options, entry.dim
        self._bytes = library.set_index.shape.bytes_per_item
        self._start, self._pace = perf_counter(), Pace()
        self._described = self._faces = self._kept = 0
        self._failed: dict[int, tuple[Path, str]] = {}

    def run(self) -> IndexReport:
        """Describe what is not yet described and, when all is, put the new state in place."""
        with self._library._database.reading() as db:
            rows = db.execute("SELECT id, stored, faces FROM photos WHERE state = 'ready'")
            stored: StoredPhotos = {photo: (moment, faces) for photo, moment, faces in rows}
        gone = self._gone(stored)
        for photo in gone:
            del stored[photo]
        people: dict[FaceRow, Vector | None] = {}
        interrupted = False
        with open_new_index(self._library.path, self._settings, self._dim, self._bytes) as index:
            done = keep_current(index, stored)
            self._kept = len(done)
            try:
                self._describe(index, stored, [photo for photo in stored if photo not in done])
                people = self._replace(index, gone)
            except KeyboardInterrupt:
                interrupted = True
        if not interrupted:
            shutil.rmtree(self._library.path / REEMBEDDED)  # the library has taken it over
        lost = [row for row, vector in people.items() if row.table == "examples" and vector is None]
        return IndexReport(
            scanned=len(stored),
            unchanged=self._kept,
            changed=self._described,
            faces=self._faces,
            removed=0 if interrupted else len(gone),
            failed=tuple(self._failed.values()),
            lost=tuple((row.person or "?", as_path(row.source) if row.source else None) for row in lost),
            interrupted=interrupted,
            seconds=perf_counter() - self._start,
        )

    def _gone(self, stored: StoredPhotos) -> list[int]:
        """Return the photos with faces whose files are not there; that is an error unless they may go."""
        gone = [
            (photo, path)
            for path, file in self._library.photos.known_files().items()
            if any(stored.get(photo, (0.0, 0))[1] for photo in file.ids) and is_gone(path)
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

    def _describe(self, index: SetIndex, stored: StoredPhotos, ids: Sequence[int]) -> None:
        if not ids:
            return
        batch: list[tuple[LibraryPhoto, Vector]] = []

        def take(found: DescribedPhoto) -> None:
            photo, described = found
            if isinstance(described, str):
                self._failed[int(photo.id)] = (photo.path, described)
            else:
                batch.append((photo, described))
                self._described += 1
                self._faces += len(described)
            self._show("describing faces", self._described + len(self._failed), len(ids))

        def flush() -> None:
            if batch:
                index.add(
                    [photo.id for photo, _ in batch],
                    np.concatenate([vectors for _, vectors in batch]),
                    [len(vectors) for _, vectors in batch],
                    attributes=[
                        index_attributes(p.stored_path, taken_number(p.taken), len(p.faces), p.start)
                        | {"stored": stored[int(p.id)][0]}
                        for p, _ in batch
                    ],
                )
            batch.clear()

        options = self._options
        with PhotoReader(self._settings, options.workers_for(len(ids)), options.limits) as reader:
            results = reader.describe(self._photos(ids), options.should_stop)
            store_in_batches(results, batch, take, flush, options)

    def _photos(self, ids: Sequence[int]) -> Iterator[LibraryPhoto]:
        for start in range(0, len(ids), BATCH_PHOTOS):
            yield from self._library.photos.get_many(map(str, ids[start : start + BATCH_PHOTOS])).values()

    def _replace(self, index: SetIndex, gone: Sequence[int]) -> dict[FaceRow, Vector | None]:
        """Stage the new index and a database that goes with it, and put both in place."""
        self._show("describing people", self._described, self._described)
        place = self._library.path
        # Nobody changes people meanwhile; who waited sees that the database is another file.
        connected = sqlite3.connect(place / DATABASE, isolation_level=None, timeout=30)
        with (
            self._library._database.reading() as db,
            stage_new_state(place),
            closing(connected),
            transaction(connected),
        ):
            people = describe_people(db, index, self._settings, self._options)
            link_segments(index.path, place / NEXT_INDEX)
            index.backup(place / NEXT_INDEX)
            with database_to_stage(place) as copy:
                db.backup(copy)
                self._rewrite(copy, people, gone)
            complete_staging(place)
        return people

    def _rewrite(
        self, db: sqlite3.Connection, people: Mapping[FaceRow, Vector | None], gone: Sequence[int]
    ) -> None:
        """Give a copied database the new descriptors and facts."""
        # without a log of its own, which would have to be moved with it; deleted descriptors leave no trace
        db.execute("PRAGMA journal_mode = DELETE")
        for setting in ("secure_delete", "foreign_keys", "recursive_triggers"):
            db.execute(f"PRAGMA {setting} = ON")
        with transaction(db):
            facts = facts_about(self._settings, self._dim, self._bytes)
            db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(facts.items()))
            for row, new in people.items():
                if new is None and _TABLES[row.table]:
                    db.execute(f"DELETE FROM {row.table} WHERE id = ?", (row.id,))
                    continue
                # zeros are like nobody: what was said about the face goes on to hold for that face alone
                vector = np.zeros(self._dim) if new is None else new
                value = vector.astype("<f4").tobytes()
                db.execute(f"UPDATE {row.table} SET descriptor = ? WHERE id = ?", (value, row.id))
            db.executemany("DELETE FROM photos WHERE id = ?", [(photo,) for photo in gone])
            refresh_groups(db)
            mark_unread(db, self._failed)  # the next index run looks at them again
            refresh_checksums(db)
            db.execute("UPDATE sums SET value = value + 1 WHERE name IN ('commits', 'journal')")

    def _show(self, stage: str, done: int, total: int) -> None:
        if self._options.progress is not None:
            failed, seconds = len(self._failed), perf_counter() - self._start
            rate = self._pace.rate(done)
            self._options.progress(
                IndexProgress(stage, done, total, self._kept, self._faces, failed, seconds, rate=rate)
            )


def open_new_index(library: Path, settings: FaceSettings, dim: int, bytes_per_photo: int = 0) -> SetIndex:
    """Return the new index of a library, which a run before may have begun with the same settings.

    The attribute `stored` of an item is the moment at which the photo's faces were stored: when a photo has
    been indexed again since, its faces are described again.
    """
    facts = json.dumps(facts_about(settings, dim, bytes_per_photo))
    place = library / REEMBEDDED / content_hash(facts.encode()).hex()
    try:
        index = SetIndex.open(place)
    except NotAnIndexError:
        shutil.rmtree(library / REEMBEDDED, ignore_errors=True)
        place.parent.mkdir(mode=0o700)
        create_index(place, settings, dim, bytes_per_photo)
        index = SetIndex.open(place)
    os.utime(place.parent)  # its week begins
    return index


def keep_current(index: SetIndex, stored: StoredPhotos) -> set[int]:
    """Delete items that do not, or no longer, describe a photo; return the photos that are described."""
    there = {int(item.id): (item.attributes.get("stored"), item.elements) for item in index}
    done = {photo for photo, facts in there.items() if stored.get(photo) == facts}
    if other := [str(photo) for photo in there if photo not in done]:
        index.delete(other)
    return done


_SMALLEST_IN_PICTURE = 32  # pixels of a face in the picture that is kept of it
# The tables with descriptors, and whether these stand for a person, with a picture.
_TABLES = {"examples": True, "labels": False, "removed_examples": True, "removed_labels": False}


class FaceRow(NamedTuple):
    """A row that has the descriptor of a face, and where that face was seen.

    An example stands for a person by its descriptor; what was said about a face holds without one.
    """

    table: str
    id: int
    person: str | None
    content: bytes | None
    source: bytes | None
    box: Box | None
    picture: bytes | None


def face_rows(db: sqlite3.Connection) -> list[FaceRow]:
    """Return every row of the database that has a descriptor."""
    found = []
    for table, is_example in _TABLES.items():
        columns = "source, x0, y0, x1, y1, picture" if is_example else "NULL, x0, y0, x1, y1, NULL"
        name = f"(SELECT name FROM people WHERE people.id = {table}.person)"
        rows = db.execute(f"SELECT id, {name}, content, {columns} FROM {table}")
        for number, person, content, source, *box, picture in rows:
            place = None if None in box else Box(*box)
            found.append(FaceRow(table, number, person, content, source, place, picture))
    return found


def describe_people(
    db: sqlite3.Connection, index: SetIndex, settings: FaceSettings, options: RunOptions
) -> dict[FaceRow, Vector | None]:
    """Return the new descriptor of each row with one: from the new index, the face's file, or its picture."""
    found = {row: _in_index(db, index, row) for row in face_rows(db)}
    found |= _in_files([row for row, vector in found.items() if vector is None], settings, options)
    return {row: _in_picture(row, settings) if vector is None else vector for row, vector in found.items()}


def _in_index(db: sqlite3.Connection, index: SetIndex, row: FaceRow) -> Vector | None:
    """Return the descriptor of the face in a photo of the library: by content, else by path."""
    if row.box is None:
        return None
    places = db.execute(
        "SELECT photo, ordinal, x0, y0, x1, y1 FROM photos JOIN faces ON photo = photos.id "
        f"WHERE {'hash = ?1' if row.content is not None else 'path = ?1'} AND state = 'ready' "
        "ORDER BY photo, ordinal",
        (row.content if row.content is not None else row.source,),
    ).fetchall()
    there = [place for place in places if str(place[0]) in index]
    best = find_face(row.box, [Box(*place[2:]) for place in there])
    return None if best is None else index.elements(str(there[best][0]))[there[best][1]]


def _in_files(
    rows: Iterable[FaceRow], settings: FaceSettings, options: RunOptions
) -> dict[FaceRow, Vector | None]:
    """Return the descriptors of faces in photos that are not of the library, such as portraits."""
    by_file: dict[bytes, list[FaceRow]] = {}
    for row in rows:
        if row.source is not None and row.box is not None and os.path.isfile(row.source):
            by_file.setdefault(row.source, []).append(row)
    if not by_file:
        return {}
    with PhotoReader(settings, options.workers_for(len(by_file)), options.limits) as reader:
        return {
            row: _in_photo(row, result)
            for result in reader.results(map(PhotoTask, by_file))
            for row in by_file[result.path]
        }


def _in_photo(row: FaceRow, result: PhotoResult) -> Vector | None:
    if row.box is None or result.descriptors is None or row.content not in (None, result.hash):
        return None
    best = find_face(row.box, [face.box for face in result.faces])
    return None if best is None else result.descriptors[best]


def _in_picture(row: FaceRow, settings: FaceSettings) -> Vector | None:
    """Return the descriptor of the face in the picture that is kept of it, if it can be seen there."""
    from setnet.faces import extract_faces

    if row.picture is None:
        return None
    with suppress(SetNetError):  # no picture any more
        faces = extract_faces(row.picture, replace(settings, min_face=_SMALLEST_IN_PICTURE))
        if faces:
            return max(faces, key=lambda face: face.quality.size).descriptor
    return None
