"""Saves the groups of faces of a damaged database: what is lost is grouped again by the next index run."""

from __future__ import annotations

import sqlite3

from setnet.library.maintenance.people_repair import count_on, save
from setnet.library.maintenance.salvage import Salvage
from setnet.library.store.tables.group_tables import FACES, refresh


def save_groups(db: sqlite3.Connection, old: Salvage) -> list[str]:
    """Write the groups that can be read to a new database with photos and people; return what is lost."""
    save(db, "face_groups", old.rows("face_groups"))
    save(db, "group_members", old.rows("group_members"))
    lost = old.lost["face_groups"] + old.lost["group_members"]
    db.execute("UPDATE face_groups SET person = NULL WHERE person NOT IN (SELECT id FROM people)")
    db.execute(
        "DELETE FROM group_members WHERE grp NOT IN (SELECT id FROM face_groups) OR NOT EXISTS "
        f"(SELECT 1 FROM faces WHERE photo = group_members.id / {FACES} "
        f"AND ordinal = group_members.id % {FACES})"
    )
    db.execute("UPDATE face_groups SET stale = 1")  # also those that have lost all their members
    count_on(db, "face_groups")
    refresh(db)
    return [f"{lost} groups of faces or faces in them: `setnet index` groups them again"] if lost else []
