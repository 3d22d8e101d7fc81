"""Rebuilds an index's catalogue from its segments and its commit log.

Segments carry ids, counts, attributes and vectors; the log carries the settings, which segments are alive and
which of their rows are deleted. Nothing is changed until the new catalogue is complete; what it replaces is
put into the quarantine.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError, NotAnIndexError, SetNetError, StorageError
from setnet.index.settings import Settings
from setnet.index.storage.catalog import Catalog
from setnet.index.storage.commit_log import CommitLog, Committed
from setnet.index.storage.creation import UNFINISHED, empty_database, put_in_place
from setnet.index.storage.segments.segment import Segment
from setnet.index.storage.segments.segment_file import SegmentFile
from setnet.index.storage.segments.segment_folder import QUARANTINE, SegmentFolder, segment_path
from setnet.system import FileLock

ROWS = 8192  # entered at once


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair saved, and what it could not.

    Attributes
    ----------
    items, segments
        How many are in the index now.
    lost
        One sentence per file or kind of data that could not be saved.
    revived
        How many items may have been deleted before, as nothing says which were.
    """

    items: int
    segments: int
    lost: tuple[str, ...]
    revived: int

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON."""
        return asdict(self)


def repair_index(root: Path, revive: bool = False) -> RepairReport:
    """Rebuild the catalogue of the index in ``root``; `setnet.index.SetIndex.repair` says what it means."""
    if not (root / "segments").is_dir():
        raise NotAnIndexError(f"{root} holds no segments: there is nothing to repair from")
    lock = FileLock(root / "lock")
    try:
        return _Repair(root).run(revive)
    finally:
        lock.close()


class _Repair:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.lost: list[str] = []
        log = CommitLog(root).read()
        if log is not None and log.damage:
            self.lost.append(f"{log.damage}: deletions since then may be missing")
        self.log = log or Committed(damage=f"{root} has no commit log")
        self.old = _read_catalog(root / "catalog.sqlite")
        self.generation = max(self.log.generation, self.old.generation) + 1

    def run(self, revive: bool) -> RepairReport:
        settings = self._settings()
        segments = self._segments(settings)
        doubtful = sum(map(len, segments)) if self.log.damage and self.old.damage else 0
        if doubtful and not revive:
            raise InvalidInputError(
                f"nothing says which of {doubtful} items of {self.root} were deleted: repairing would bring "
                "all of them back. Allow it with revive=True"
            )
        path = self.root / UNFINISHED
        empty_database(path)
        Catalog.create(path, settings.meta())
        with closing(Catalog(path, read_only=False)) as catalog:
            self._fill(catalog, segments)
            catalog.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            items, state = catalog.count("items"), catalog.committed()
        self._put_in_place(path)
        CommitLog(self.root).rewrite(state)
        return RepairReport(items, len(segments), tuple(self.lost), doubtful)

    def _settings(self) -> Settings:
        for source in (self.log, self.old):
            with suppress(StorageError):
                return Settings.of_json(source.settings)
        raise StorageError(
            f"{self.root} cannot be repaired: neither its commit log nor its catalogue has sound settings"
        )

    def _segments(self, settings: Settings) -> list[Segment]:
        """Return the sound segments that are alive, newest first."""
        if not self.log.damage:
            SegmentFolder(self.root).bring_back(self.log.segments)
        segments = []
        for path in sorted((self.root / "segments").glob("*.seg"), reverse=True):
            number = int(path.stem)
            if not self.log.damage and number not in self.log.segments:
                continue  # replaced by a merge, or never acknowledged
            try:
                file = SegmentFile(path)
                damage = file.damage()
                segment = None if damage else Segment(number, file, settings.shape)
                if segment is not None and not (damage := segment.problems() or _broken_texts(segment)):
                    segments.append(segment)
            except (SetNetError, ValueError, KeyError) as error:  # not OSError: a disk may read it next time
                damage = [str(error)]
            self.lost += [f"segment {number}: {text}" for text in damage]
        self.lost += [
            f"segment {number} is missing"
            for number in sorted(self.log.segments)
            if not segment_path(self.root, number).exists()
        ]
        return segments

    def _fill(self, catalog: Catalog, segments: list[Segment]) -> None:
        """Enter the rows of all segments; of two rows of one item the one in the newer segment counts."""
        with catalog.writing():
            for segment in segments:
                file = segment.file
                catalog.enter_segment(
                    segment.number, len(segment), int(segment.offsets[-1]), file.bytes, file.crc
                )
                gone = [state.deleted.get(segment.number, set()) for state in (self.log, self.old)]
                dead = np.isin(np.arange(len(segment)), list(set.union(*gone)))
                for at in range(0, len(segment), ROWS):
                    rows = np.arange(at, min(at + ROWS, len(segment)))
                    _enter(catalog, segment, rows[~dead[rows]], dead)
                buried = np.flatnonzero(dead)
                if len(buried):
                    catalog.bury(segment.number, buried, int(segment.counts[buried].sum()))
            last = max((int(s.seq[-1]) for s in segments if len(s)), default=0)
            catalog.set("next_seq", last + 1)
            catalog.set("next_segment", SegmentFolder(self.root).free_number(1))
            catalog.set("generation", self.generation - 1)  # leaving the block counts one up

    def _put_in_place(self, path: Path) -> None:
        """Replace the catalogue; the old one and its logs are kept in the quarantine."""
        aside = self.root / QUARANTINE
        aside.mkdir(mode=0o700, exist_ok=True)
        catalog = self.root / "catalog.sqlite"
        for name in (catalog.name, f"{catalog.name}-wal", f"{catalog.name}-shm"):
            if (self.root / name).exists():
                (aside / name).unlink(missing_ok=True)
                os.link(self.root / name, aside / name)
        put_in_place(path, catalog)


def _broken_texts(segment: Segment) -> list[str]:
    """Return why ids or attributes cannot be read; empty when they can."""
    try:
        for at in range(0, len(segment), ROWS):
            rows = np.arange(at, min(at + ROWS, len(segment)))
            segment.ids_of(rows)
            segment.attribute_values_of(rows)
    except StorageError as error:
        return [str(error)]
    return []


def _enter(catalog: Catalog, segment: Segment, rows: NDArray[np.int64], dead: NDArray[np.bool_]) -> None:
    """Enter those rows whose item is not there yet; mark the others in ``dead``."""
    if not len(rows):
        return
    ids, seqs = segment.ids_of(rows), segment.seq[rows].tolist()
    taken = catalog.seqs_of(ids)
    low, high = seqs[0], seqs[-1]
    used = {
        row[0] for row in catalog.db.execute("SELECT seq FROM items WHERE seq BETWEEN ? AND ?", (low, high))
    }
    fresh = [n not in taken and seq not in used for n, seq in zip(ids, seqs, strict=True)]
    dead[rows[~np.array(fresh)]] = True
    texts = segment.attributes_of(rows)
    chosen = [(seq, n, text) for seq, n, text, new in zip(seqs, ids, texts, fresh, strict=True) if new]
    catalog.db.executemany("INSERT INTO items VALUES (?, ?)", [(seq, n) for seq, n, _ in chosen])
    catalog.enter_attributes((seq, json.loads(text)) for seq, _, text in chosen if text)


def _read_catalog(path: Path) -> Committed:
    """Return what can still be read from a damaged catalogue."""
    found = Committed(damage=f"{path} is damaged")
    with suppress(SetNetError, OSError, sqlite3.Error), closing(Catalog(path, read_only=True)) as catalog:
        with suppress(SetNetError, sqlite3.Error):
            found.settings = catalog.get("settings")
            found.generation = catalog.get("generation")
        if not catalog.damage():
            found = catalog.committed()
    found.settings = found.settings or _settings_in(path)
    return found


def _settings_in(path: Path) -> dict[str, Any] | None:
    """Look for the settings in the bytes of a file that SQLite cannot read."""
    with suppress(OSError):
        for text in re.findall(
            rb'\{"dim": \d+, "precision": .{0,400}?"set_logistic": \[[^\]]*\]\}', path.read_bytes()
        ):
            with suppress(ValueError):
                settings: dict[str, Any] = json.loads(text)
                return settings
    return None
