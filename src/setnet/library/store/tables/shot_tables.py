"""The tables of shots as of version 7 of the database: what is a part of a video, and who is seen when.

A shot is a row of `photos` like any other, with a row of the same id here. Its path is that of the video with
the shot's times as a last part (`shot_path`), which no file can have.
"""

from __future__ import annotations

from setnet.library.store.tables import row_sums
from setnet.library.store.tables.group_tables import FACES

TABLES = ("shots", "shot_faces")

_TABLES = f"""
    CREATE TABLE shots (
        id INTEGER PRIMARY KEY REFERENCES photos ON DELETE CASCADE,
        start REAL NOT NULL,
        stop REAL NOT NULL,
        best REAL NOT NULL,
        video BLOB NOT NULL
    );
    CREATE INDEX shots_by_video ON shots (video);
    CREATE TABLE shot_faces (
        id INTEGER PRIMARY KEY,
        at REAL NOT NULL,
        seen REAL NOT NULL,
        track BLOB NOT NULL
    );
    CREATE TRIGGER faces_leave_shot AFTER DELETE ON faces BEGIN
        DELETE FROM shot_faces WHERE id = OLD.photo * {FACES} + OLD.ordinal; END;
"""
MIGRATION = _TABLES + "".join(row_sums.triggers(table, row_sums.COLUMNS[table]) for table in TABLES)

# An older database has no shots.
STAND_INS = row_sums.empty_views(TABLES)
