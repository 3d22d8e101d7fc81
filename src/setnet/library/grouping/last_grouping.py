"""When a library's faces were grouped last."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import asdict, dataclass

_KEY = "grouping"  # of the table `meta`


@dataclass(frozen=True, slots=True)
class LastGrouping:
    """When faces were grouped last, in seconds since 1970, and how many there were at the last anew."""

    at: float
    faces: int

    @classmethod
    def of(cls, db: sqlite3.Connection) -> LastGrouping | None:
        """Return what the database says; None when nothing was grouped yet."""
        row = db.execute("SELECT value FROM meta WHERE key = ?", (_KEY,)).fetchone()
        try:
            return None if row is None else cls(**json.loads(row[0]))
        except (TypeError, ValueError):  # of a later setnet
            return None

    def store(self, db: sqlite3.Connection) -> None:
        """Keep it in the database."""
        db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (_KEY, json.dumps(asdict(self))))
