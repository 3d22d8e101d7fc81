"""Saves the shots of a damaged database (a video that lost some is read again), and facts about photos."""

from __future__ import annotations

import os
import sqlite3

from setnet.library.maintenance.people_repair import save
from setnet.library.maintenance.salvage import Salvage
from setnet.library.store.photo_writer import mark_unread
from setnet.library.store.shot_paths import is_shot_path
from setnet.library.store.tables.group_tables import FACES


def save_facts(db: sqlite3.Connection, old: Salvage) -> None:
    """Write the facts about photos that can be read to a new database that has the photos."""
    save(db, "photo_facts", old.rows("photo_facts"))
    db.execute("DELETE FROM photo_facts WHERE id NOT IN (SELECT id FROM photos)")


def save_shots(db: sqlite3.Connection, old: Salvage) -> None:
    """Write the shots that can be read to a new database that has the photos."""
    save(db, "shots", old.rows("shots"))
    save(db, "shot_faces", old.rows("shot_faces"))
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
