"""Everything that changes an index: one writer at a time, each change one transaction."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.durable import after_commit, storage_errors
from setnet.engine.catalog import Catalog, settle_log
from setnet.engine.columns import columns_of
from setnet.engine.commit_log import CommitLog
from setnet.engine.files import (
    KEPT_SECONDS,
    UNFINISHED,
    SegmentFolder,
    remove_database,
    restrict_with_notice,
    segment_path,
)
from setnet.engine.kernels.backend import threads
from setnet.engine.lists import SMALLEST_LISTED
from setnet.engine.reader import IndexReader
from setnet.engine.segment import Batch, Part, Segment, write_segment
from setnet.engine.segment_file import AbandonedError
from setnet.engine.settings import GIVEN, Shape, check_vectors, is_unicode
from setnet.engine.snapshot import Snapshot
from setnet.errors import InvalidInputError, LockedError, StorageError
from setnet.heads import Aggregator, codec
from setnet.system import FileLock, sync_folder

logger = logging.getLogger(__name__)

ID_LIMIT = 512  # bytes
MOST_ELEMENTS = 2**31 - 1  # of one item
UNIT = 0.01  # by how much the length of an element may differ from 1 where codes are made for unit vectors
CHECKED_AT_ONCE = 65536  # rows: keeps temporaries small


def check_ids(ids: Sequence[str]) -> list[str]:
    """Return the ids as a list, or raise an error naming the first bad one."""
    if isinstance(ids, (str, bytes)):
        raise InvalidInputError(f"ids must be a list of strings, not the single string {ids!r}")
    for i in ids:
        if not isinstance(i, str):
            raise InvalidInputError(f"id {i!r} is a {type(i).__name__}: ids are strings")
        if not is_unicode(i):
            raise InvalidInputError(f"id {i!r} is not valid Unicode text")
        size = len(i.encode())
        if not 1 <= size <= ID_LIMIT:
            raise InvalidInputError(f"id {i[:40]!r} has {size} bytes: ids have 1 to {ID_LIMIT}")
        if "\0" in i:
            raise InvalidInputError(f"id {i!r} holds a NUL character")
    return list(ids)


# of each item: in the order of ids, or by id
Attributes = Sequence[Mapping[str, Any] | None] | Mapping[str, Mapping[str, Any] | None]


def checked_batch(
    ids: Sequence[str] | Mapping[str, ArrayLike],
    elements: ArrayLike | Sequence[ArrayLike] | None,
    counts: ArrayLike | None,
    attributes: Attributes | None,
    set_vectors: ArrayLike | None,
    shape: Shape,
    head: Aggregator | None,
) -> Batch:
    """Return the rows to store; their sequence numbers are still unset."""
    if isinstance(ids, Mapping):
        if elements is not None or counts is not None:
            raise InvalidInputError(
                "a mapping of ids has the elements already: leave elements and counts out"
            )
        elements = list(ids.values())
    names = check_ids(list(ids) if isinstance(ids, Mapping) else ids)
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = next(i for i in names if i in seen or seen.add(i))  # type: ignore[func-returns-value]
        raise InvalidInputError(f"id {twice!r} is given twice in one call")
    if counts is None:
        elements, counts = _one_by_one(elements, names, shape.dim)
    sizes = _counts(counts, names)
    rows = _elements(cast(ArrayLike, elements), shape, int(sizes.sum()))
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    if isinstance(attributes, Mapping):
        if strange := attributes.keys() - set(names):
            raise InvalidInputError(f"attributes given for {min(strange)!r}, which is none of the ids")
        attributes = [attributes.get(i) for i in names]
    if attributes is not None and len(attributes) != len(names):
        raise InvalidInputError(f"{len(attributes)} attribute mappings given for {len(names)} ids")
    codes, scales = _sets(set_vectors, rows, sizes, shape, head, names)
    columns = columns_of(attributes or (), names)
    return Batch(names, np.empty(len(names), np.int64), sizes, offsets, rows, columns, codes, scales)


def _one_by_one(given: Any, ids: list[str], dim: int) -> tuple[NDArray[Any], list[int]]:
    """Return the elements of items given an array each, one item after another, and how many each has."""
    if not isinstance(given, (Sequence, np.ndarray)) or len(given) != len(ids):
        raise InvalidInputError(f"elements must be an array for each of {len(ids)} ids, or counts= be given")
    rows = [np.asarray(one) for one in given]
    rows = [np.atleast_2d(one) if one.size else np.empty((0, dim), np.float32) for one in rows]
    for i, one in zip(ids, rows, strict=True):
        if one.ndim != 2 or one.shape[1] != dim:
            raise InvalidInputError(f"elements of id {i!r} have shape {one.shape}: (n, {dim}) is expected")
    return np.concatenate([np.empty((0, dim), np.float16), *rows]), [len(one) for one in rows]


def _counts(counts: ArrayLike, ids: list[str]) -> NDArray[np.int64]:
    sizes = np.asarray(counts)
    if sizes.ndim != 1 or len(sizes) != len(ids):
        raise InvalidInputError(
            f"counts of shape {sizes.shape} given for {len(ids)} ids: one count per id expected"
        )
    if sizes.size and not np.issubdtype(sizes.dtype, np.integer):
        raise InvalidInputError(f"counts must be whole numbers, not {sizes.dtype}")
    if sizes.size and sizes.max() > MOST_ELEMENTS:
        raise InvalidInputError(
            f"count {sizes.max()} of id {ids[int(sizes.argmax())]!r} is more than {MOST_ELEMENTS} elements"
        )
    if sizes.size and sizes.min() < 0:
        raise InvalidInputError(f"count {sizes.min()} of id {ids[int(sizes.argmin())]!r} is negative")
    return sizes.astype(np.int64)


def _elements(elements: ArrayLike, shape: Shape, expected: int) -> NDArray[Any]:
    given = np.asarray(elements)
    if given.size == 0 and expected == 0:
        return np.empty((0, shape.dim), shape.precision)
    if given.dtype.kind not in "fiu":
        raise InvalidInputError(f"elements must be real numbers, not {given.dtype}")
    if given.ndim != 2 or given.shape[1] != shape.dim:
        raise InvalidInputError(f"elements have shape {given.shape}: this index expects (n, {shape.dim})")
    if len(given) != expected:
        raise InvalidInputError(f"counts add up to {expected}, but {len(given)} elements are given")
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(given, dtype=shape.precision)
    for at in range(0, len(rows), CHECKED_AT_ONCE):
        part = rows[at : at + CHECKED_AT_ONCE]
        if not _are_good_halves(part):
            name = partial(_element, at, shape.precision)
            check_vectors(part.astype(np.float32, copy=False), shape.dim, name)
        if shape.bytes_per_item:
            _check_lengths(part, partial(_element, at, shape.precision))
    return rows


def _check_lengths(rows: NDArray[Any], name: Callable[[int], str]) -> None:
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float32))
    worst = int(np.abs(length - 1).argmax())
    if abs(length[worst] - 1) > UNIT:
        raise InvalidInputError(
            f"{name(worst)} has length {length[worst]:.3g}: an index with bytes_per_item holds vectors of "
            "unit length, divide each by its norm"
        )


def _element(first: int, precision: str, row: int) -> str:
    return f"element {first + row} (as {precision})"


def _are_good_halves(rows: NDArray[Any]) -> bool:
    """Whether rows are float16, finite and not zero, read from their bits: converting them takes longer."""
    if rows.dtype != np.float16:
        return False
    largest = (rows.view(np.uint16) & 0x7FFF).max(axis=1)
    return bool((largest > 0).all() and (largest < 0x7C00).all())


def _sets(
    given: ArrayLike | None,
    rows: NDArray[Any],
    counts: NDArray[np.int64],
    shape: Shape,
    head: Aggregator | None,
    ids: list[str],
) -> tuple[NDArray[np.uint8], NDArray[np.float32]]:
    """Return the set vectors' codes and scales: given by the caller, or made by the head."""
    sets = shape.sets
    if given is not None and (sets is None or sets.name != GIVEN):
        raise InvalidInputError(
            f"this index makes its set vectors itself (head {sets.name if sets else 'none'!r}): leave "
            "set_vectors out, or create the index with set_dim="
        )
    if sets is None:
        return np.empty((len(counts), 0), np.uint8), np.ones(len(counts), np.float32)
    if given is None:
        if head is None:
            raise InvalidInputError(
                f"this index holds set vectors named {sets.name!r} that the caller makes: pass set_vectors=, "
                "or open the index with the head that makes them"
            )
        codes = head.encode(rows.astype(np.float32, copy=False), counts)
        return codes, _scales(codes, np.ones(len(codes)), sets.dim, sets.bits)
    with np.errstate(over="ignore"):
        vectors = np.asarray(given, dtype=np.float32)
    if vectors.shape != (len(ids), sets.dim):
        raise InvalidInputError(f"set vectors have shape {vectors.shape}, expected ({len(ids)}, {sets.dim})")
    filled = np.flatnonzero(counts > 0)
    if len(filled):
        check_vectors(vectors[filled], sets.dim, lambda row: f"set vector of id {ids[filled[row]]!r}")
    codes = codec.encode(vectors, sets.bits)
    return codes, _scales(codes, np.linalg.norm(vectors, axis=1), sets.dim, sets.bits)


def _scales(codes: NDArray[np.uint8], length: NDArray[Any], dim: int, bits: int) -> NDArray[np.float32]:
    """Return what turns levels into vectors of the given lengths; floats need nothing."""
    scales = np.ones(len(codes), np.float32)
    for at in range(0, len(codes) if bits < 16 else 0, CHECKED_AT_ONCE):
        part = slice(at, at + CHECKED_AT_ONCE)
        norm = np.linalg.norm(codec.decode_levels(codes[part], dim, bits), axis=1)
        scales[part] = length[part] / np.maximum(norm, 0.5)  # less has only the code of the zero vector
    return scales


MERGE = 8  # segments of one tier that are merged into one of the next; a tier spans a factor of eight
BATCHES = 3  # the tier from 512 items on: from here on segments wait until they add up to a large one
BELOW = (16_384, 1 << 20)  # items: the ends of these tiers; larger segments are merged by `compact` only
FILLED = (32_768, 1 << 20)  # items: what they must add up to
LARGEST = 1 << 22  # items: `compact` makes no larger segment, as a merge needs as much disk again


BEHIND = 1 << 26  # bytes: a larger merge runs beside the caller's next changes
CROWD = 64  # segments: with more, a change waits a little for the merge that is under way
PATIENCE = 0.3  # seconds


@dataclass(frozen=True)
class Merged:
    """A written segment without a number: its sources, their rows in it, its file and footer's checksum."""

    old: list[Segment]
    parts: list[tuple[Segment, NDArray[np.int64]]]
    path: Path
    crc: int


class Writer:
    """Changes an index, and holds its write lock; `setnet.engine.SetIndex` says what each change means."""

    def __init__(self, root: Path, head: Aggregator | None) -> None:
        self.root = root
        self._one_at_a_time = threading.RLock()
        self._behind: Future[None] | None = None
        self._stop = threading.Event()
        try:
            self._lock = FileLock(root / "lock")
        except LockedError:
            raise LockedError(
                f"{root} is open for writing elsewhere: wait for it, or open with read_only=True to search"
            ) from None
        self.catalog_path = root / "catalog.sqlite"
        self.folder = SegmentFolder(root)
        self._merges = count()
        self._log = CommitLog(root)
        try:
            self.catalog = Catalog(self.catalog_path, read_only=False)
            self.catalog.db.execute("PRAGMA synchronous = FULL")
            settle_log(self.catalog_path)
            self._compare_log()
            self._put_aside()
            restrict_with_notice(root)
        except BaseException:
            self._lock.close()
            raise
        try:
            self.reader = IndexReader(root, head)
        except BaseException:
            self._give_up()
            raise

    def close(self) -> None:
        """Close the index and give the write lock back, after a change under way; a merge is abandoned."""
        self._stop_merging()
        with self._one_at_a_time:  # again after an interrupt: each part may be closed twice
            try:
                self.reader.close()
            finally:
                self._give_up()

    def _stop_merging(self) -> None:
        """Abandon the merge under way, if any, and wait until its file is gone."""
        if self._behind is not None and self._lock.is_ours:
            self._stop.set()
            wait([self._behind])

    def _give_up(self) -> None:
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

    def _store(self, batch: Batch, snapshot: Snapshot) -> None:
        """Store a batch; ids that are there already are replaced and keep their place in the order."""
        with self._changing() as change:
            seq, replaced = self.catalog.enter(batch.ids)
            batch.seq[:] = seq
            change["deleted"] = self._bury(snapshot, replaced)
            parts = [(batch, np.arange(len(seq)))]
            number = self._free_number()
            self._enter(number, parts, write_segment(segment_path(self.root, number), parts, snapshot.shape))
            change["added"] = [number]

    def _bury(self, snapshot: Snapshot, seqs: NDArray[np.int64]) -> dict[int, list[int]]:
        """Mark items as deleted; return their rows by segment."""
        dead: dict[int, list[int]] = {}
        for s, rows in snapshot.find(np.sort(seqs)) if len(seqs) else []:
            segment = snapshot.segments[s]
            self.catalog.bury(segment.number, rows, int(segment.counts[rows].sum()))
            dead[segment.number] = rows.tolist()
        return dead

    def _free_number(self) -> int:
        """Take a number for a segment, in the transaction that enters it."""
        number = self.folder.free_number(self.catalog.get("next_segment"))
        self.catalog.set("next_segment", number + 1)
        return number

    def _enter(self, number: int, parts: Sequence[Part], crc: int) -> None:
        """Enter a segment whose file is complete. On an error it stays: the commit may have succeeded."""
        path = segment_path(self.root, number)
        items = sum(len(rows) for _, rows in parts)
        elements = sum(int(source.counts[rows].sum()) for source, rows in parts)
        self.catalog.enter_segment(number, items, elements, path.stat().st_size, crc)
        sync_folder(path.parent)

    def merge(self, snapshot: Snapshot, which: Sequence[int], lists: bool | None = False) -> None:
        """Replace segments by one that holds their living rows; readers keep what they have open."""
        self.replace(self.write_merged(snapshot, which, lists), snapshot)

    def write_merged(
        self,
        snapshot: Snapshot,
        which: Sequence[int],
        lists: bool | None = False,
        stop: threading.Event | None = None,
    ) -> Merged:
        """Write the living rows of segments to a new file, beside searches and changes."""
        old = [snapshot.segments[s] for s in which]
        for segment in old:  # new checksums must not cover damage
            segment.file.require_sound()
        parts = [(snapshot.segments[s], rows) for s in which if len(rows := snapshot.alive(s))]
        if lists is None:
            lists = sum(len(rows) for _, rows in parts) >= SMALLEST_LISTED
        path = self.root / "segments" / f"merge-{next(self._merges)}.new"
        crc = write_segment(path, parts, snapshot.shape, lists, stop) if parts else 0
        return Merged(old, parts, path, crc)

    def replace(self, merged: Merged, latest: Snapshot) -> None:
        """Put a merged segment in place of its sources, without the rows that were deleted since."""
        rows = {segment.number: latest.alive(s) for s, segment in enumerate(latest.segments)}
        with self._changing() as change:
            change["dropped"] = [segment.number for segment in merged.old]
            self.catalog.drop_segments(change["dropped"])
            if merged.parts:
                number = self._free_number()
                merged.path.rename(segment_path(self.root, number))
                self._enter(number, merged.parts, merged.crc)
                change["added"] = [number]
                late = [(source, np.setdiff1d(own, rows[source.number])) for source, own in merged.parts]
                if any(len(gone) for _, gone in late):
                    stored = np.sort(np.concatenate([source.seq[own] for source, own in merged.parts]))
                    deleted = np.concatenate([source.seq[gone] for source, gone in late])
                    dead = np.sort(np.searchsorted(stored, deleted))
                    self.catalog.bury(number, dead, sum(int(s.counts[gone].sum()) for s, gone in late))
                    change["deleted"] = {number: dead.tolist()}
        for segment in merged.old:  # the commit is durable
            segment.file.path.unlink(missing_ok=True)

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
        """Whether a segment holds deleted items, or has lists or none where it should not."""
        segment = snapshot.segments[s]
        if lists is None:
            lists = segment.listed or len(segment) >= SMALLEST_LISTED
        other = segment.coded and lists != segment.listed
        return other or snapshot.dead[s] is not None

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

    def add(
        self,
        ids: Sequence[str] | Mapping[str, ArrayLike],
        elements: ArrayLike | Sequence[ArrayLike] | None,
        counts: ArrayLike | None,
        attributes: Attributes | None,
        set_vectors: ArrayLike | None,
    ) -> None:
        """Add items, or replace those whose id is stored already."""
        with self._one_at_a_time:
            snapshot = self.reader.snapshot()
            head = self.reader.head if set_vectors is None else None
            batch = checked_batch(ids, elements, counts, attributes, set_vectors, snapshot.shape, head)
            if batch.ids:
                self._store(batch, snapshot)
                self._merge_small()
        if self._behind is not None and len(snapshot.segments) > CROWD:
            wait([self._behind], PATIENCE)

    def _merge_small(self) -> None:
        """Merge segments that pile up; a failure costs only tidiness, as the items are stored already."""
        with self._tidying():
            while due := self.overfull_tier(self.reader.snapshot()):
                snapshot = self.reader.snapshot()
                if sum(snapshot.segments[s].file.bytes for s in due) <= BEHIND:
                    self.merge(snapshot, due)
                    continue
                if self._behind is None or self._behind.done():
                    self._stop.clear()
                    self._behind = threads("merge").submit(self._merge_behind, snapshot, due)
                return

    def _merge_behind(self, snapshot: Snapshot, due: list[int]) -> None:
        """Write a large segment while the index is changed, and replace its sources in one short step."""
        with self._tidying(), suppress(AbandonedError):
            merged = self.write_merged(snapshot, due, stop=self._stop)
            with self._one_at_a_time:
                latest = self.reader.snapshot()
                if {segment.number for segment in merged.old} <= {s.number for s in latest.segments}:
                    self.replace(merged, latest)
                else:  # `compact` was faster
                    merged.path.unlink(missing_ok=True)

    @contextmanager
    def _tidying(self) -> Iterator[None]:
        try:
            with storage_errors(self.root):
                yield
        except StorageError as error:
            logger.warning("small segments of %s were not merged: %s", self.root, error)

    def update(self, attributes: Mapping[str, Mapping[str, Any]]) -> None:
        """Store items again with other attributes."""
        with self._one_at_a_time:
            seqs = self.reader.seqs_of(check_ids(list(attributes)), ": nothing was changed")
            snapshot = self.reader.snapshot()
            parts = [(snapshot.segments[s], rows) for s, rows in snapshot.find(seqs)]
            if not parts:
                return
            sizes = np.concatenate([segment.counts[rows] for segment, rows in parts])
            ids = [name for segment, rows in parts for name in segment.ids_of(rows)]
            before = [values for segment, rows in parts for values in segment.attributes_of(rows)]
            details = [{**values, **attributes[name]} for name, values in zip(ids, before, strict=True)]
            sets = [segment.sets_of(rows) for segment, rows in parts]
            elements = np.concatenate([segment.elements_of(rows) for segment, rows in parts])
            codes, scales = (np.concatenate(of_sets) for of_sets in zip(*sets, strict=True))
            offsets = np.concatenate([[0], np.cumsum(sizes)])
            columns = columns_of(details, ids)
            seq = np.empty(len(ids), np.int64)
            batch = Batch(ids, seq, sizes, offsets, elements, columns, codes, scales, stored=parts)
            self._store(batch, snapshot)
            self._merge_small()

    def delete(self, ids: Sequence[str] | None, where: Mapping[str, Any] | None) -> int:
        """Delete items by id or condition; return how many."""
        with self._one_at_a_time:
            snapshot, allowed = self.reader.view(where)
            if ids is not None:
                seqs = self.reader.seqs_of(check_ids(ids), ": nothing was deleted")
            else:
                chosen = [(s, snapshot.alive(s)) for s in range(len(snapshot.segments))]
                held = [
                    snapshot.segments[s].seq[rows[allowed.of_rows(s, rows)]] for s, rows in chosen if allowed
                ]
                seqs = np.concatenate([np.empty(0, np.int64), *held])
            if len(seqs):
                with self._changing() as change:
                    change["deleted"] = self._bury(snapshot, seqs)
                    self.catalog.remove(seqs.tolist())
            return len(seqs)

    def compact(self, lists: bool | None) -> None:
        """Merge segments into as few as can be and drop deleted items from the disk, for good."""
        self._stop_merging()
        with self._one_at_a_time:
            while runs := self.compactable(self.reader.snapshot(), lists):
                self.merge(self.reader.snapshot(), runs[0], lists)
            self.reader.snapshot()
            self.shrink()
