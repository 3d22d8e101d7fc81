"""Libraries of earlier versions of the database, and what their tables hold."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Collection
from pathlib import Path
from typing import Any

from setnet.library.store.tables import row_sums

FIXTURES = Path(__file__).parent / "library" / "fixtures"


def unpacked(version: int, folder: Path) -> Path:
    """Return a library of a version of the database, unpacked in `folder`."""
    shutil.unpack_archive(FIXTURES / f"library_v{version}.zip", folder)
    return folder / "library"


def rows(
    library: Path, without: Collection[str] = (), columns: dict[str, str] = row_sums.COLUMNS
) -> dict[str, list[Any]]:
    """Return the rows of all tables but those `without`, sorted."""
    db = sqlite3.connect(f"{(library / 'library.db').as_uri()}?immutable=1", uri=True)
    try:
        return {
            table: sorted(db.execute(f"SELECT {', '.join(names.split())} FROM {table}"), key=repr)
            for table, names in columns.items()
            if table not in without
        }
    finally:
        db.close()


def version_of(library: Path) -> int:
    """Return the version of a library's database."""
    with sqlite3.connect(library / "library.db") as db:
        return int(db.execute("PRAGMA user_version").fetchone()[0])
