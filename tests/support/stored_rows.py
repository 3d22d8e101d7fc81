"""Rows of a library's database, changed behind its back."""

from __future__ import annotations

import sqlite3
from pathlib import Path


def alter(path: Path, table: str, statement: str) -> None:
    """Change rows behind the back of their checksums."""
    with sqlite3.connect(path / "library.db") as db:
        triggers = db.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name = ?", (table,)
        ).fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        db.execute(statement)
        for _, sql in triggers:
            db.execute(sql)
    db.close()
