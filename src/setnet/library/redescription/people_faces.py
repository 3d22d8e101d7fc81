"""The faces that stand for people in a library's database, described anew by another model.

These are the rows with a descriptor of their own: example faces, and whatever else was said about single
faces. Each is looked for where its descriptor came from: among the photos that were just described, else in
the file it was taken from, else in the small picture that is kept of it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from setnet.engine import SetIndex
from setnet.errors import SetNetError
from setnet.faces import Box
from setnet.library.indexing.photo_reader import PhotoReader
from setnet.library.indexing.photo_result import PhotoTask
from setnet.library.store.face_references import SAME_FACE

if TYPE_CHECKING:
    from setnet.faces import FaceSettings
    from setnet.library.indexing.photo_result import PhotoResult
    from setnet.sandbox import Limits

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
        from setnet.faces import faces_of

        if picture is None:
            return None
        try:
            faces = faces_of(picture, replace(self._settings, min_face=_SMALLEST_IN_PICTURE))
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
