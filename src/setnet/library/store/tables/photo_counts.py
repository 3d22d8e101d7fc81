"""How much a library holds: numbers that triggers keep with every change, so that nobody counts rows.

The table `photo_counts` has a row for each state of a photo. A change and its count are in one transaction;
`counted` adds up the rows themselves, which takes about a second for half a million photos.
"""

from __future__ import annotations

import sqlite3
from dataclasses import asdict, dataclass

_COLUMNS = {
    "photos": "1",
    "without_faces": "({row}.faces = 0)",
    "faces": "{row}.faces",
    "timed": "({row}.taken IS NOT NULL)",
}


@dataclass(frozen=True, slots=True)
class Counts:
    """How many photos, faces, people and folders a library has.

    `timed` photos have a known time; `shots` are those among the photos that are parts of videos.
    """

    photos: int
    without_faces: int
    faces: int
    timed: int
    failed: int
    unfinished: int
    people: int
    folders: int
    shots: int

    def to_dict(self) -> dict[str, int]:
        """Return the numbers as values that JSON can hold."""
        return asdict(self)


def _changed(sign: str, row: str) -> str:
    sums = ", ".join(f"{name} = {name} {sign} {one.format(row=row)}" for name, one in _COLUMNS.items())
    return f"UPDATE photo_counts SET {sums} WHERE state = {row}.state;"


_ADDED_UP = "SELECT photos.state, " + ", ".join(
    f"sum({one.format(row='photos')})" for one in _COLUMNS.values()
)
_ADDED_UP += " FROM photos GROUP BY photos.state"

SCHEMA = (
    "CREATE TABLE photo_counts (state TEXT PRIMARY KEY, "
    + ", ".join(f"{name} INTEGER NOT NULL DEFAULT 0" for name in _COLUMNS)
    + ") WITHOUT ROWID;\n"
    "INSERT INTO photo_counts (state) VALUES ('ready'), ('adding'), ('removing'), ('failed');\n"
    "CREATE TRIGGER photos_counted_in AFTER INSERT ON photos BEGIN "
    f"{_changed('+', 'NEW')} END;\n"
    "CREATE TRIGGER photos_counted_out AFTER DELETE ON photos BEGIN "
    f"{_changed('-', 'OLD')} END;\n"
    "CREATE TRIGGER photos_counted_again AFTER UPDATE OF state, faces, taken ON photos BEGIN "
    f"{_changed('-', 'OLD')} {_changed('+', 'NEW')} END;\n"
)


def kept(db: sqlite3.Connection) -> Counts:
    """Return the numbers as the triggers keep them."""
    return _counts(db, "SELECT * FROM photo_counts")


def counted(db: sqlite3.Connection) -> Counts:
    """Return the numbers by adding up all rows: to compare with what the triggers keep."""
    return _counts(db, _ADDED_UP)


def problems(db: sqlite3.Connection) -> list[str]:
    """Return what the kept numbers have wrong; for calls inside one transaction."""
    empty = (0,) * len(_COLUMNS)
    right = {state: tuple(numbers) for state, *numbers in db.execute(_ADDED_UP)}
    return [
        f"{state!r} photos are counted as {tuple(numbers)}, and are {right.get(state, empty)}"
        for state, *numbers in db.execute("SELECT * FROM photo_counts")
        if tuple(numbers) != right.get(state, empty)
    ]


def _counts(db: sqlite3.Connection, by_state: str) -> Counts:
    found = {row[0]: row[1:] for row in db.execute(by_state)}
    people, folders, shots = db.execute(
        "SELECT (SELECT count(*) FROM people), (SELECT count(*) FROM folders), (SELECT count(*) FROM shots)"
    ).fetchone()
    ready = dict(zip(_COLUMNS, found.get("ready", (0,) * len(_COLUMNS)), strict=True))
    return Counts(
        **ready,
        failed=found.get("failed", (0,))[0],
        unfinished=sum(found.get(state, (0,))[0] for state in ("adding", "removing")),
        people=people,
        folders=folders,
        shots=shots,
    )
