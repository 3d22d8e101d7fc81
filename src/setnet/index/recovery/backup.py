"""Copies an index while it is used: one consistent state, and only the segments that are not there yet."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from setnet.durable import replace_file
from setnet.errors import InvalidInputError, StorageError
from setnet.index.storage.catalog import Catalog
from setnet.index.storage.commit_log import CommitLog
from setnet.index.storage.creation import UNFINISHED, empty_database, put_in_place
from setnet.index.storage.segments.segment import Segment
from setnet.index.storage.segments.segment_file import SegmentFile
from setnet.index.storage.segments.segment_folder import SegmentFolder, segment_path
from setnet.index.storage.snapshot import Snapshot
from setnet.system import sync_folder

MARK = "backup.json"  # tells a folder of ours from any other


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup copied, and what an earlier one had copied already."""

    items: int
    copied_segments: int
    kept_segments: int
    copied_bytes: int

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return asdict(self)


def back_up(catalog: Catalog, snapshot: Snapshot, to: Path) -> BackupReport:
    """Copy a snapshot and its catalogue into a folder that is new, empty, or an earlier backup.

    Call it inside the transaction in which the snapshot was read. The copy's catalogue is replaced in one
    step, after its segments are complete; segments it no longer names are removed last.
    """
    _refuse_others(to)
    (to / "segments").mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(to / MARK, json.dumps({"format": 1}).encode())
    sizes = [_copied(segment, segment_path(to, segment.number)) for segment in snapshot.segments]
    sync_folder(to / "segments")
    _copy_catalog(catalog, to / "catalog.sqlite")
    CommitLog(to).rewrite(catalog.committed())
    for path in SegmentFolder(to).unnamed([segment.number for segment in snapshot.segments]):
        path.unlink()
    copied = [size for size in sizes if size]
    return BackupReport(catalog.living_items(), len(copied), len(sizes) - len(copied), sum(copied))


def _refuse_others(to: Path) -> None:
    if to.exists() and (not to.is_dir() or (any(to.iterdir()) and not (to / MARK).is_file())):
        raise InvalidInputError(f"{to} is neither empty nor a backup made by setnet: choose another folder")


def _copied(segment: Segment, to: Path) -> int:
    """Copy a segment unless the same one is there already; return the bytes copied."""
    source = segment.file
    if to.exists():
        try:
            there = SegmentFile(to)
            if (there.bytes, there.crc) == (source.bytes, source.crc) and not there.damage():
                return 0
        except StorageError:
            pass  # cut short by a kill, or damaged: copied again
    source.verify()
    replace_file(to, source.content)  # from the map: a merge may have removed the file by now
    return source.bytes


def _copy_catalog(catalog: Catalog, to: Path) -> None:
    unfinished = to.with_name(UNFINISHED)
    empty_database(unfinished)
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
        catalog.db.backup(copy)
    put_in_place(unfinished, to)
