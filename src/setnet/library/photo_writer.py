"""Write photos to the two stores of a library, index and database, and delete them from both.

One rule says that the two agree: the items of the index are the photos of the database that are `ready`,
with as many elements as they have faces. A photo is added to the index first and then, in one transaction,
to the database; it is removed from the database first. So a kill between the two leaves items that are no
photo, which no search shows and `recover` deletes. Their numbers tell whether there are any.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from setnet.durable import transaction
from setnet.engine import Item, SetIndex
from setnet.faces import Box
from setnet.heads import unit
from setnet.library.database import Database
from setnet.library.face_references import SAME_FACE, FaceReference, follow_change, resolve_all_references
from setnet.library.folder_scan import is_video_name
from setnet.library.paths import (
    REEMBEDDED,
    THUMBNAILS,
    VLADS,
    display_path,
    folder_text,
    is_shot_path,
    resolve_path,
    shot_path,
    source_file,
)
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.photo_reader import PhotoResult, taken_date
from setnet.library.photos import taken_number
from setnet.library.pictures import SPRITE, THUMBNAIL_SIDE, cache_picture, delete_stale
from setnet.library.schema import members_in, refresh_groups, rejoin_groups

_NEVER = -1  # a modification time no file has: the next run looks at the photo again


class PhotoWriter:
    """Stores and removes photos; needs the index open for writing."""

    def __init__(self, database: Database, index: SetIndex) -> None:
        self._database = database
        self.catalog = PhotoCatalog(database)
        self._index = index
        self._is_copied = False
        self.left_out = [resolve_path(database.path.parent)]

    def _copy_first(self) -> None:
        """Copy the database before the first change of a run, once a day."""
        if not self._is_copied and len(self._index):
            self._database.copy_daily()
        self._is_copied = True

    def recover(self) -> bool:
        """Complete what a killed run left unfinished; return whether something was being forgotten."""
        if not agree(self._database, self._index):
            self.reconcile()
        with self._database.reading() as db:
            (is_purging,) = db.execute("SELECT value FROM sums WHERE name = 'purging'").fetchone()
        if is_purging:
            self.purge()
        return bool(is_purging)

    def reconcile(self) -> list[Item]:
        """Let photos that are not in the index be read again; delete and return items that are no photo."""
        photos, unknown = find_disagreements(self._database, self._index)
        with self._database.writing() as db:
            mark_unread(db, photos)
            refresh_groups(db)
        if unknown:
            self._index.delete([item.id for item in unknown])
            self._index.compact(lists=False)
        return unknown

    def _strip_forgotten(self) -> None:
        """Store photos again, and without thumbnails, that have faces of forgotten people."""
        with self._database.reading() as db:
            places = resolve_all_references(db, [*forgotten_faces(db)])
            rows = [
                row
                for photo in sorted({photo for found in places for photo, _ in found})
                for row in db.execute(  # all shots of a video: what is not stored with the others goes
                    "SELECT id, path, size, mtime_ns, hash, start FROM photos WHERE state = 'ready' "
                    "AND (id = ?1 OR video = (SELECT video FROM photos WHERE id = ?1))",
                    (photo,),
                )
            ]
        found = {
            photo: replace(self.copy_faces(photo, PhotoResult(source_file(path, start), *facts)), path=path)
            for photo, path, *facts, start in rows
        }
        self.store([*found.values()])
        for photo in found:
            for file in (self._database.path.parent / THUMBNAILS).glob(f"*/{photo}-*"):
                file.unlink(missing_ok=True)

    def purge(self) -> None:
        """Leave no trace of deleted photos, and of faces of forgotten people, in any file."""
        self._strip_forgotten()
        library = self._database.path.parent
        if (library / REEMBEDDED).exists():  # it has their faces too
            shutil.rmtree(library / REEMBEDDED)
        (library / VLADS).unlink(missing_ok=True)
        delete_stale(library / THUMBNAILS, self.catalog)  # a server that is making one looks again
        self._index.compact(lists=False)  # deletions in segments are marks until then
        self._database.erase_traces()

    def store(self, results: Sequence[PhotoResult]) -> list[int]:
        """Store what workers found, new, changed and moved files alike, in one step; return their ids."""
        if not results:
            return []
        self._copy_first()
        with self._database.reading() as db:
            results = without_forgotten(db, results)
            ids = _choose_ids(db, results)
            before = {photo: self._descriptors(photo) for photo in ids if members_in(db, photo)}
        good = [(str(i), r) for i, r in zip(ids, results, strict=True) if r.reason is None]
        if good:
            self._add(good)
        with self._database.writing() as db:
            for photo_id, result in zip(ids, results, strict=True):
                if result.moved_from is not None:
                    _move(db, photo_id, result.path)
                elif result.descriptors is not None:
                    _follow(db, result)
                _store(db, photo_id, result, before.get(photo_id))
            gone = _other_shots(db, results)
            delete_photos(db, gone)
        self.drop([*gone, *(i for i, r in zip(ids, results, strict=True) if r.reason is not None)])
        for photo_id, result in zip(ids, results, strict=True):
            for name, picture in ((SPRITE, result.sprite), (str(THUMBNAIL_SIDE), result.thumbnail)):
                if picture:
                    folder = self._database.path.parent / THUMBNAILS
                    cache_picture(folder, str(photo_id), result.hash.hex(), name, picture)
        return ids

    def _descriptors(self, photo: int) -> NDArray[np.float32] | None:
        return self._index.elements(str(photo)) if str(photo) in self._index else None

    def _add(self, photos: Sequence[tuple[str, PhotoResult]]) -> None:
        shape = self._index.shape
        nothing = np.zeros((0, shape.dim), np.float32)
        rows = np.concatenate([nothing, *(r.descriptors for _, r in photos if r.descriptors is not None)])
        if shape.bytes_per_item:  # moved photos are stored again from codes, whose lengths are not 1
            rows = unit(rows)
        self._index.add(
            [i for i, _ in photos],
            rows,
            [len(r.faces) for _, r in photos],
            attributes=[index_attributes(r.file, r.taken, len(r.faces), r.start) for _, r in photos],
        )

    def touch(self, files: Sequence[tuple[int, PhotoResult]]) -> None:
        """Remember the new times of files whose content is the old one."""
        if files:
            with self._database.writing() as db:
                db.executemany(
                    "UPDATE photos SET size = ?, mtime_ns = ? WHERE id = ?",
                    [(result.size, result.mtime_ns, photo_id) for photo_id, result in files],
                )

    def copy_faces(self, photo_id: int, result: PhotoResult) -> PhotoResult:
        """Return a result with the faces of a stored photo of the same content."""
        photo = self.catalog.get(str(photo_id))
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
            colour=photo.colour,
            faces=photo.faces,
            descriptors=self._index.elements(photo.id) if photo.faces else None,
        )

    def remove(self, ids: Sequence[int]) -> None:
        """Remove photos from both stores."""
        if ids:
            self._copy_first()
            with self._database.writing() as db:
                delete_photos(db, ids)
            self.drop(ids)

    def drop(self, ids: Sequence[int]) -> None:
        """Remove photos from the index that are in the database no more."""
        there = [str(i) for i in ids if str(i) in self._index]
        if there:
            self._index.delete(there)


def forgotten_faces(db: sqlite3.Connection) -> Iterator[FaceReference]:
    """Yield what refers to the faces of forgotten people."""
    for content, *box in db.execute("SELECT content, x0, y0, x1, y1 FROM forgotten_faces ORDER BY id"):
        yield FaceReference(content, Box(*box))


def without_forgotten(db: sqlite3.Connection, results: Sequence[PhotoResult]) -> list[PhotoResult]:
    """Return what workers found without the faces of forgotten people."""
    boxes = defaultdict[bytes, list[Box]](list)
    for content, box in forgotten_faces(db):
        boxes[content].append(box)
    return [_without(result, boxes[result.hash]) if result.hash in boxes else result for result in results]


def _without(result: PhotoResult, boxes: Sequence[Box]) -> PhotoResult:
    left = [
        row
        for row, face in enumerate(result.faces)
        if not any(face.box.overlap(box) >= SAME_FACE for box in boxes)
    ]
    return replace(
        result,
        faces=tuple(result.faces[row]._replace(ordinal=place) for place, row in enumerate(left)),
        descriptors=result.descriptors[left] if result.descriptors is not None and left else None,
    )


def agree(database: Database, index: SetIndex) -> bool:
    """Return whether database and index have as many photos and faces: the rule by which they agree."""
    stats = index.stats()
    return PhotoCatalog(database).finished() == (stats.items, stats.elements)


def find_disagreements(database: Database, index: SetIndex) -> tuple[dict[int, str], list[Item]]:
    """Return what is wrong with photos of the database, by id, and the items that are no photo."""
    with database.reading() as db, transaction(db, "BEGIN"):
        known = dict(db.execute("SELECT id, faces FROM photos WHERE state = 'ready'").fetchall())
        counted = dict(db.execute("SELECT photo, count(*) FROM faces GROUP BY photo").fetchall())
    stored: dict[int, int] = {}
    unknown = []
    for item in index:
        photo = int(item.id) if item.id.isdecimal() else -1
        stored[photo] = item.elements
        if photo not in known:
            unknown.append(item)
    wrong = {}
    for photo, faces in known.items():
        if stored.get(photo) != faces:
            wrong[photo] = f"{faces} faces in the database, {stored.get(photo)} in the index"
        elif counted.get(photo, 0) != faces:
            wrong[photo] = f"{faces} faces counted, {counted.get(photo, 0)} described"
    return wrong, unknown


def mark_unread(db: sqlite3.Connection, photos: Iterable[int]) -> None:
    """Let the next run look at photos again; until then no search finds them."""
    db.executemany(
        "UPDATE photos SET state = 'unread', mtime_ns = ? WHERE id = ?", [(_NEVER, i) for i in photos]
    )


def delete_photos(db: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Delete photos from the database; what they are in the index goes afterwards."""
    db.executemany("DELETE FROM photos WHERE id = ?", [(i,) for i in ids])
    refresh_groups(db)


def _choose_ids(db: sqlite3.Connection, results: Sequence[PhotoResult]) -> list[int]:
    """Return the ids that photos have, or will have: only whoever writes the index adds any."""
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'photos'").fetchone()
    new, ids = count(1 + (row[0] if row else 0)), dict[bytes, int]()
    for result in results:
        known = db.execute("SELECT id FROM photos WHERE path = ?", (result.path,)).fetchone()
        if result.path not in ids:
            ids[result.path] = result.moved_from or (known[0] if known else next(new))
    return [ids[result.path] for result in results]


def _store(
    db: sqlite3.Connection, photo_id: int, result: PhotoResult, before: NDArray[np.float32] | None
) -> None:
    """Store a photo; faces that are found again stay in their groups."""
    known = db.execute("SELECT hash FROM photos WHERE id = ?", (photo_id,)).fetchone()
    members = members_in(db, photo_id)
    _store_rows(db, photo_id, result)
    is_same = known is not None and known[0] == result.hash
    if members and result.descriptors is not None and (is_same or before is not None):
        faces = zip([face.box for face in result.faces], result.descriptors, strict=True)
        rejoin_groups(db, photo_id, members, None if is_same else before, list(faces))


def index_attributes(
    path: bytes, taken: float | None, faces: int, start: float | None = None
) -> dict[str, str | int | float | None]:
    """Return the attributes of a photo, or shot, in the index, on which conditions are checked."""
    found = {"folder": folder_text(os.path.dirname(path)), "taken": taken, "faces": faces}
    return found if start is None else found | {"kind": "video"}


def _move(db: sqlite3.Connection, photo_id: int, path: bytes) -> None:
    """Give a photo its new path; examples of people that come from it follow, to be forgotten with it."""
    old, start = db.execute("SELECT path, start FROM photos WHERE id = ?", (photo_id,)).fetchone()
    for table in ("examples", "removed_examples"):
        for now, before in {(path, old), (source_file(path, start), source_file(old, start))}:
            sources = (display_path(now).encode(), display_path(before).encode())
            db.execute(f"UPDATE {table} SET source = ? WHERE source = ?", sources)
    db.execute("UPDATE photos SET path = ? WHERE id = ?", (path, photo_id))


def _follow(db: sqlite3.Connection, result: PhotoResult) -> None:
    """Let what refers to faces of a photo's old content refer to its new one.

    Tags follow to a picture of the same size that was taken at the same time.
    """
    row = db.execute(
        "SELECT hash, width, height, taken FROM photos WHERE path = ?1 AND hash <> ?2 "
        "AND NOT EXISTS (SELECT 1 FROM photos AS copy WHERE copy.hash = photos.hash AND copy.path <> ?1)",
        (result.path, result.hash),
    ).fetchone()
    if row is None:
        return
    old, *facts = row
    if result.descriptors is not None:
        boxes = [face.box for face in result.faces]
        follow_change(db, old, result.hash, list(zip(boxes, result.descriptors, strict=True)))
    if result.taken is not None and facts == [result.width, result.height, result.taken]:
        db.execute("UPDATE OR IGNORE tags SET content = ? WHERE content = ?", (result.hash, old))


def _store_rows(db: sqlite3.Connection, photo_id: int, result: PhotoResult) -> None:
    is_shot = result.start is not None
    values = {
        "id": photo_id,
        "path": result.path,
        "size": result.size,
        "mtime_ns": result.mtime_ns,
        "hash": result.hash or None,
        "taken": result.taken,
        "taken_from": result.taken_from,
        "width": result.width,
        "height": result.height,
        "colour": result.colour,
        "faces": len(result.faces),
        "note": result.note,
        "start": result.start,
        "stop": result.stop if is_shot else None,
        "best": result.best if is_shot else None,
        "video": result.video if is_shot else None,
        "state": "ready" if result.reason is None else "failed",
        "reason": result.reason,
        "stored": time.time(),
    }
    changed = ", ".join(f"{name} = excluded.{name}" for name in values if name != "id")
    db.execute(
        f"INSERT INTO photos ({', '.join(values)}) VALUES ({', '.join('?' * len(values))}) "
        f"ON CONFLICT (id) DO UPDATE SET {changed}",
        list(values.values()),
    )
    db.execute("DELETE FROM faces WHERE photo = ?", (photo_id,))
    db.executemany(
        f"INSERT INTO faces VALUES ({', '.join('?' * 12)})", [(photo_id, *face) for face in result.faces]
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
