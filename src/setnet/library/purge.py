"""Deletes people and photos for good.

People, examples and labels leave the journal too, photos the index and the thumbnails. Functions for
calls inside one transaction leave it to `Database.erase_traces` to overwrite the pages afterwards.
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from pathlib import Path

from setnet.engine import SetIndex
from setnet.errors import InvalidInputError, StorageError
from setnet.faces import Box
from setnet.library.database import Database
from setnet.library.face_references import FaceReference, refer_to_face
from setnet.library.paths import FILES, FOLDERS, INDEX, QUARANTINE, display_path, is_below, resolve_path
from setnet.library.people_edits import searches_with
from setnet.library.person import Person, name_key, require_person
from setnet.library.photo_writer import PhotoWriter, delete_photos
from setnet.library.undo import drop_unused_rows, erase_changes, record_final
from setnet.library.undo import removed_people as gone_people
from setnet.wording import pluralise

REMOVAL = "remove"  # the kind of a change that removed people
_ROWS = ("examples", "labels")  # with descriptors, and tables beside them where removed ones wait


def note_purge(db: sqlite3.Connection) -> None:
    """Note that files have traces of what is deleted, for `Database.erase_traces`, or the next run."""
    db.execute("UPDATE sums SET value = 1 WHERE name = 'purging'")


def erase_people(db: sqlite3.Connection, people: Sequence[int]) -> None:
    """Delete people with all that is theirs, searches with them, and every change that concerned one of them.

    Who was merged into one of them is that person too.
    """
    note_purge(db)
    there = db.execute(
        "SELECT uid FROM people WHERE id IN (SELECT value FROM json_each(?))", (json.dumps(list(people)),)
    )
    ids = [uid for (uid,) in there.fetchall()]
    ids += [gone["uid"] for row, gone in gone_people(db, REMOVAL).items() if row in people]
    _erase_rows(db, "searches", searches_with(db, ids))
    for table in _ROWS:
        rows = [
            row
            for person in people
            for place in (table, f"removed_{table}")
            for (row,) in db.execute(f"SELECT id FROM {place} WHERE person = ?", (person,))
        ]
        _erase_rows(db, table, rows)
    db.executemany("DELETE FROM people WHERE id = ?", [(person,) for person in people])
    erase_changes(db, _changes_about(db, people))


def removed_people(db: sqlite3.Connection, name: str) -> list[int]:
    """Return the rows of people of a name or id who were removed and wait for an undo."""
    return [
        row for row, was in gone_people(db, REMOVAL).items() if name_key(name) in (was["key"], was["uid"])
    ]


def _changes_about(db: sqlite3.Connection, people: Sequence[int]) -> list[int]:
    """Return the changes that concerned people, or those who are gone since a change that they share."""
    changes = {
        number: set(json.loads(about)) for number, about in db.execute("SELECT id, people FROM changes")
    }
    there = {row for (row,) in db.execute("SELECT id FROM people")}
    there |= gone_people(db, REMOVAL).keys()  # may come back
    gone, found = set(people), list[int]()
    while True:
        shared = [number for number, about in changes.items() if about & gone]
        if len(shared) == len(found):
            return found
        found = shared
        gone.update(person for number in found for person in changes[number] - there)


def erase_examples(db: sqlite3.Connection, numbers: Iterable[int]) -> None:
    """Delete examples, and every trace of them in the journal."""
    _erase_rows(db, "examples", numbers)
    _tidy_history(db)


def erase_photos(db: sqlite3.Connection, roots: Sequence[bytes], contents: Sequence[bytes]) -> int:
    """Delete what comes from photos: the examples of these paths, or below them, and labels on `contents`.

    Examples that the library itself took from a photo go by its content: where a copy of it stays, so do
    they. Whoever loses their last example stays, without any. Returns how many examples, labels and tags were
    deleted.
    """
    places, hashes = [display_path(root).encode() for root in roots], set(contents)
    examples: list[int] = []
    labels: list[int] = []
    for place in ("examples", "removed_examples"):
        _name_copies(db, place, places)
        rows = db.execute(f"SELECT id, source, origin, content FROM {place}").fetchall()
        examples += [
            number
            for number, source, origin, content in rows
            if _is_below(source, places) or (origin != "portrait" and content in hashes)
        ]
    tags = _erase_tags(db, hashes)
    for place in ("labels", "removed_labels"):
        rows = db.execute(f"SELECT id, content FROM {place}").fetchall()
        labels += [number for number, content in rows if content in hashes]
    _erase_rows(db, "examples", examples)
    _erase_rows(db, "labels", labels)
    _tidy_history(db)
    erased = len(examples) + len(labels) + tags
    if erased:
        record_final(db, f"forgot {pluralise(erased, 'face')} of people with the photos they came from")
    return erased


def _erase_tags(db: sqlite3.Connection, contents: Iterable[bytes]) -> int:
    """Delete the tags of photos, and what the history says of tags there were; return how many."""
    rows = [
        row
        for content in sorted(contents)
        for (row,) in db.execute(
            "SELECT id FROM tags WHERE content = ?1 UNION SELECT row FROM changed_rows "
            "WHERE tbl = 'tags' AND instr(before, quote(?1))",
            (content,),
        )
    ]
    _erase_rows(db, "tags", rows)
    return len(rows)


def _name_copies(db: sqlite3.Connection, table: str, places: Sequence[bytes]) -> None:
    """Let examples that the library took from photos about to go come from a copy that stays."""
    rows = db.execute(
        f"SELECT {table}.id, source, path FROM {table} JOIN photos ON hash = content AND state = 'ready' "
        "WHERE origin <> 'portrait'"
    )
    copies = {number: path for number, source, path in rows.fetchall() if _is_below(source, places)}
    db.executemany(
        f"UPDATE {table} SET source = ? WHERE id = ?",
        [(display_path(path).encode(), number) for number, path in copies.items()],
    )


def _is_below(source: bytes | None, places: Sequence[bytes]) -> bool:
    if source is None:
        return False
    path = os.path.normpath(display_path(source)).encode()
    return any(is_below(path, place) for place in places)


def _erase_rows(db: sqlite3.Connection, table: str, rows: Iterable[int]) -> None:
    """Delete rows that are there or removed, and what the journal says of them."""
    note_purge(db)
    keys = [(row,) for row in rows]
    for place in (table, f"removed_{table}") if table in _ROWS else (table,):
        db.executemany(f"DELETE FROM {place} WHERE id = ?", keys)
    db.executemany(f"DELETE FROM changed_rows WHERE tbl = '{table}' AND row = ?", keys)


def _tidy_history(db: sqlite3.Connection) -> None:
    """Take covers back that were erased, and drop what the history could not bring back."""
    db.execute("UPDATE people SET cover = NULL WHERE cover NOT IN (SELECT id FROM examples)")
    drop_unused_rows(db)


def forget(database: Database, index: SetIndex, paths: Sequence[str | os.PathLike[str]]) -> int:
    """Remove photos, or all photos below folders, from every file of the library; return how many.

    Examples of people that come from these photos go too, whether or not the photos were indexed, and what
    was confirmed or rejected in them. So do files of runs that were killed, which may be about any photo.
    """
    writer = PhotoWriter(database, index)
    aside = database.path.parent / INDEX / QUARANTINE
    was_killed = writer.recover() or (aside.is_dir() and any(aside.iterdir()))
    roots = [resolve_path(path) for path in paths]
    with database.writing() as db:  # in one step: after a kill the next run does the rest
        found = (db.execute(f"SELECT id FROM photos WHERE {_BELOW}", _limits(root)) for root in roots)
        ids = sorted({photo for rows in found for (photo,) in rows})
        # folders inside go too: the next run must not bring them back
        forgotten = db.executemany(f"DELETE FROM folders WHERE {_BELOW}", map(_limits, roots)).rowcount
        examples = erase_photos(db, roots, _contents_leaving(db, ids))
        if not ids and not forgotten and not examples and not was_killed:
            raise InvalidInputError(f"the library knows no photo in {', '.join(map(display_path, roots))}")
        delete_photos(db, ids)
        note_purge(db)
    writer.drop(ids)
    writer.purge()
    return len(ids)


def forget_person(
    database: Database, index: SetIndex, person: Person, faces: Iterable[tuple[str, int]]
) -> int:
    """Remove a person and their faces from every file of the library; return from how many photos.

    What was said of these faces about others goes too. The photos stay, with all other faces; no index run
    brings the person's back.
    """
    writer = PhotoWriter(database, index)
    writer.recover()
    with database.writing() as db:  # in one step: after a kill the next run does the rest
        places = sorted(set(faces))
        erase_people(db, [require_person(db, person)])
        for photo, face in places:
            reference = refer_to_face(db, int(photo), face)
            _erase_face(db, reference)
            db.execute(
                "INSERT INTO forgotten_faces (content, x0, y0, x1, y1) VALUES (?, ?, ?, ?, ?)",
                (reference.content, *map(float, reference.box)),
            )
        _tidy_history(db)
        record_final(db, f"forgot a person in {pluralise(len({photo for photo, _ in places}), 'photo')}")
    writer.purge()
    return len({photo for photo, _ in places})


def _erase_face(db: sqlite3.Connection, reference: FaceReference) -> None:
    """Delete all examples and labels of a face, whoever they are about."""
    for table in _ROWS:
        rows = [
            number
            for place in (table, f"removed_{table}")
            for number, *box in db.execute(
                f"SELECT id, x0, y0, x1, y1 FROM {place} WHERE content = ? AND x0 IS NOT NULL",
                (reference.content,),
            )
            if reference.is_same(FaceReference(reference.content, Box(*box)))
        ]
        _erase_rows(db, table, rows)


def _contents_leaving(db: sqlite3.Connection, ids: Sequence[int]) -> list[bytes]:
    """Return the contents of photos of which no copy stays."""
    leaving = set(ids)
    rows = db.execute("SELECT id, hash FROM photos WHERE hash IS NOT NULL").fetchall()
    stay = {content for photo, content in rows if photo not in leaving}
    return sorted({content for photo, content in rows if photo in leaving} - stay)


_BELOW = "path = ? OR (path > ? AND path < ?)"


def _limits(root: bytes) -> tuple[bytes, bytes, bytes]:
    inside = root.rstrip(b"/") + b"/"
    return root, inside, inside[:-1] + b"0"  # "0" follows "/"


def delete_files(path: Path) -> None:
    """Delete a library's own files; its folder goes too unless something else lies in it."""
    try:
        for name in FOLDERS:
            if (path / name).exists():
                shutil.rmtree(path / name)
        for name in FILES:
            (path / name).unlink(missing_ok=True)
        if not os.listdir(path):
            path.rmdir()
    except OSError as error:
        raise StorageError(
            f"cannot delete all of {display_path(path)}: {error}; delete the folder yourself"
        ) from error
