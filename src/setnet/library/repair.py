"""Repairs a library: the index from its segments, the database from its newest good copy and the journal.

The precious part is what people typed, and the journal has all of it. The rest comes from the database where
its structure is sound, else from the newest copy that is. Photos that are not as they were stored, or that a
copy does not have, are read again by the next `setnet index`; groups are grouped again.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from setnet.durable import copy_file_elsewhere, transaction
from setnet.engine import Item, SetIndex
from setnet.engine.settings import Shape
from setnet.errors import NotAnIndexError, SetNetError, StorageError
from setnet.library.backup import complete_staging, database_to_stage, stage_new_state
from setnet.library.check import find_damage
from setnet.library.creation import create_index, facts_about
from setnet.library.database import Database
from setnet.library.journal import JOURNAL_TABLES, Journal, JournalContents, stored_number
from setnet.library.library import open_index
from setnet.library.paths import (
    COPIES,
    DATABASE,
    INDEX,
    JOURNAL,
    LOGS,
    NEXT_INDEX,
    SCRATCH,
    display_path,
    is_shot_path,
)
from setnet.library.photo_catalog import PhotoCatalog
from setnet.library.photo_writer import PhotoWriter, mark_unread
from setnet.library.schema import (
    damaged_photos,
    migrate,
    refresh_checksums,
    refresh_groups,
    schema_problems,
)
from setnet.system import FileLock

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

_HISTORY = ("changes", "changed_rows", "removed_examples", "removed_labels")
_DISK_ERRORS = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL}


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


def repair(library: Path) -> LibraryRepair:
    """Repair the library in a folder; `setnet.library.Library.repair` says what it means."""
    if not (library / DATABASE).exists() and not (library / INDEX).is_dir():
        raise NotAnIndexError(
            f"{display_path(library)} holds nothing of a library: there is nothing to repair"
        )
    with suppress(FileNotFoundError):
        FileLock(library / INDEX / "lock").close()  # nobody may be writing
    with stage_new_state(library):
        return _Repair(library).run()


class _Repair:
    def __init__(self, library: Path) -> None:
        self.library = library
        self.lost: list[str] = []

    def run(self) -> LibraryRepair:
        (self.library / SCRATCH).mkdir(mode=0o700)  # emptied with all that is staged
        shape = self._repair_index()
        if shape is None or not self._is_sound():
            self._rebuild(shape)
        with closing(Database(self.library / DATABASE)) as database:
            database.rewrite_journal()
            with open_index(self.library) as index:
                unknown = PhotoWriter(database, index).reconcile()
            counts = PhotoCatalog(database).counts()
        return LibraryRepair(
            photos=counts.photos,
            people=counts.people,
            to_read=counts.unfinished + len(unknown),
            lost=tuple(self.lost),
            folders=tuple(_outer_folders(unknown)),
        )

    def _repair_index(self) -> Shape | None:
        """Return what the index, repaired where it must be, is made of; None when it is lost."""
        index = self.library / INDEX
        with suppress(SetNetError), SetIndex.open(index, read_only=True) as opened:
            if opened.check().ok:
                return opened.shape
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
            return opened.shape

    def _is_sound(self) -> bool:
        """Return whether a copy of the database, which SQLite may change when it opens it, is sound."""
        copy = self._copy(self.library / DATABASE)
        journal = self.library / SCRATCH / JOURNAL
        journal.unlink(missing_ok=True)
        if (self.library / JOURNAL).exists():
            copy_file_elsewhere(self.library / JOURNAL, journal)
        try:
            with closing(Database(copy)) as opened:
                problems = find_damage(opened)
                return PhotoCatalog(opened).meta("dim") is not None and all(
                    text.startswith(str(journal)) for text in problems
                )
        except SetNetError:
            return False

    def _rebuild(self, shape: Shape | None) -> None:
        """Put a database in place with all that is good, and a new index where it is lost."""
        journal = Journal(self.library / JOURNAL).read()
        with database_to_stage(self.library) as db:
            db.text_factory = _decode
            db.execute("PRAGMA recursive_triggers = ON")
            is_current = self._take_newest(db)
            with transaction(db):
                _read_again(db, damaged_photos(db))
                self._replay(db, journal, is_current)
                settings, dim, bytes_per_photo = self._settings(db, shape)
                _tidy(db)
        if shape is None:
            create_index(self.library / NEXT_INDEX, settings, dim, bytes_per_photo)
        complete_staging(self.library)

    def _take_newest(self, db: sqlite3.Connection) -> bool:
        """Copy the database, or its newest copy, whose structure is sound; return whether it is the first."""
        copies = sorted((self.library / COPIES).glob("*.db"), reverse=True)
        for path in (self.library / DATABASE, *copies):
            if not path.exists():
                continue
            # Twice: SQLite may take a read that fails for damage.
            for _ in range(2):
                if self._copy_sound(path, db):
                    if path in copies:
                        self.lost.append(
                            "photos that were indexed since the last copy of the database: `setnet index` "
                            "reads them again"
                        )
                    return path not in copies
        migrate(db)
        self.lost.append("what was known of photos: `setnet index` reads them again")
        return False

    def _copy_sound(self, path: Path, to: sqlite3.Connection) -> bool:
        try:
            with closing(sqlite3.connect(self._copy(path), isolation_level=None)) as source:
                source.text_factory = _decode
                if source.execute("PRAGMA integrity_check(1)").fetchone()[0] != "ok":
                    return False
                if schema_problems(source):
                    return False
                source.backup(to)
        except UnicodeError:  # in what SQLite says of the damage
            return False
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF in _DISK_ERRORS:  # the kind, without details
                raise
            return False
        to.execute("PRAGMA journal_mode = DELETE")
        return True

    def _copy(self, path: Path) -> Path:
        """Copy a database with its logs to the scratch folder, as SQLite changes what it opens."""
        target = self.library / SCRATCH / DATABASE
        for name in (*LOGS, DATABASE):
            target.with_name(name).unlink(missing_ok=True)
            source = path.with_name(name.replace(DATABASE, path.name))
            if source.exists():
                copy_file_elsewhere(source, target.with_name(name))
        return target

    def _replay(self, db: sqlite3.Connection, journal: JournalContents | None, is_current: bool) -> None:
        """Give the tables of the journal its rows."""
        number = stored_number(db)
        is_whole = journal is not None and not journal.damaged and journal.number >= number
        if journal is not None and (is_whole or not is_current):
            if number and journal.number != number:
                for table in _HISTORY:
                    db.execute(f"DELETE FROM {table}")
                self.lost.append("the history of changes of people: they cannot be undone any more")
            for table in reversed([*JOURNAL_TABLES]) if is_whole else ():
                db.execute(f"DELETE FROM {table}")
            for table, rows in journal.rows.items():
                columns = JOURNAL_TABLES[table].split()
                db.executemany(
                    f"INSERT OR REPLACE INTO {table} ({', '.join(columns)}) "
                    f"VALUES ({', '.join('?' * len(columns))})",
                    rows.values(),
                )
        if not is_whole and not is_current:
            self.lost.append("people and example faces that were saved since: look at `setnet people list`")
        number = max(number, journal.number if journal else 0) + 1
        db.execute("UPDATE sums SET value = ? WHERE name = 'journal'", (number,))
        db.execute("UPDATE sums SET value = value + 1 WHERE name = 'commits'")

    def _settings(self, db: sqlite3.Connection, shape: Shape | None) -> tuple[FaceSettings, int, int]:
        from setnet.faces import FaceSettings, model_entry

        facts = dict(db.execute("SELECT key, value FROM meta").fetchall())
        settings = FaceSettings()
        try:
            settings = FaceSettings.from_dict(json.loads(facts["settings"]))
        except (AttributeError, KeyError, TypeError, ValueError, SetNetError):
            facts.pop("model", None)
            if shape is None:
                raise NotAnIndexError(
                    f"neither database nor index in {display_path(self.library)} can be read: restore a "
                    "backup (`setnet restore`), or delete the folder and index the photos again"
                ) from None
            self.lost.append("the settings of detector and descriptor: the defaults are taken")
        made_by = model_entry(settings.descriptor, "descriptor").dim or 0
        if shape is not None and shape.dim != made_by:
            raise StorageError(
                f"the index in {display_path(self.library)} has descriptors of {shape.dim} numbers, the "
                f"model {settings.descriptor!r} makes {made_by}: the settings are lost, restore a backup"
            )
        stored = str(facts.get("bytes_per_photo", ""))
        kept = shape.bytes_per_item if shape is not None else int(stored) if stored.isdecimal() else 0
        facts = facts_about(settings, made_by, kept) | facts
        db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", list(facts.items()))
        return settings, made_by, kept


def _decode(text: bytes) -> str:
    """Return a text that may be damaged: then it is another one than was stored, as checksums tell."""
    return text.decode("utf-8", "replace")


def _read_again(db: sqlite3.Connection, photos: Iterable[int]) -> None:
    """Delete photos that are not as they were stored; the next run finds their files, as it does new ones."""
    for photo in photos:
        row = db.execute("SELECT path FROM photos WHERE id = ?", (photo,)).fetchone()
        db.execute("DELETE FROM faces WHERE photo = ?", (photo,))
        db.execute("DELETE FROM photos WHERE id = ?", (photo,))
        if (
            row is not None and isinstance(row[0], bytes) and is_shot_path(row[0])
        ):  # a video is read as a whole
            video = os.path.dirname(row[0])
            rest = db.execute(
                "SELECT id FROM photos WHERE path > ? AND path < ?", (video + b"/", video + b"0")
            )
            mark_unread(db, [row[0] for row in rest.fetchall()])


def _tidy(db: sqlite3.Connection) -> None:
    """Let tables fit each other: no group of nobody, checksums as they are."""
    db.execute("UPDATE face_groups SET person = NULL WHERE person NOT IN (SELECT id FROM people)")
    db.execute("UPDATE people SET cover = NULL WHERE cover NOT IN (SELECT id FROM examples)")
    db.execute("UPDATE face_groups SET stale = 1")
    refresh_groups(db)
    refresh_checksums(db)


def _outer_folders(items: Iterable[Item]) -> list[str]:
    """Return the folders that photos lay in, without those inside another one.

    >>> _outer_folders([Item("1", 0, {"folder": "/a/b/"}), Item("2", 0, {"folder": "/a/"})])
    ['/a/']
    """
    found: list[str] = []
    for folder in sorted({str(item.attributes.get("folder", "")) for item in items}):
        if folder and not (found and folder.startswith(found[-1])):
            found.append(folder)
    return found
