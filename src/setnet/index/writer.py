"""Everything that changes an index; one writer at a time, each change one transaction."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import LockedError, StorageError
from setnet.index import seal
from setnet.index.catalog import Catalog
from setnet.index.contents import Batch, Segment, Source, write_segment
from setnet.index.snapshot import Snapshot, segment_path
from setnet.index.tags import Tagged, write_tags

__all__ = ["Writer"]

MERGE = 8  # segments of one tier that are merged into one of the next
LARGEST_MERGED = 32768  # items: larger segments are merged by `compact` only


class Writer:
    """Holds the write lock of an index from opening to closing."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = os.open(root / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            raise LockedError(
                f"{root} is open for writing elsewhere: wait for it, or open with read_only=True to search"
            ) from None
        self.catalog_path = root / "catalog.sqlite"
        try:
            self.catalog = Catalog(self.catalog_path, read_only=False)
            self.catalog.db.execute("PRAGMA synchronous = FULL")
            self._sweep()
        except BaseException:
            os.close(self._lock)
            raise
        self._changed = False

    def close(self) -> None:
        """Empty the write-ahead log, seal the catalogue and give the lock back."""
        try:
            if self._changed:
                busy = self.catalog.db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
                if not busy:
                    seal.write(self.catalog_path)
        finally:
            self.catalog.close()
            os.close(self._lock)

    def _sweep(self) -> None:
        """Remove files that a killed writer left and no committed row speaks of."""
        known = {segment_path(self.root, number) for number, *_ in self.catalog.segments()}
        for path in (self.root / "segments").iterdir():
            if path not in known:
                path.unlink()

    def _begin(self) -> None:
        if not self._changed:
            seal.remove(self.catalog_path)
            self._changed = True

    def add(self, batch: Batch, details: list[dict[str, Any]] | None, snapshot: Snapshot) -> None:
        """Store a batch; ids that are there already are replaced and keep their place in the order."""
        self._begin()
        path: Path | None = None
        try:
            with self.catalog.writing():
                seq, replaced = self.catalog.enter(batch.ids)
                batch.seq[:] = seq
                self._bury(snapshot, replaced)
                self.catalog.clear_details([(int(s),) for s in replaced])
                if details:
                    self.catalog.enter_attributes(zip(seq.tolist(), details, strict=True))
                path = self._write([(batch, np.arange(len(seq)))], snapshot)
        except BaseException:
            self._discard(path)
            raise

    def delete(self, seqs: NDArray[np.int64], snapshot: Snapshot) -> None:
        """Delete items; their vectors leave the disk at the next merge or `compact`."""
        self._begin()
        with self.catalog.writing():
            self._bury(snapshot, seqs)
            self.catalog.remove(seqs.tolist())

    def _bury(self, snapshot: Snapshot, seqs: NDArray[np.int64]) -> None:
        for s, rows in snapshot.find(np.sort(seqs)) if len(seqs) else []:
            segment = snapshot.segments[s]
            self.catalog.bury(segment.number, rows, int(segment.counts[rows].sum()))

    def _write(self, parts: Sequence[tuple[Source, NDArray[np.int64]]], snapshot: Snapshot) -> Path:
        number = self.catalog.get("next_segment")
        self.catalog.set("next_segment", number + 1)
        path = segment_path(self.root, number)
        path.unlink(missing_ok=True)  # of a change that was rolled back
        crc = write_segment(path, list(parts), snapshot.shape)
        items = sum(len(rows) for _, rows in parts)
        elements = sum(int(source.counts[rows].sum()) for source, rows in parts)
        self.catalog.enter_segment(number, items, elements, path.stat().st_size, crc)
        self._sync_folder()
        return path

    def _sync_folder(self) -> None:
        folder = os.open(self.root / "segments", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _discard(self, path: Path | None) -> None:
        if path is not None:
            path.unlink(missing_ok=True)

    def merge(self, snapshot: Snapshot, which: Sequence[int]) -> None:
        """Replace segments by one that holds their living rows; readers keep what they have open."""
        self._begin()
        old: list[Segment] = [snapshot.segments[s] for s in which]
        path: Path | None = None
        try:
            with self.catalog.writing():
                self.catalog.drop_segments([segment.number for segment in old])
                parts = [(snapshot.segments[s], snapshot.alive(s)) for s in which]
                parts = [(segment, rows) for segment, rows in parts if len(rows)]
                if parts:
                    path = self._write(parts, snapshot)
        except BaseException:
            self._discard(path)
            raise
        for segment in old:
            segment.file.path.unlink(missing_ok=True)

    def tag(self, names: list[str], rows: NDArray[np.float32], found: Iterator[list[Tagged]]) -> int:
        """Replace the tags; return the number of entries."""
        self._begin()
        with self.catalog.writing():
            return write_tags(self.catalog, names, rows, found)

    def change_settings(self, meta: dict[str, Any]) -> None:
        """Replace the settings of an index that holds nothing yet."""
        self._begin()
        with self.catalog.writing():
            self.catalog.drop_segments([number for number, *_ in self.catalog.segments()])
            for key, value in meta.items():
                self.catalog.set(key, value)

    def overfull_tier(self, snapshot: Snapshot) -> list[int] | None:
        """Return segments of like size that are due for a merge, smallest tier first."""
        tiers: dict[int, list[int]] = {}
        for s, segment in enumerate(snapshot.segments):
            if len(segment) < LARGEST_MERGED:
                tiers.setdefault(int(np.log2(max(len(segment), 1)) // 3), []).append(s)
        return next((tiers[t] for t in sorted(tiers) if len(tiers[t]) >= MERGE), None)

    def shrink(self) -> None:
        """Give the catalogue's free pages back, so that nothing deleted stays on the disk."""
        self._begin()
        try:
            self.catalog.db.execute("VACUUM")
            self.catalog.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        except Exception as error:
            raise StorageError(f"cannot shrink {self.catalog_path}: {error}") from error
