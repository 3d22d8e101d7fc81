"""Where a library is kept, and the names of the files and folders in it."""

from __future__ import annotations

import os
from pathlib import Path

from setnet.errors import InvalidInputError
from setnet.system import data_folder

DATABASE, COMMITS, INDEX, THUMBNAILS = "library.db", "library.commits", "index", "thumbnails"
VLADS = "vlads.db"  # of whole photos, to find near-duplicates; made again when it is gone
QUARANTINE = "quarantine"  # what a repair, a restored backup or a new description replaced
REDESCRIBED = "redescribed"  # an index with the descriptors of another model, under way
BACKUP_MARK = "backup.json"  # tells a backup from any other folder
LOCK = "library.lock"  # held while a state is staged and put in place
STAGING = "staging"  # a new state until it is in place; `maintenance.replacement` says how it gets there
NEXT_DATABASE, NEXT_INDEX = f"{STAGING}/{DATABASE}", f"{STAGING}/{INDEX}"
UNFINISHED_DATABASE, SCRATCH = f"{STAGING}/{DATABASE}.part", f"{STAGING}/scratch"
LOGS = tuple(f"{DATABASE}-{log}" for log in ("wal", "shm", "journal"))
# In the order in which they are deleted: a record of commits without its database would mean a loss.
FILES = (
    *(COMMITS, f"{COMMITS}.new", *LOGS, DATABASE, BACKUP_MARK, LOCK),
    *(VLADS, f"{VLADS}-journal"),
)
FOLDERS = (STAGING, INDEX, REDESCRIBED, THUMBNAILS, QUARANTINE)


def default_library() -> Path:
    """Return `SETNET_LIBRARY`, else `setnet/library` in the user's data folder of this system."""
    chosen = os.environ.get("SETNET_LIBRARY")
    return Path(chosen).expanduser() if chosen else data_folder() / "library"


def library_place(path: str | Path) -> Path:
    """Return the absolute folder of a library; raise for what can be no folder's name."""
    try:
        place = Path(path).expanduser().absolute()
        os.fsencode(place)
    except (RuntimeError, UnicodeError) as error:  # ~nobody
        raise InvalidInputError(f"no place for a library: {str(path)!r} ({error})") from error
    if "\0" in str(place):
        raise InvalidInputError(f"no place for a library: {str(path)!r} has a null character")
    return place
