"""Puts a library's faces, described by another model, in the place of the old ones, in one step."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from setnet.durable import transaction
from setnet.library.maintenance import replacement
from setnet.library.redescription.new_index import NewIndex
from setnet.library.redescription.people_faces import FaceRow, NewDescriptor, PeopleFaces, face_rows
from setnet.library.store.location import DATABASE, INDEX, NEXT_INDEX
from setnet.library.store.photo_writer import mark_unread
from setnet.library.store.tables import row_sums
from setnet.library.store.tables.group_tables import refresh


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
    with replacement.staging(library), _nobody_writes(library):
        described = people.described(face_rows(db))
        replacement.link_segments(made.folder / INDEX, library / NEXT_INDEX)
        made.index.backup(library / NEXT_INDEX)
        with replacement.database_to_stage(library) as copy:
            db.backup(copy)
            _rewrite(copy, described, rows)
        replacement.complete(library)
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
    for setting in ("journal_mode = DELETE", "secure_delete = ON", "foreign_keys = ON"):
        db.execute(f"PRAGMA {setting}")
    row_sums.register(db)
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
        refresh(db)
        mark_unread(db, rows.unread)  # the next index run looks at them again
        db.execute("UPDATE sums SET value = value + 1 WHERE name = 'commits'")
