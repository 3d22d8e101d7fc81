"""Repairs a library: the index from its segments, the database from its good rows, then both together.

The precious part is the people and their example faces; photos whose records are lost are read again by the
next `setnet index`.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from setnet.durable import transaction
from setnet.engine import Item, SetIndex
from setnet.errors import InvalidInputError, NotAnIndexError, SetNetError, StorageError
from setnet.library.files import open_index
from setnet.library.maintenance import creation, replacement
from setnet.library.maintenance.check import damage_of, disagreements
from setnet.library.maintenance.group_repair import save_groups
from setnet.library.maintenance.people_repair import save, save_people
from setnet.library.maintenance.salvage import Salvage, copy_database, salvage
from setnet.library.maintenance.shot_repair import save_facts, save_shots
from setnet.library.store.commit_record import CommitRecord
from setnet.library.store.database import Database
from setnet.library.store.location import DATABASE, INDEX, NEXT_INDEX, SCRATCH
from setnet.library.store.paths import shown
from setnet.library.store.photo_catalog import PhotoCatalog
from setnet.library.store.photo_writer import mark_unread
from setnet.library.store.tables import row_sums
from setnet.library.store.tables.schema import migrate
from setnet.system import FileLock
from setnet.wording import counted

if TYPE_CHECKING:
    from setnet.faces import FaceSettings

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
        raise NotAnIndexError(f"{shown(library)} holds nothing of a library: there is nothing to repair")
    with suppress(FileNotFoundError):
        FileLock(library / INDEX / "lock").close()  # nobody may be writing
    with replacement.staging(library):
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
                    f"the last {recorded - stored} changes of {shown(self.library / DATABASE)} are lost, and "
                    "nothing says whether they forgot people or photos: a repair may bring these back. "
                    "Allow it with `setnet repair --revive` (revive=True), or restore a backup"
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
            creation.create_index(self.library / NEXT_INDEX, settings, dim_of_rows)
        replacement.complete(self.library)

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
            f"{shown(self.library / DATABASE)} reads differently each time: its disk fails. Copy the library "
            "to another disk and repair it there"
        )

    def _stage_once(self, old: Salvage, commits: int, dim: int | None) -> Staged:
        with replacement.database_to_stage(self.library) as db:
            row_sums.register(db)
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
                    f"neither database nor index in {shown(self.library)} can be read: restore a backup "
                    "(`setnet restore`), or delete the folder and index the photos again"
                ) from None
            self.lost.append("the settings of detector and descriptor: the defaults are taken")
        made_by = model_entry(settings.descriptor, "descriptor").dim or 0
        if dim not in (None, made_by):
            raise StorageError(
                f"the index in {shown(self.library)} has descriptors of {dim} numbers, the model "
                f"{settings.descriptor!r} makes {made_by}: the settings are lost, restore a backup"
            )
        facts = creation.facts_about(settings, made_by) | facts
        db.executemany("INSERT OR IGNORE INTO meta VALUES (?, ?)", list(facts.items()))
        return settings, made_by

    def _save_rows(self, db: sqlite3.Connection, old: Salvage, dim: int) -> None:
        for table in ("folders", "photos", "faces"):
            save(db, table, old.rows(table))
        db.execute("DELETE FROM faces WHERE photo NOT IN (SELECT id FROM photos)")
        save_facts(db, old)
        save_shots(db, old)
        lost_people = save_people(db, old, dim) + save_groups(db, old)
        self.lost_photos = old.lost["photos"]
        for table, (text, one) in _LOST_ROWS.items():
            self.lost += [text.format(counted(old.lost[table], one))] if old.lost[table] else []
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
            return PhotoCatalog(opened).meta("dim") is not None and not damage_of(opened)
    except SetNetError:
        return False


def _hash_of(rows: Iterable[Sequence[Any]]) -> str:
    found = hashlib.sha256()
    for row in rows:
        found.update(repr(row).encode())
    return found.hexdigest()


def _reconcile(database: Database, index: SetIndex) -> list[Item]:
    """Mark photos that are not in the index, to be read again; delete and return items that are no photo."""
    photos, unknown = disagreements(database, index)
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
