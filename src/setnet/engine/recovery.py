"""When files are damaged or lost: check, repair, backup.

A check verifies an index from the files up. A repair rebuilds the catalogue from its segments, which carry
ids, counts, attributes and vectors; settings, which segments are alive and which of their rows are deleted
stand in the catalogue and in the commit log, and of the two the newest that is sound counts. Nothing is
changed until the new catalogue is complete. A backup copies one consistent state while the index is used.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.durable import replace_file
from setnet.engine.catalog import Catalog
from setnet.engine.commit_log import CommitLog, Committed
from setnet.engine.files import (
    QUARANTINE,
    UNFINISHED,
    SegmentFolder,
    empty_database,
    put_in_place,
    segment_path,
)
from setnet.engine.results import Report
from setnet.engine.segment import Segment, write_segment
from setnet.engine.segment_file import BLOCK, SegmentFile
from setnet.engine.settings import Settings, Shape
from setnet.engine.snapshot import Snapshot, open_segment
from setnet.errors import InvalidInputError, NotAnIndexError, SetNetError, StorageError
from setnet.system import FileLock, sync_folder

ROWS = 8192
NAMED = 20  # items that are lost, by segment


def check_index(catalog: Catalog, root: Path, shape: Shape) -> Report:
    """Return all problems found, as of one commit; a damaged file is named."""
    problems: list[str] = []
    try:
        logged = CommitLog(root).read()  # before the catalogue: a writer beside us only moves on
        while True:
            with catalog.reading():
                found = _log_problems(catalog, logged) + catalog.damage()
                segments, damage = _segments(catalog, root, shape)
                if not found and not damage:
                    found = _disagreements(catalog, segments)
                generation = catalog.get("generation")
            if not damage or generation == catalog.get("generation"):
                break  # else a merge has removed files since: look at the new ones
        problems += found + damage
    except (OSError, sqlite3.DatabaseError, SetNetError, ValueError) as error:
        problems.append(f"{catalog.path} is damaged: {error}")
    return Report(not problems, problems)


def _log_problems(catalog: Catalog, logged: Committed | None) -> list[str]:
    """Compare the catalogue with the commit log, which a writer beside us or a kill may leave behind it."""
    if logged is None:
        return []
    if logged.damage:
        return [logged.damage]
    generation = catalog.get("generation")
    if logged.generation > generation:
        return [
            f"{catalog.path} has lost {logged.generation - generation} stored changes: its write-ahead log "
            "was damaged"
        ]
    if logged.generation == generation and logged != catalog.committed():
        return [f"{catalog.path} is damaged: its segments, deletions or settings are not the logged ones"]
    return []


def _segments(catalog: Catalog, root: Path, shape: Shape) -> tuple[list[Segment], list[str]]:
    """Open every segment the catalogue names; return them and what is wrong with their files."""
    segments, problems = [], []
    for listed in catalog.segments():
        try:
            segments.append(open_segment(root, listed, shape))
            problems += segments[-1].problems()
        except (OSError, SetNetError) as error:
            path = segment_path(root, listed[0])
            problems.append(str(error) if str(path) in str(error) else f"{path}: {error}")
    return segments, problems


def _disagreements(catalog: Catalog, segments: list[Segment]) -> list[str]:
    """Compare what the segments hold alive with the items of the catalogue."""
    problems: list[str] = []
    alive = 0
    for segment in segments:
        dead = catalog.dead_rows(segment.number, len(segment))
        rows = np.arange(len(segment)) if dead is None else np.flatnonzero(~dead)
        buried = len(segment) - len(rows), int(segment.offsets[-1] - segment.counts[rows].sum())
        if catalog.deleted_counts(segment.number) != buried:
            problems.append(f"{catalog.path} miscounts the deleted items of {segment.file.path}")
        alive += len(rows)
        for at in range(0, len(rows), ROWS):
            part = rows[at : at + ROWS]
            seqs = segment.seq[part].tolist()
            stored = dict(zip(seqs, segment.ids_of(part), strict=True))
            marks = f"seq BETWEEN {seqs[0]} AND {seqs[-1]}"
            ids = dict(catalog.db.execute(f"SELECT seq, id FROM items WHERE {marks}").fetchall())
            wrong = [i for seq, i in stored.items() if ids.get(seq) != i]
            if wrong:
                problems.append(f"{catalog.path} and {segment.file.path} disagree on item {wrong[0]!r}")
    if alive != catalog.count("items"):
        problems.append(f"{catalog.path} lists {catalog.count('items')} items, its segments hold {alive}")
    return problems


MARK = "backup.json"  # tells a folder of ours from any other


@dataclass(frozen=True, slots=True)
class BackupReport:
    """What a backup copied, and what an earlier one had copied already."""

    items: int
    copied_segments: int
    kept_segments: int
    copied_bytes: int


def back_up(catalog: Catalog, snapshot: Snapshot, to: Path) -> BackupReport:
    """Copy a snapshot and its catalogue into a folder that is new, empty, or an earlier backup.

    Call it inside the transaction in which the snapshot was read. The copy's catalogue is replaced in one
    step, after its segments are complete; segments it no longer names are removed last.
    """
    _check_folder(to)
    (to / "segments").mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(to / MARK, json.dumps({"format": 1}).encode())
    sizes = [_copy_segment(segment, segment_path(to, segment.number)) for segment in snapshot.segments]
    sync_folder(to / "segments")
    _copy_catalog(catalog, to / "catalog.sqlite")
    CommitLog(to).rewrite(catalog.committed())
    for path in SegmentFolder(to).unnamed([segment.number for segment in snapshot.segments]):
        path.unlink()
    copied = [size for size in sizes if size]
    return BackupReport(catalog.living_items(), len(copied), len(sizes) - len(copied), sum(copied))


def _check_folder(to: Path) -> None:
    if to.exists() and (not to.is_dir() or (any(to.iterdir()) and not (to / MARK).is_file())):
        raise InvalidInputError(f"{to} is neither empty nor a backup made by setnet: choose another folder")


def _copy_segment(segment: Segment, to: Path) -> int:
    """Copy a segment unless the same one is there already; return the bytes copied."""
    source = segment.file
    if to.exists():
        try:
            there = SegmentFile(to)
            if (there.bytes, there.crc) == (source.bytes, source.crc) and not there.damage():
                return 0
        except StorageError:
            pass  # cut short by a kill, or damaged: copied again
    source.require_sound()
    replace_file(to, source.content)  # from the map: a merge may have removed the file by now
    return source.bytes


def _copy_catalog(catalog: Catalog, to: Path) -> None:
    unfinished = to.with_name(UNFINISHED)
    empty_database(unfinished)
    with closing(sqlite3.connect(unfinished, isolation_level=None)) as copy:
        catalog.db.backup(copy)
    put_in_place(unfinished, to)


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
    set_aside
        Files of segments that were never stored, or merged into others; kept in the quarantine for a week.
    """

    items: int
    segments: int
    lost: tuple[str, ...]
    revived: int
    set_aside: tuple[str, ...] = ()


def repair_index(root: Path, revive: bool = False) -> RepairReport:
    """Rebuild the catalogue of the index in ``root``; `setnet.engine.SetIndex.repair` says what it means."""
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
        self.set_aside: list[str] = []
        self.log = CommitLog(root).read() or Committed(damage=f"{root} has no commit log")
        self.old = _read_catalog(root / "catalog.sqlite")
        self.generation = max(self.log.generation, self.old.generation) + 1
        if not self.log.damage and self._is_log_cut():
            self.log.damage = f"{root} has stored more than its commit log says"
        sound = [state for state in (self.log, self.old) if not state.damage]
        # at the same generation the log, every line of which has a checksum
        self.truth = max(sound, key=lambda state: state.generation, default=None)

    def _is_log_cut(self) -> bool:
        """Whether changes were stored after the last one in the log, as far as anything tells."""
        if not self.old.damage:
            return self.log.generation < self.old.generation
        newest = max((number for number, _ in self._files()), default=0)
        return self.log.generation < self.old.generation or newest > self.log.highest

    def _files(self) -> list[tuple[int, Path]]:
        """Return number and path of all files of segments, newest first."""
        paths = (self.root / "segments").glob("*.seg")
        return sorted(((int(path.stem), path) for path in paths if path.stem.isdecimal()), reverse=True)

    def run(self, revive: bool) -> RepairReport:
        settings = self._settings()
        if self.truth:
            SegmentFolder(self.root).bring_back(self.truth.segments)
        segments = self._segments(settings)
        doubtful = 0 if self.truth else sum(map(len, segments))
        if doubtful and not revive:
            raise InvalidInputError(
                f"nothing says which of {doubtful} items of {self.root} were deleted ({self.log.damage}): "
                "repairing would bring all of them back. Allow it with revive=True"
            )
        path = self.root / UNFINISHED
        empty_database(path)
        Catalog.create(path, settings.meta())
        with closing(Catalog(path, read_only=False)) as catalog:
            self._fill(catalog, segments)
            catalog.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            items, state = catalog.count("items"), catalog.committed()
        self._put_in_place(path)
        SegmentFolder(self.root).bring_back(state.segments)
        sync_folder(self.root / "segments")
        CommitLog(self.root).rewrite(state)
        return RepairReport(items, len(segments), tuple(self.lost), doubtful, tuple(self.set_aside))

    def _settings(self) -> Settings:
        for source in (self.truth, self.log, self.old):
            with suppress(StorageError):
                return Settings.of_json(source.settings if source else None)
        raise StorageError(
            f"{self.root} cannot be repaired: neither its commit log nor its catalogue has sound settings"
        )

    def _segments(self, settings: Settings) -> list[Segment]:
        """Return the sound segments that are alive, newest first; all where nothing says which are."""
        segments = []
        for number, path in self._files():
            if self.truth and number not in self.truth.segments:
                self.set_aside.append(path.name)
                continue
            try:
                file = SegmentFile(path)
                if file.damage():
                    segment = self._salvage(number, file, settings.shape)
                else:
                    segment = Segment(number, file, settings.shape)
                damage = (segment.problems() or _broken_texts(segment)) if segment else []
                if segment and not damage:
                    segments.append(segment)
            except (SetNetError, ValueError, KeyError) as error:  # not OSError: a disk may read it next time
                damage = [str(error)]
            self.lost += [f"segment {number}: {text}" for text in damage]
        named = (self.truth or self.log).segments
        self.lost += [
            f"segment {number} is missing" + ("" if self.truth else ", or merged into another")
            for number in sorted(named)
            if not segment_path(self.root, number).exists()
        ]
        return segments

    def _salvage(self, number: int, file: SegmentFile, shape: Shape) -> Segment | None:
        """Write what is sound of a damaged segment to a new one, and name what is not; None if nothing is.

        The new file lies in the quarantine until the new catalogue names it.
        """
        damaged = Segment(number, file, shape, as_they_are=True)
        blocks = file.damaged_blocks()
        wanted = np.setdiff1d(np.arange(len(damaged)), self._dead_rows(number))
        readable = _rows_with_ids(damaged, wanted, blocks)
        rows = _sound_rows(damaged, readable, blocks)
        if lost := len(wanted) - len(rows):
            names = [repr(name) for name in damaged.ids_of(np.setdiff1d(readable, rows)[:NAMED])]
            names += [f"{lost - len(names)} more"] * (lost > len(names))
            arrays = " and ".join(blocks)
            what = f"{file.path.name} is damaged in {arrays}, {lost} items are lost"
            self.lost.append(f"segment {number}: {what}: {', '.join(names)}")
        if not len(rows):
            return None
        aside = self.root / QUARANTINE
        aside.mkdir(mode=0o700, exist_ok=True)
        new = SegmentFolder(self.root).free_number(number + 1)
        path = aside / segment_path(self.root, new).name
        write_segment(path, [(damaged, rows)], shape, lists=damaged.listed)
        sync_folder(aside)
        return Segment(new, SegmentFile(path), shape)

    def _dead_rows(self, number: int) -> list[int]:
        states = [self.truth] if self.truth else [self.log, self.old]
        return sorted(set().union(*(state.deleted.get(number, ()) for state in states)))

    def _fill(self, catalog: Catalog, segments: list[Segment]) -> None:
        """Enter the rows of all segments; of two rows of one item the one in the newer segment counts."""
        with catalog.writing():
            for segment in segments:
                file = segment.file
                catalog.enter_segment(
                    segment.number, len(segment), int(segment.offsets[-1]), file.bytes, file.crc
                )
                dead = np.isin(np.arange(len(segment)), self._dead_rows(segment.number))
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


Blocks = Mapping[str, NDArray[np.int64]]  # the numbers of the damaged ones of each array


def _unharmed(
    segment: Segment,
    blocks: Blocks,
    name: str,
    rows: NDArray[np.int64],
    first: NDArray[np.int64],
    end: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return those rows whose entries in an array, ``first`` to before ``end``, are in no damaged block."""
    if name not in blocks:
        return rows
    entry = segment.file.entry(name)
    width = entry.dtype.itemsize * int(np.prod(entry.shape[1:]))
    before = np.searchsorted(blocks[name], first * width // BLOCK)
    after = np.searchsorted(blocks[name], -(-end * width // BLOCK))
    return np.asarray(rows[(after == before) | (first == end)])


def _rows_with_ids(segment: Segment, rows: NDArray[np.int64], blocks: Blocks) -> NDArray[np.int64]:
    """Return those rows whose ids are sound."""
    starts, _ = segment.id_texts()
    rows = _unharmed(segment, blocks, "id_offsets", rows, rows, rows + 2)
    return _unharmed(segment, blocks, "id_bytes", rows, starts[rows], starts[rows + 1])


def _sound_rows(segment: Segment, rows: NDArray[np.int64], blocks: Blocks) -> NDArray[np.int64]:
    """Return those rows of which no damaged block holds anything that could not be made again."""
    rows = _unharmed(segment, blocks, "seq", rows, rows, rows + 1)
    rows = _unharmed(segment, blocks, "offsets", rows, rows, rows + 2)
    if segment.budget:
        rows = _with_sound_codes(segment, rows, blocks)
    else:
        rows = _unharmed(segment, blocks, "elements", rows, segment.offsets[rows], segment.offsets[rows + 1])
    for i, column in enumerate(segment.columns.values()):
        rows = _unharmed(segment, blocks, f"column_{i}_numbers", rows, rows, rows + 1)
        none = rows[column.numbers[rows] < 0]
        rows = rows[column.numbers[rows] >= 0]
        value = column.numbers[rows].astype(np.int64)
        rows = _unharmed(segment, blocks, f"column_{i}_values", rows, value, value + 2)
        value = column.numbers[rows].astype(np.int64)
        texts = column.offsets[value], column.offsets[value + 1]
        rows = np.union1d(none, _unharmed(segment, blocks, f"column_{i}_texts", rows, *texts))
    bits = segment.shape.sets.bits if segment.shape.sets else 32
    rows = _unharmed(segment, blocks, "set_codes" if bits == 1 else "set_rows", rows, rows, rows + 1)
    return rows if bits >= 16 else _unharmed(segment, blocks, "set_scales", rows, rows, rows + 1)


def _with_sound_codes(segment: Segment, rows: NDArray[np.int64], blocks: Blocks) -> NDArray[np.int64]:
    """Return those rows whose budget codes are sound; none where nothing says which codes are whose."""
    if "budget_runs" in blocks:
        return rows[:0]
    none = rows[segment.counts[rows] == 0]
    rows = rows[(segment.counts[rows] > 0) & (segment.lanes[rows] >= 0)]
    lane = segment.lanes[rows]
    rows = _unharmed(segment, blocks, "lane_rows", rows, lane, lane + 1)
    start, size = segment.code_places(rows)
    rows = _unharmed(segment, blocks, "budget_codes", rows, start, start + size * segment.counts[rows])
    return np.union1d(none, rows)


def _broken_texts(segment: Segment) -> list[str]:
    """Return why ids or attributes cannot be read; empty when they can."""
    try:
        for at in range(0, len(segment), ROWS):
            rows = np.arange(at, min(at + ROWS, len(segment)))
            segment.ids_of(rows)
            segment.attributes_of(rows)
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
    chosen = [(seq, n) for seq, n, new in zip(seqs, ids, fresh, strict=True) if new]
    catalog.db.executemany("INSERT INTO items VALUES (?, ?)", chosen)


def _read_catalog(path: Path) -> Committed:
    """Return what can still be read from a damaged catalogue."""
    found = Committed(damage=f"{path} is damaged")
    with suppress(SetNetError, OSError, sqlite3.Error), closing(Catalog(path, read_only=True)) as catalog:
        with suppress(SetNetError, sqlite3.Error):
            found.settings = catalog.get("settings")
            found.generation = catalog.get("generation")
        if not catalog.damage():
            found = catalog.committed()
    return found
