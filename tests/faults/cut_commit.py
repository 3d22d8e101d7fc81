"""A process that is killed in the middle of a commit: the log has it, the index of the log does not.

    python -m tests.faults.cut_commit index FOLDER

adds an item to an index (or renames a person of a ``library``). SQLite writes a commit to the log, and then
to the index of the log that all processes share: the kill comes between the two.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from setnet import SetIndex
from setnet.engine.commit_log import CommitLog
from setnet.library import Library
from setnet.library.journal import Journal

HEADER = 136  # bytes of the shared index that say how far the log goes, and until where it is copied


def main(kind: str, root: Path) -> None:
    """Make the change, and die as soon as it is committed."""
    opened = SetIndex.open(root) if kind == "index" else Library.open(root)
    shared = os.open(root / ("catalog.sqlite-shm" if kind == "index" else "library.db-shm"), os.O_RDWR)
    header = os.pread(shared, HEADER, 0)

    def die(*_: object, **__: object) -> None:
        os.pwrite(shared, header, 0)
        os._exit(9)

    setattr(CommitLog, "append", die)  # noqa: B010 - what comes after the commit
    setattr(Journal, "enter", die)  # noqa: B010
    if isinstance(opened, SetIndex):
        opened.add(["new"], [[0.0, 1.0]], [1])
    else:
        opened.people.rename("Anna", "Anne")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
