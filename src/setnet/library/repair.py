"""Repairs a library: the index from its segments, the database from its good rows, then both together.

The precious part is the people and their example faces: names, verdicts, and a journal that is whole.
Photos whose records are lost are read again by the next `setnet index`, as is a video that lost some of its
shots; groups that are lost are grouped again.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from setnet.durable import transaction
from setnet.engine import Item, SetIndex
from setnet.errors import InvalidInputError, NotAnIndexError, SetNetError, StorageError
from setnet.library.backup import complete_staging, database_to_stage, stage_new_state
from setnet.library.check import find_damage, find_disagreements
from setnet.library.creation import create_index, facts_about
from setnet.library.database import CommitRecord, Database
from setnet.library.library import open_index
from setnet.library.paths import DATABASE, INDEX, NEXT_INDEX, SCRATCH, display_path, is_shot_path
from setnet.library.person import ORIGINS, is_id, key_of
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.photo_writer import mark_unread
from setnet.library.row_sums import COLUMNS, register_row_hash
from setnet.library.salvage import Row, Salvage, copy_database, salvage
from setnet.library.schema import FACES, migrate, refresh_groups
from setnet.system import FileLock
from setnet.wording import pluralise

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_LARGEST_NORM_ERROR = 1e-3
_JOURNAL = ("changes", "changed_rows", "removed_examples", "removed_verdicts")
_LOST: Mapping[str, tuple[str, str, str | None]] = {
    "people": ("names of {}: who has example faces is 'recovered person N' now", "person", "people"),
    "examples": ("{} of people", "example face", None),
    "aliases": ("{} of people", "other name", None),
    "verdicts": ("{} confirmed or refused", "face that was", "faces that were"),
}


def save_people(db: sqlite3.Connection, old: Salvage, dim: int) -> list[str]:
    """Write what can be read of people to a new database; return what is lost, in sentences."""
    # A name that fits its key is whole, and so is a descriptor of length 1, whatever the checksums say.
    people = old.rows("people", lambda row: key_of(str(row[1])) == row[2])
    save_rows(db, "people", map(_with_id, people))
    save_rows(
        db, "examples", map(_with_origin, old.rows("examples", lambda row: _is_descriptor(row[2], dim)))
    )
    db.executemany(
        "INSERT OR IGNORE INTO people (id, name, key, added, uid) VALUES (?, ?, ?, 0, ?)", _lost_rows(db)
    )
    for table in ("aliases", "verdicts"):
        save_rows(db, table, old.rows(table))
        db.execute(f"DELETE FROM {table} WHERE person NOT IN (SELECT id FROM people)")
    db.execute("UPDATE people SET cover = NULL WHERE cover NOT IN (SELECT id FROM examples)")
    is_journal_lost = _save_journal(db, old)
    for table in ("people", "examples", "aliases", "verdicts"):
        count_on(db, table)
    lost = [
        text.format(pluralise(old.lost[table], one, many))
        for table, (text, one, many) in _LOST.items()
        if old.lost[table]
    ]
    if is_journal_lost:
        lost.append("the journal of changes of people: they cannot be undone any more")
    if not old.has("people") or not old.has("examples"):
        lost.append("all saved people and their example faces: save them again (`setnet people add`)")
    return lost


def save_rows(db: sqlite3.Connection, table: str, rows: Iterable[Sequence[Any]]) -> None:
    """Write rows with all columns of a table; one that was never valid is left out.

    Only a row whose checksum was not verified can be that.
    """
    columns = COLUMNS[table].split()
    marks = ", ".join("?" * len(columns))
    db.executemany(f"INSERT OR IGNORE INTO {table} ({', '.join(columns)}) VALUES ({marks})", rows)


def _save_journal(db: sqlite3.Connection, old: Salvage) -> bool:
    """Save the journal, or nothing of it: a change that is known in part cannot be undone.

    Returns whether something was lost.
    """
    for table in _JOURNAL:
        save_rows(db, table, old.rows(table))
    is_whole = not old.has_gaps and not any(old.lost[table] for table in _JOURNAL)
    is_lost = not is_whole and (
        any(old.lost[table] for table in _JOURNAL)
        or db.execute("SELECT count(*) FROM changes").fetchone()[0] > 0
    )
    if not is_whole:
        for table in _JOURNAL:
            db.execute(f"DELETE FROM {table}")
    return is_lost


def _with_id(row: Row) -> Row:
    number, name, key, added, uid, note, cover = row
    uid = uid if isinstance(uid, str) and is_id(uid) else _made_id(number, name, added)
    return number, name, key, added, uid, note or "", cover


def _with_origin(row: Row) -> Row:
    *first, origin, content = row
    return *first, origin if origin in ORIGINS else "portrait", content


def _lost_rows(db: sqlite3.Connection) -> Iterator[tuple[int, str, str, str]]:
    """Yield who has example faces and no name."""
    rows = db.execute("SELECT DISTINCT person FROM examples WHERE person NOT IN (SELECT id FROM people)")
    for (person,) in rows.fetchall():
        name = f"recovered person {person}"
        yield person, name, name, _made_id(person, name, 0)


def _made_id(*facts: object) -> str:
    """Return an id that is the same whenever the same is repaired: what was read twice is compared."""
    return blake2b(repr(facts).encode("utf-8", "backslashreplace"), digest_size=6).hexdigest()


def count_on(db: sqlite3.Connection, table: str) -> None:
    """Let the numbers of new rows go on after all that are known of."""
    db.execute(
        f"UPDATE sums SET value = max(coalesce((SELECT max(id) FROM {table}), 0), "
        "coalesce((SELECT max(row) FROM changed_rows WHERE tbl = ?1), 0)) WHERE name = ?1",
        (table,),
    )


def _is_descriptor(value: Any, dim: int) -> bool:
    if not isinstance(value, bytes) or len(value) != 4 * dim:
        return False
    vector = np.frombuffer(value, "<f4").astype(np.float64)
    return bool(abs(np.linalg.norm(vector) - 1.0) < _LARGEST_NORM_ERROR)


def save_groups(db: sqlite3.Connection, old: Salvage) -> list[str]:
    """Write the groups that can be read to a new database with photos and people; return what is lost."""
    save_rows(db, "face_groups", old.rows("face_groups"))
    save_rows(db, "group_members", old.rows("group_members"))
    lost = old.lost["face_groups"] + old.lost["group_members"]
    db.execute("UPDATE face_groups SET person = NULL WHERE person NOT IN (SELECT id FROM people)")
    db.execute(
        "DELETE FROM group_members WHERE grp NOT IN (SELECT id FROM face_groups) OR NOT EXISTS "
        f"(SELECT 1 FROM faces WHERE photo = group_members.id / {FACES} "
        f"AND ordinal = group_members.id % {FACES})"
    )
    db.execute("UPDATE face_groups SET stale = 1")  # also those that have lost all their members
    count_on(db, "face_groups")
    refresh_groups(db)
    return [f"{lost} groups of faces or faces in them: `setnet index` groups them again"] if lost else []


def save_facts(db: sqlite3.Connection, old: Salvage) -> None:
    """Write the facts about photos that can be read to a new database that has the photos."""
    save_rows(db, "photo_facts", old.rows("photo_facts"))
    db.execute("DELETE FROM photo_facts WHERE id NOT IN (SELECT id FROM photos)")


def save_shots(db: sqlite3.Connection, old: Salvage) -> None:
    """Write the shots that can be read to a new database that has the photos."""
    save_rows(db, "shots", old.rows("shots"))
    save_rows(db, "shot_faces", old.rows("shot_faces"))
    db.execute("DELETE FROM shots WHERE id NOT IN (SELECT id FROM photos)")
    db.execute(
        "DELETE FROM shot_faces WHERE NOT EXISTS "
        f"(SELECT 1 FROM faces WHERE photo = shot_faces.id / {FACES} AND ordinal = shot_faces.id % {FACES})"
    )
    lost = [
        (photo, path)
        for photo, path in db.execute("SELECT id, path FROM photos WHERE id NOT IN (SELECT id FROM shots)")
        if is_shot_path(path)
    ]
    for photo, path in lost:
        db.execute("DELETE FROM photos WHERE id = ?", (photo,))
        video = os.path.dirname(path)
        rest = db.execute("SELECT id FROM photos WHERE path > ? AND path < ?", (video + b"/", video + b"0"))
        mark_unread(db, [row[0] for row in rest.fetchall()])


_ATTEMPTS = 5  # to read the same twice in a row
_LOST_ROWS = {
    "folders": ("{} to index: name them again (`setnet index FOLDER...`)", "folder"),
    "photos": ("what was known of {}: `setnet index` reads them again", "photo"),
}


class Staged(NamedTuple):
    """What a staged database was written with, what it lacks, and a hash of its rows."""

    settings: FaceSettings
    dim: int
    lost: tuple[str, ...]
    rows: str


@dataclass(frozen=True, slots=True)
class LibraryRepair:
    """What a library holds after a repair, and what could not be saved.

    Attributes
    ----------
    photos, people
        How many there are now.
    to_read
        How many photos the next `setnet index` reads again.
    lost
        One sentence per kind of data that could not be saved.
    folders
        Where photos lay of which the database knows nothing any more.
    """

    photos: int
    people: int
    to_read: int
    lost: tuple[str, ...]
    folders: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return asdict(self)


def repair(library: Path, *, revive: bool = False) -> LibraryRepair:
    """Repair the library in a folder; `setnet.library.Library.repair` says what it means."""
    if not (library / DATABASE).exists() and not (library / INDEX).is_dir():
        raise NotAnIndexError(
            f"{display_path(library)} holds nothing of a library: there is nothing to repair"
        )
    with suppress(FileNotFoundError):
        FileLock(library / INDEX / "lock").close()  # nobody may be writing
    with stage_new_state(library):
        return _Repair(library, revive).run()


class _Repair:
    def __init__(self, library: Path, revive: bool) -> None:
        self.library, self.revive = library, revive
        self.lost: list[str] = []
        self.lost_photos = 0

    def run(self) -> LibraryRepair:
        scratch = self.library / SCRATCH  # emptied with all that is staged
        scratch.mkdir(mode=0o700)
        is_sound = _is_sound(copy_database(self.library, scratch))
        with salvage(copy_database(self.library, scratch)) as old:
            commits = self._next_commit(old)
        dim = self._repair_index()
        if not is_sound or dim is None:
            self._rebuild(scratch, commits, dim)
        with closing(Database(self.library / DATABASE)) as database:
            with open_index(self.library) as index:
                unknown = _reconcile(database, index)
            counts = PhotoCatalog(database).counts()
        return LibraryRepair(
            photos=counts.photos,
            people=counts.people,
            to_read=counts.unfinished + max(len(unknown), self.lost_photos),
            lost=tuple(self.lost),
            folders=tuple(_folders_of(unknown)),
        )

    def _next_commit(self, old: Salvage) -> int:
        """Return the number of the repair as a commit; refuse when it could bring back what was forgotten."""
        recorded, stored = CommitRecord(self.library / DATABASE).highest() or 0, old.commits()
        if stored is not None and stored < recorded:
            if not self.revive:
                raise InvalidInputError(
                    f"the last {recorded - stored} changes of {display_path(self.library / DATABASE)} are "
                    "lost, and nothing says whether they forgot people or photos: a repair may bring these "
                    "back. Allow it with `setnet repair --revive` (revive=True), or restore a backup"
                )
            self.lost.append(f"the last {recorded - stored} changes of people, photos and folders")
        return max(recorded, stored or 0) + 1

    def _repair_index(self) -> int | None:
        """Return the dimension of the index, repaired where it must be; None when it is lost."""
        index = self.library / INDEX
        with suppress(SetNetError), SetIndex.open(index, read_only=True) as opened:
            if opened.check().ok:
                return opened.shape.dim
        try:
            # With `revive`: the database tells which items are photos, whatever comes back.
            done = SetIndex.repair(index, revive=True)
        except (NotAnIndexError, StorageError) as error:
            if error.__cause__ is not None:  # the disk failed, which may pass
                raise
            self.lost.append(f"the index of faces: {error}")
            return None
        self.lost += [f"index of faces: {text}" for text in done.lost if text.startswith("segment")]
        with SetIndex.open(index, read_only=True) as opened:
            return opened.shape.dim

    def _rebuild(self, scratch: Path, commits: int, dim: int | None) -> None:
        """Put a database in place with the rows that are good, and a new index where it is lost."""
        settings, dim_of_rows, *_ = self._stage_rows(scratch, commits, dim)
        if dim is None:
            create_index(self.library / NEXT_INDEX, settings, dim_of_rows)
        complete_staging(self.library)

    def _stage_rows(self, scratch: Path, commits: int, dim: int | None) -> Staged:
        """Stage the good rows, as they were read twice in a row.

        SQLite may take a read that fails for damage, or for an empty table.
        """
        before, earlier = list(self.lost), None
        for _ in range(_ATTEMPTS):
            self.lost = list(before)
            with salvage(copy_database(self.library, scratch)) as old:
                staged = self._stage_once(old, commits, dim)
            if staged == earlier:
                return staged
            earlier = staged
        raise StorageError(
            f"{display_path(self.library / DATABASE)} reads differently each time: its disk fails. Copy the "
            "library to another disk and repair it there"
        )

    def _stage_once(self, old: Salvage, commits: int, dim: int | None) -> Staged:
        with database_to_stage(self.library) as db:
            register_row_hash(db)
            migrate(db)
            with transaction(db):
                settings, dim_of_rows = self._save_settings(db, old, dim)
                self._save_rows(db, old, dim_of_rows)
                db.execute("UPDATE sums SET value = ? WHERE name = 'commits'", (commits,))
            rows = db.execute("SELECT name, key, value FROM row_sums ORDER BY name, key")
            return Staged(settings, dim_of_rows, tuple(self.lost), _hash_of(rows))

    def _save_settings(
        self, db: sqlite3.Connection, old: Salvage, dim: int | None
    ) -> tuple[FaceSettings, int]:
        from setnet.faces import FaceSettings, model_entry

        facts: dict[str, str] = dict(old.rows("meta"))
        settings = FaceSettings()
        try:
            settings = FaceSettings.from_dict(json.loads(facts["settings"]))
        except (AttributeError, KeyError, TypeError, ValueError, SetNetError):
            facts.pop("model", None)
            if dim is None:
                raise NotAnIndexError(
                    f"neither database nor index in {display_path(self.library)} can be read: restore a "
                    "backup (`setnet restore`), or delete the folder and index the photos again"
                ) from None
            self.lost.append("the settings of detector and descriptor: the defaults are taken")
        made_by = model_entry(settings.descriptor, "descriptor").dim or 0
        if dim not in (None, made_by):
            raise StorageError(
                f"the index in {display_path(self.library)} has descriptors of {dim} numbers, the model "
                f"{settings.descriptor!r} makes {made_by}: the settings are lost, restore a backup"
            )
        facts = facts_about(settings, made_by) | facts
        db.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", list(facts.items()))
        return settings, made_by

    def _save_rows(self, db: sqlite3.Connection, old: Salvage, dim: int) -> None:
        for table in ("folders", "photos", "faces"):
            save_rows(db, table, old.rows(table))
        db.execute("DELETE FROM faces WHERE photo NOT IN (SELECT id FROM photos)")
        save_facts(db, old)
        save_shots(db, old)
        lost_people = save_people(db, old, dim) + save_groups(db, old)
        self.lost_photos = old.lost["photos"]
        for table, (text, one) in _LOST_ROWS.items():
            self.lost += [text.format(pluralise(old.lost[table], one))] if old.lost[table] else []
        self.lost += lost_people
        if old.has_gaps:
            self.lost.append(
                "parts of the database: people, example faces or photos that stood there alone may be missing"
            )


def _is_sound(database: Path) -> bool:
    if not database.exists():
        return False
    try:
        with closing(Database(database)) as opened:
            return PhotoCatalog(opened).meta("dim") is not None and not find_damage(opened)
    except SetNetError:
        return False


def _hash_of(rows: Iterable[Sequence[Any]]) -> str:
    found = hashlib.sha256()
    for row in rows:
        found.update(repr(row).encode())
    return found.hexdigest()


def _reconcile(database: Database, index: SetIndex) -> list[Item]:
    """Mark photos that are not in the index, to be read again; delete and return items that are no photo."""
    photos, unknown = find_disagreements(database, index)
    with database.writing() as db:
        mark_unread(db, photos)
    if unknown:
        index.delete([item.id for item in unknown])
    return unknown


def _folders_of(items: Iterable[Item]) -> list[str]:
    """Return the folders that photos lay in, without those inside another one.

    >>> _folders_of([Item("1", 0, {"folder": "/a/b/"}), Item("2", 0, {"folder": "/a/"})])
    ['/a/']
    """
    found: list[str] = []
    for folder in sorted({str(item.attributes.get("folder", "")) for item in items}):
        if folder and not (found and folder.startswith(found[-1])):
            found.append(folder)
    return found
