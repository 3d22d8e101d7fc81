"""Everything that changes an index; one writer at a time, each change one transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.durable import after_commit
from setnet.errors import LockedError, StorageError
from setnet.index.storage.catalog import Catalog
from setnet.index.storage.commit_log import CommitLog
from setnet.index.storage.creation import UNFINISHED, remove_database
from setnet.index.storage.permissions import restrict_with_notice
from setnet.index.storage.segments.batch import Batch
from setnet.index.storage.segments.segment_folder import KEPT_SECONDS, SegmentFolder, segment_path
from setnet.index.storage.segments.segment_writer import Source, write_segment
from setnet.index.storage.snapshot import Snapshot
from setnet.system import FileLock, sync_folder

MERGE = 8  # segments of one tier that are merged into one of the next; a tier spans a factor of eight
BATCHES = 3  # the tier from 512 items on: from here on segments wait until they add up to a large one
BELOW = (16_384, 1 << 20)  # items: the ends of these tiers; larger segments are merged by `compact` only
FILLED = (32_768, 1 << 20)  # items: what they must add up to
LARGEST = 1 << 22  # items: `compact` makes no larger segment, as a merge needs as much disk again


class Writer:
    """Holds the write lock of an index from opening to closing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        try:
            self._lock = FileLock(root / "lock")
        except LockedError:
            raise LockedError(
                f"{root} is open for writing elsewhere: wait for it, or open with read_only=True to search"
            ) from None
        self.catalog_path = root / "catalog.sqlite"
        self.folder = SegmentFolder(root)
        self._log = CommitLog(root)
        try:
            self.catalog = Catalog(self.catalog_path, read_only=False)
            self.catalog.db.execute("PRAGMA synchronous = FULL")
            self._compare_log()
            self._put_aside()
            restrict_with_notice(root)
        except BaseException:
            self._lock.close()
            raise

    def close(self) -> None:
        """Close the catalogue and give the lock back."""
        if not self._lock.is_ours:  # all of it belongs to the process this one was forked from
            self.catalog.abandon()
            return
        try:
            with suppress(sqlite3.Error):  # the log stays and is read by whoever opens next
                self.catalog.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self.catalog.close()
            self._lock.close()

    def _compare_log(self) -> None:
        """Refuse a catalogue that has forgotten acknowledged changes; bring a log up to date that lags."""
        with self.catalog.reading():
            generation = self.catalog.get("generation")
        logged = self._log.read()
        if logged is not None and logged.generation > generation:
            raise StorageError(
                f"{self.catalog_path} is at change {generation}, but {logged.generation} were stored: its "
                "write-ahead log was damaged. Nothing was changed; repair the index to get them back"
            )
        self._log_lags = logged is None or logged.generation < generation or not logged.is_tidy
        if self._log_lags:
            self._lock.verify()
            self._acknowledge(None)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """Run a change in one transaction and log it; the block enters what it adds, drops and deletes.

        Only when the log has it may the caller hear that it is stored.
        """
        self._lock.verify()
        lagged, self._log_lags = self._log_lags, True  # an interrupt may come between commit and log
        change: dict[str, Any] = {}
        with self.catalog.writing():
            yield change
        self._acknowledge(None if lagged else change)

    def _acknowledge(self, change: dict[str, Any] | None) -> None:
        """Append a committed change to the log, or write the log again when it lags."""
        with after_commit(self._log.path), self.catalog.reading():
            if change is None:
                self._log.rewrite(self.catalog.committed())
            else:
                self._log.append(self.catalog.get("generation"), **change)
        self._log_lags = False

    def _put_aside(self) -> None:
        """Quarantine files that a killed or failed change left and no committed row names."""
        named = {number for number, *_ in self.catalog.segments()}
        self.folder.bring_back(named)
        unnamed = self.folder.unnamed(named)
        if unnamed and (damage := self.catalog.damage()):
            raise StorageError(
                f"{damage[0]}, and it does not name {len(unnamed)} files in {self.root / 'segments'}: "
                "nothing was changed; run check() to see the damage"
            )
        remove_database(self.root / UNFINISHED)  # of a killed repair: it may list deleted items
        self.folder.put_aside(unnamed)
        self.folder.empty_quarantine(KEPT_SECONDS)

    def add(self, batch: Batch, details: list[dict[str, Any]] | None, snapshot: Snapshot) -> None:
        """Store a batch; ids that are there already are replaced and keep their place in the order."""
        with self._changing() as change:
            seq, replaced = self.catalog.enter(batch.ids)
            batch.seq[:] = seq
            change["deleted"] = self._bury(snapshot, replaced)
            self.catalog.clear_details([(int(s),) for s in replaced])
            if details:
                self.catalog.enter_attributes(zip(seq.tolist(), details, strict=True))
            change["added"] = [self._write([(batch, np.arange(len(seq)))], snapshot)]

    def delete(self, seqs: NDArray[np.int64], snapshot: Snapshot) -> None:
        """Delete items; their vectors leave the disk at the next merge or `compact`."""
        with self._changing() as change:
            change["deleted"] = self._bury(snapshot, seqs)
            self.catalog.remove(seqs.tolist())

    def _bury(self, snapshot: Snapshot, seqs: NDArray[np.int64]) -> dict[int, list[int]]:
        """Mark items as deleted; return their rows by segment."""
        dead: dict[int, list[int]] = {}
        for s, rows in snapshot.find(np.sort(seqs)) if len(seqs) else []:
            segment = snapshot.segments[s]
            self.catalog.bury(segment.number, rows, int(segment.counts[rows].sum()))
            dead[segment.number] = rows.tolist()
        return dead

    def _write(
        self,
        parts: Sequence[tuple[Source, NDArray[np.int64]]],
        snapshot: Snapshot,
        lists: bool | None = None,
    ) -> int:
        """Write a segment, enter it and return its number.

        On an error its file stays: the commit may have succeeded.
        """
        number = self.folder.free_number(self.catalog.get("next_segment"))
        self.catalog.set("next_segment", number + 1)
        path = segment_path(self.root, number)
        crc = write_segment(path, parts, snapshot.shape, lists)
        items = sum(len(rows) for _, rows in parts)
        elements = sum(int(source.counts[rows].sum()) for source, rows in parts)
        self.catalog.enter_segment(number, items, elements, path.stat().st_size, crc)
        sync_folder(path.parent)
        return int(number)

    def merge(self, snapshot: Snapshot, which: Sequence[int], lists: bool | None = None) -> None:
        """Replace segments by one that holds their living rows; readers keep what they have open."""
        old = [snapshot.segments[s] for s in which]
        for segment in old:  # new checksums must not cover damage
            segment.file.verify()
        parts = [(snapshot.segments[s], rows) for s in which if len(rows := snapshot.alive(s))]
        with self._changing() as change:
            change["dropped"] = [segment.number for segment in old]
            self.catalog.drop_segments(change["dropped"])
            change["added"] = [self._write(parts, snapshot, lists)] if parts else []
        for segment in old:  # the commit is durable
            segment.file.path.unlink(missing_ok=True)

    def change_settings(self, meta: dict[str, Any]) -> None:
        """Replace the settings of an index that holds nothing yet."""
        self._log_lags = True  # settings stand in the first line
        with self._changing():
            self.catalog.drop_segments([number for number, *_ in self.catalog.segments()])
            for key, value in meta.items():
                self.catalog.set(key, value)

    def overfull_tier(self, snapshot: Snapshot) -> list[int] | None:
        """Return segments of like size that are due for a merge, smallest tier first.

        Each merge writes all of them again. Many small ones slow searches down and are merged eight by eight;
        larger ones, as whole batches make them, twice at most.
        """
        tiers: dict[int, list[int]] = {}
        for s, segment in enumerate(snapshot.segments):
            tier = min(int(np.log2(max(len(segment), 1)) // 3), BATCHES)
            tiers.setdefault(tier + sum(len(segment) >= size for size in BELOW), []).append(s)
        for tier in sorted(tiers):
            items = sum(len(snapshot.segments[s]) for s in tiers[tier])
            filled = BATCHES <= tier < BATCHES + len(FILLED) and items >= FILLED[tier - BATCHES]
            if filled or (tier < BATCHES and len(tiers[tier]) >= MERGE):
                return tiers[tier]
        return None

    def compactable(self, snapshot: Snapshot, lists: bool | None) -> list[list[int]]:
        """Return runs of segments that become one each when all are merged, where that changes anything."""
        runs: list[list[int]] = []
        items = 0
        for s in range(len(snapshot.segments)):
            living = len(snapshot.alive(s))
            if not runs or items + living > LARGEST:
                runs.append([])
                items = 0
            runs[-1].append(s)
            items += living
        return [run for run in runs if len(run) > 1 or self._is_stale(snapshot, run[0], lists)]

    @staticmethod
    def _is_stale(snapshot: Snapshot, s: int, lists: bool | None) -> bool:
        """Whether a segment holds deleted items, or lacks codes or lists that it should have."""
        segment = snapshot.segments[s]
        other = not segment.bit_coded or lists not in (None, segment.listed)
        return (segment.coded and other) or snapshot.dead[s] is not None

    def shrink(self) -> None:
        """Give free pages back and delete what was put aside, so that nothing deleted stays on the disk."""
        self._lock.verify()
        try:
            self.catalog.db.execute("VACUUM")
            self.catalog.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._put_aside()
            self.folder.empty_quarantine()
            self.folder.sync()  # else a power cut brings deleted files back
        except sqlite3.Error as error:
            raise StorageError(f"cannot shrink {self.catalog_path}: {error}") from error
