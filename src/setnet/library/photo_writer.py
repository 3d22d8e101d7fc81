"""Write photos to the two stores of a library, index and database, and delete them from both.

Each change is three steps: the database marks the photos (`adding` or `removing`), the index takes or
drops their faces, the database marks them done. A kill between two steps leaves a mark that the next run
finds (`recover`); searches leave marked photos out, so no half-stored photo is ever an answer.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from setnet.engine import SetIndex
from setnet.library.database import Database
from setnet.library.face_references import follow_change
from setnet.library.folder_scan import is_video_name
from setnet.library.paths import display_path, file_of, folder_text, is_shot_path, shot_path
from setnet.library.photo_catalog import PhotoCatalog, taken_number
from setnet.library.photo_result import PhotoResult, taken_date
from setnet.library.schema import face_number, members_in, refresh_groups, rejoin_groups

_NEVER = -1  # a modification time no file has: the next run looks at the photo again


class PhotoWriter:
    """Stores and removes photos; needs the index open for writing."""

    def __init__(self, database: Database, index: SetIndex) -> None:
        self._database = database
        self._catalog = PhotoCatalog(database)
        self._index = index

    def recover(self) -> int:
        """Complete what a killed run left unfinished; return how many photos it was removing."""
        unfinished = self._catalog.unfinished()
        removing = [i for i, _, state in unfinished if state == "removing"]
        if removing:
            self.erase(removing)
        with self._database.writing() as db:
            mark_unread(db, [i for i, _, state in unfinished if state == "adding"])
        return len(removing)

    def store(self, results: Sequence[PhotoResult]) -> list[int]:
        """Store what workers found, new, changed and moved files alike, in one step; return their ids."""
        if not results:
            return []
        with self._database.writing() as db:
            for result in results:
                if result.moved_from is not None:
                    _move(db, result.moved_from, result.path)
                elif result.descriptors is not None:
                    _follow(db, result)
            ids = [self._mark(db, result) for result in results]
            old = _other_shots(db, results)
            mark_removed(db, old)
        good = [(str(i), r) for i, r in zip(ids, results, strict=True) if r.reason is None]
        bad = [i for i, r in zip(ids, results, strict=True) if r.reason is not None]
        if good:
            self._add(good)
        self._drop([*bad, *old])
        with self._database.writing() as db:
            db.executemany("DELETE FROM photos WHERE id = ?", [(i,) for i in old])
            db.executemany(
                "UPDATE photos SET state = iif(reason IS NULL, 'ready', 'failed') WHERE id = ?",
                [(i,) for i in ids],
            )
            refresh_groups(db)
        return ids

    def _mark(self, db: sqlite3.Connection, result: PhotoResult) -> int:
        """Store a photo that is being added; faces that are found again stay in their groups."""
        known = db.execute("SELECT id, hash FROM photos WHERE path = ?", (result.path,)).fetchone()
        members = [] if known is None else members_in(db, known[0])
        photo_id = _mark(db, result)
        if members and result.descriptors is not None:
            is_same = known[1] == result.hash
            if is_same or str(photo_id) in self._index:
                before = None if is_same else self._index.elements(str(photo_id))
                boxes = [face.box for face in result.faces]
                rejoin_groups(
                    db, photo_id, members, before, list(zip(boxes, result.descriptors, strict=True))
                )
        return photo_id

    def _add(self, photos: Sequence[tuple[str, PhotoResult]]) -> None:
        found = [r.descriptors for _, r in photos if r.descriptors is not None]
        dim = self._index.shape.dim
        self._index.add(
            [i for i, _ in photos],
            np.concatenate(found) if found else np.zeros((0, dim), np.float32),
            [len(r.faces) for _, r in photos],
            attributes=[attributes_of(r.file, r.taken, len(r.faces), r.start) for _, r in photos],
        )

    def touch(self, files: Sequence[tuple[int, PhotoResult]]) -> None:
        """Remember the new times of files whose content is the old one."""
        if files:
            with self._database.writing() as db:
                db.executemany(
                    "UPDATE photos SET size = ?, mtime_ns = ? WHERE id = ?",
                    [(result.size, result.mtime_ns, photo_id) for photo_id, result in files],
                )

    def copied(self, photo_id: int, result: PhotoResult) -> PhotoResult:
        """Return a result with the faces of a stored photo of the same content."""
        photo = self._catalog.get(str(photo_id))
        if photo.start is not None and photo.stop is not None:
            result = replace(
                result,
                path=shot_path(result.path, photo.start, photo.stop),
                hash=photo.stored_hash,
                start=photo.start,
                stop=photo.stop,
                best=photo.best or photo.start,
                video=photo.stored_video,
            )
        taken, taken_from = taken_number(photo.taken), None
        if photo.taken_from != "exif":
            taken, taken_from = taken_date(result.file, None, result.mtime_ns)
            taken = taken if taken is None else taken + (photo.start or 0)
        return replace(
            result,
            is_known=False,
            taken=taken,
            taken_from=taken_from,
            note=photo.note,
            width=photo.width,
            height=photo.height,
            faces=photo.faces,
            descriptors=self._index.elements(photo.id) if photo.faces else None,
        )

    def remove(self, ids: Sequence[int]) -> None:
        """Remove photos from both stores."""
        if ids:
            with self._database.writing() as db:
                mark_removed(db, ids)
            self._drop(ids)
            self._delete(ids)

    def erase(self, ids: Sequence[int]) -> None:
        """Remove marked photos from both stores for good; the marks stay until no file has their faces."""
        self._drop(ids)
        self._index.compact()  # deletions in segments are marks until then
        self._delete(ids)

    def _delete(self, ids: Sequence[int]) -> None:
        with self._database.writing() as db:
            db.executemany("DELETE FROM photos WHERE id = ?", [(i,) for i in ids])
            refresh_groups(db)

    def _drop(self, ids: Sequence[int]) -> None:
        there = [str(i) for i in ids if str(i) in self._index]
        if there:
            self._index.delete(there)


def mark_removed(db: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Mark photos that are being removed: searches leave them out, and a run after a kill completes it."""
    db.executemany("UPDATE photos SET state = 'removing' WHERE id = ?", [(i,) for i in ids])


def mark_unread(db: sqlite3.Connection, photos: Iterable[int]) -> None:
    """Let the next run look at photos again; until then no search finds them."""
    db.executemany(
        "UPDATE photos SET state = 'adding', mtime_ns = ? WHERE id = ?", [(_NEVER, i) for i in photos]
    )


def attributes_of(
    path: bytes, taken: float | None, faces: int, start: float | None = None
) -> dict[str, str | int | float | None]:
    """Return the attributes of a photo, or shot, in the index, on which conditions are checked."""
    found = {"folder": folder_text(os.path.dirname(path)), "taken": taken, "faces": faces}
    return found if start is None else found | {"kind": "video"}


def _move(db: sqlite3.Connection, photo_id: int, path: bytes) -> None:
    """Give a photo its new path; examples of people that come from it follow, to be forgotten with it."""
    old, start = db.execute(
        "SELECT path, start FROM photos LEFT JOIN shots USING (id) WHERE photos.id = ?", (photo_id,)
    ).fetchone()
    for table in ("examples", "removed_examples"):
        for now, before in {(path, old), (file_of(path, start), file_of(old, start))}:
            sources = (display_path(now).encode(), display_path(before).encode())
            db.execute(f"UPDATE {table} SET source = ? WHERE source = ?", sources)
    db.execute("UPDATE photos SET path = ? WHERE id = ?", (path, photo_id))


def _follow(db: sqlite3.Connection, result: PhotoResult) -> None:
    """Let what refers to faces of a photo's old content refer to its new one."""
    row = db.execute(
        "SELECT hash FROM photos WHERE path = ?1 AND hash <> ?2 "
        "AND NOT EXISTS (SELECT 1 FROM photos AS copy WHERE copy.hash = photos.hash AND copy.path <> ?1)",
        (result.path, result.hash),
    ).fetchone()
    if row is not None and result.descriptors is not None:
        boxes = [face.box for face in result.faces]
        follow_change(db, row[0], result.hash, list(zip(boxes, result.descriptors, strict=True)))


def _mark(db: sqlite3.Connection, result: PhotoResult) -> int:
    (photo_id,) = db.execute(
        "INSERT INTO photos (path, size, mtime_ns, hash, taken, width, height, faces, state, reason, stored) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, 'adding', ?, ?) "
        "ON CONFLICT (path) DO UPDATE SET size = excluded.size, mtime_ns = excluded.mtime_ns, "
        "hash = excluded.hash, taken = excluded.taken, width = excluded.width, height = excluded.height, "
        "faces = excluded.faces, state = 'adding', reason = excluded.reason, stored = excluded.stored "
        "RETURNING id",
        (
            result.path,
            result.size,
            result.mtime_ns,
            result.hash or None,
            result.taken,
            result.width,
            result.height,
            len(result.faces),
            result.reason,
            time.time(),
        ),
    ).fetchone()
    db.execute("DELETE FROM faces WHERE photo = ?", (photo_id,))
    db.executemany(
        "INSERT INTO faces (photo, ordinal, x0, y0, x1, y1, score, landmarks, quality) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(photo_id, *face[:8]) for face in result.faces],
    )
    db.execute(
        "INSERT INTO photo_facts (id, taken_from, note) SELECT ?1, ?2, ?3 "
        "WHERE coalesce(?2, ?3) IS NOT NULL OR EXISTS (SELECT 1 FROM photo_facts WHERE id = ?1) "
        "ON CONFLICT (id) DO UPDATE SET taken_from = excluded.taken_from, note = excluded.note",
        (photo_id, result.taken_from, result.note),
    )
    _mark_shot(db, photo_id, result)
    return int(photo_id)


def _mark_shot(db: sqlite3.Connection, photo_id: int, result: PhotoResult) -> None:
    """Store what a shot has and a photo has not."""
    if result.start is None:
        db.execute("DELETE FROM shots WHERE id = ?", (photo_id,))
        return
    db.execute(
        "INSERT OR REPLACE INTO shots VALUES (?, ?, ?, ?, ?)",
        (photo_id, result.start, result.stop, result.best, result.video),
    )
    db.executemany(
        "INSERT INTO shot_faces VALUES (?, ?, ?, ?)",
        [
            (face_number(photo_id, face.ordinal), face.at, face.seen, face.stored_track)
            for face in result.faces
            if face.at is not None
        ],
    )


def _other_shots(db: sqlite3.Connection, results: Sequence[PhotoResult]) -> list[int]:
    """Return what is stored of the same videos and is not among the results: shots that are no more."""
    kept: dict[bytes, set[bytes]] = {}
    for result in results:
        if result.start is not None or is_video_name(os.path.basename(result.path)):
            kept.setdefault(result.file, set()).add(result.path)
    return [
        photo
        for file, paths in kept.items()
        for photo, path in db.execute(
            "SELECT id, path FROM photos WHERE path = ? OR (path > ? AND path < ?)",
            (file, file + b"/", file + b"0"),  # "0" follows "/"
        )
        if path not in paths and (path == file or is_shot_path(path))
    ]
