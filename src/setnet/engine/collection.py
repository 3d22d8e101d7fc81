"""A collection: numbered manifests of immutable segments, which many machines write and search.

A segment file has everything about its items but whether they are deleted. Whoever has written one adds it by
creating the manifest with the next number, which only one can: the others read again and retry. A reader sees
one manifest. Folders need NumPy alone, other addresses fsspec; their segments are kept on the local disk.
What a program knows of its items beyond vectors and attributes is in Parquet files beside the segments.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import monotonic, time
from typing import Any, NoReturn, Unpack, cast
from uuid import uuid4

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.durable import storage_errors
from setnet.engine.columns import RowFilter
from setnet.engine.lists import SMALLEST_LISTED
from setnet.engine.manifest import (
    SEGMENTS,
    TABLES,
    WHOLE,
    ListedFile,
    Manifest,
    RemoteFolder,
    Share,
    folder_at,
    items_in,
    living_rows,
    manifest_numbers,
    manifest_path,
    may_share,
    newest_manifest,
    pyarrow,
    table_path,
)
from setnet.engine.reader import IndexReader
from setnet.engine.results import Report
from setnet.engine.segment import Part, Segment, Texts, joined_texts, ragged, write_segment
from setnet.engine.segment_file import SegmentFile
from setnet.engine.settings import IndexOptions, Settings
from setnet.engine.snapshot import Allowed, Snapshot
from setnet.engine.writer import LARGEST, Attributes, check_ids, checked_batch
from setnet.errors import InvalidInputError, StorageError
from setnet.heads import Aggregator

KEPT = 100  # older manifests, and what only they name, that stay for readers
ABANDONED = 24 * 3600.0  # seconds after which a file that no manifest names is nobody's
SMALL = 8  # segments of like size of one part that are merged into one


def id_hashes(texts: Texts) -> NDArray[np.uint64]:
    """Return a number for each id by which it is looked up; different ids rarely have the same.

    >>> one, other, again = id_hashes(joined_texts(["a", "b", "a"])).tolist()
    >>> one == again, one == other
    (True, False)
    """
    offsets, data = texts
    weights = np.random.default_rng(0).integers(0, 2**64, 1024, np.uint64) | np.uint64(1)
    found = np.empty(len(offsets) - 1, np.uint64)
    for at in range(0, len(found), 1 << 16):
        ends = offsets[at : at + (1 << 16) + 1]
        place = np.arange(ends[0], ends[-1]) - np.repeat(ends[:-1], np.diff(ends))
        values = (data[ends[0] : ends[-1]].astype(np.uint64) + np.uint64(1)) * weights[place % 1024]
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values, dtype=np.uint64)])
        found[at : at + (1 << 16)] = sums[ends[1:] - ends[0]] - sums[ends[:-1] - ends[0]]
    return found


class _Shifted:
    """Numbers that are read from a file where they are used, with another one added."""

    def __init__(self, stored: NDArray[np.int64], by: int) -> None:
        self._stored, self._by = stored, by

    def __len__(self) -> int:
        return len(self._stored)

    def __getitem__(self, rows: Any) -> Any:
        return self._stored[rows] + self._by

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.int64]:
        return self._stored + self._by


class CollectionSnapshot(Snapshot):
    """The segments of a part of a collection, as of one manifest."""

    def __init__(self, manifest: Manifest, part: Share, opened: Callable[[ListedFile], Segment]) -> None:
        self.manifest, self.generation, self.shape = manifest, manifest.number, manifest.settings.shape
        own = manifest.of_part(part)
        self.segments = [opened(listed) for listed in own]
        self.dead = [listed.dead_rows() for listed in own]
        self._filters: dict[str, RowFilter] = {}

    @property
    def attribute_names(self) -> set[str]:
        """The names of the attributes of all items of the collection."""
        return {name for listed in self.manifest.segments for name in listed.columns}

    @property
    def listed_items(self) -> tuple[int, int]:
        """How many items the collection's segments have, and how many of them are in inverted lists."""
        listed = sum(listed.items for listed in self.manifest.segments if listed.listed)
        return sum(listed.items for listed in self.manifest.segments), listed


class CollectionReader(IndexReader):
    """The reading side of a collection, or of a part of it: the newest manifest, and a few before it."""

    def __init__(self, address: str | Path, head: Aggregator | None = None, part: Share = WHOLE) -> None:
        self.files, self.part = folder_at(address), part
        self.path = Path(address)
        self._lock = threading.RLock()
        self._asked = 0.0
        self._recent: list[CollectionSnapshot] = []
        self._segments: dict[str, Segment] = {}
        self._hashes: dict[str, tuple[NDArray[np.uint64], NDArray[np.int64]]] = {}
        self._is_closed = False
        self.manifest = newest_manifest(self.files)
        self.settings = self.manifest.settings
        self._head = self._checked_head(head)

    @property
    def how_to_write(self) -> str:
        """The part of an error that says how to change a collection, which is open for reading here."""
        return "a collection is changed by setnet.engine.Collection"

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def close(self) -> None:
        """Let go of all files; searches still running end on what they hold."""
        self._is_closed = True
        self._recent, self._segments, self._hashes = [], {}, {}

    def refresh(self) -> CollectionSnapshot:
        """Return the collection as of its newest manifest, or of one that was the newest a moment ago."""
        recent = self._recent
        if recent and monotonic() - self._asked < self.files.fresh_seconds:
            return recent[0]
        return self.update()

    def update(self) -> CollectionSnapshot:
        """Return the collection as of its newest manifest."""
        with self._lock:
            self.ensure_open()
            self.manifest = newest_manifest(self.files, self.manifest)
            self._asked = monotonic()
            if not self._recent or self._recent[0].generation != self.manifest.number:
                try:
                    newest = CollectionSnapshot(self.manifest, self.part, self.open)
                except (FileNotFoundError, StorageError):
                    if newest_manifest(self.files, self.manifest) is self.manifest:
                        raise
                    return self.update()  # what it names has been removed since
                self._recent = [newest, *self._recent[:2]]
                named = {listed.name for listed in self.manifest.segments}
                for name in self._segments.keys() - named:
                    del self._segments[name]
                    self._hashes.pop(name, None)
                if isinstance(self.files, RemoteFolder):
                    self.files.forget(named)
            return self._recent[0]

    @property
    def recent(self) -> Sequence[CollectionSnapshot]:
        """The newest manifests that were read, newest first."""
        return self._recent

    def open(self, listed: ListedFile) -> Segment:
        """Return a segment that a manifest lists; another file in its place is an error."""
        if listed.name not in self._segments:
            file = SegmentFile(self.files.fetch(f"{SEGMENTS}/{listed.name}"))
            found = (file.info["items"], file.info["elements"], file.bytes, file.crc)
            if found != (listed.items, listed.elements, listed.bytes, listed.crc):
                raise StorageError(f"{file.path} is not the file that the manifest lists: copy it again")
            segment = Segment(0, file, self.settings.shape)
            segment.seq = cast("NDArray[np.int64]", _Shifted(segment.seq, listed.first))
            self._segments[listed.name] = segment
        return self._segments[listed.name]

    def view(self, where: Mapping[str, Any] | None) -> tuple[Snapshot, Allowed]:
        """Return the latest snapshot and the rows that satisfy the conditions."""
        snapshot = self.refresh()
        return snapshot, snapshot.allowed(where) if where else None

    def rows_named(self, name: str, segment: Segment, ids: Sequence[str]) -> dict[str, int]:
        """Return the rows of a segment, deleted or not, whose items have these ids."""
        if name not in self._hashes:
            hashes = id_hashes(segment.id_texts())
            order = np.argsort(hashes, kind="stable")
            self._hashes[name] = hashes[order], order
        hashes, order = self._hashes[name]
        wanted = id_hashes(joined_texts(ids))
        low, high = np.searchsorted(hashes, wanted, "left"), np.searchsorted(hashes, wanted, "right")
        place = np.repeat(np.arange(len(ids)), high - low)
        rows = order[np.concatenate([np.arange(0), *map(np.arange, low[low < high], high[low < high])])]
        return {
            own: row
            for own, row, at in zip(segment.ids_of(rows), rows.tolist(), place.tolist(), strict=True)
            if own == ids[at]
        }

    def known_seqs(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the sequence numbers of those ids that are stored."""
        snapshot = self.refresh()
        names = [i for i in ids if isinstance(i, str)]
        found: dict[str, int] = {}
        own = snapshot.manifest.of_part(self.part)
        for listed, segment, dead in zip(own, snapshot.segments, snapshot.dead, strict=True):
            for name, row in self.rows_named(listed.name, segment, names).items():
                if dead is None or not dead[row]:
                    found[name] = int(segment.seq[row])
        return found

    def consistent(self) -> NoReturn:
        """Raise: a collection is copied as files, which never change."""
        raise InvalidInputError(f"{self.files} is a collection: copy its folder, segments first")

    def living_items(self) -> int:
        """Return the number of items."""
        return self.totals()[0]

    def totals(self) -> tuple[int, int, int, int]:
        """Return the numbers of items, elements, segments and deleted items."""
        own = self.refresh().manifest.of_part(self.part)
        elements = sum(listed.elements - listed.dead_elements for listed in own)
        return sum(f.living for f in own), elements, len(own), sum(listed.dead for listed in own)

    def file_sizes(self) -> dict[str, int]:
        """Return the bytes of each file."""
        return {f"{SEGMENTS}/{f.name}": f.bytes for f in self.refresh().manifest.of_part(self.part)}

    def check(self) -> Report:
        """Verify every checksum; name what is damaged."""
        problems = [problem for segment in self.refresh().segments for problem in segment.problems()]
        return Report(not problems, problems)


class Collection:
    """The writing side of a collection: any number of them, on any number of machines.

    Search it by ``SetIndex.open(address)``, or with searchers (`setnet serve --collection`).

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from setnet import SetIndex
    >>> collection = Collection.create(tempfile.mkdtemp() + "/outfits", dim=3)
    >>> collection.add(["party", "office"], np.eye(3)[[0, 1, 1]], counts=[2, 1])
    >>> collection.delete(["office"])
    >>> with SetIndex.open(collection.address) as index:
    ...     print(index.search(np.eye(3)[:2]).ids)
    ['party']
    """

    def __init__(self, address: str | Path, head: Aggregator | None = None) -> None:
        """Open the collection at a folder or address; `create` makes one."""
        self.address = os.fspath(address)
        self._reader = CollectionReader(address, head)
        self._files = self._reader.files

    @classmethod
    def create(
        cls,
        address: str | Path,
        dim: int,
        *,
        about: Mapping[str, Any] | None = None,
        **options: Unpack[IndexOptions],
    ) -> Collection:
        """Make a collection; the parameters are those of `SetIndex.create`.

        ``about`` is stored with it: what a writer must agree with. Where there is such a collection already,
        maybe made by another process at the same time, that one is opened.
        """
        settings, made = Settings.new(dim, **options)
        first = Manifest(1, settings, about or {})
        files = folder_at(address)
        with storage_errors(Path(address), "cannot create a collection: "):
            if not manifest_numbers(files):
                files.create(manifest_path(1), first.to_bytes())
        opened = cls(address, made)
        found = opened.manifest
        if (found.settings, dict(found.about)) != (settings, dict(first.about)):
            raise InvalidInputError(
                f"{opened.address} was made with {dict(found.about) or found.settings}, not with "
                f"{dict(first.about) or settings}: vectors made in two ways do not compare. Use "
                "another collection"
            )
        return opened

    @property
    def manifest(self) -> Manifest:
        """The newest manifest."""
        self._reader.manifest = newest_manifest(self._files, self._reader.manifest)
        return self._reader.manifest

    def add(
        self,
        ids: Sequence[str] | Mapping[str, ArrayLike],
        elements: ArrayLike | Sequence[ArrayLike] | None = None,
        counts: ArrayLike | None = None,
        attributes: Attributes | None = None,
        set_vectors: ArrayLike | None = None,
        part: Share = WHOLE,
        *,
        without: Sequence[str] = (),
        tables: Sequence[Any] | None = None,
    ) -> None:
        """Add items as one segment, in place of those that have their ids; as `SetIndex.add` does.

        ``part`` (i, n) promises that no segment of another part has items with these ids, so that none of
        them is read. Items ``without`` which the collection is to be go in the same change. ``tables`` are
        two of `pyarrow`, with a row per item and a row per element.
        """
        reader = self._reader
        head = reader.head if set_vectors is None else None
        batch = checked_batch(ids, elements, counts, attributes, set_vectors, reader.settings.shape, head)
        if not batch.ids:
            return
        batch.seq[:] = np.arange(1, len(batch.ids) + 1)
        with storage_errors(reader.path):
            written = self._write([(batch, np.arange(len(batch.ids)))], part, tables=tables)

            def added(latest: Manifest) -> Manifest:
                kept, _ = self._without(latest, [*batch.ids, *without], part)
                own = replace(written, first=latest.next_seq - 1)
                return replace(latest, next_seq=latest.next_seq + own.items, segments=(*kept, own))

            self._commit(added)

    def delete(self, ids: Sequence[str], part: Share = WHOLE) -> None:
        """Delete items; an id that is not stored is an error, and then nothing is deleted.

        ``part`` is that of `add`.
        """
        names = check_ids(ids)

        def changed(latest: Manifest) -> Manifest:
            kept, found = self._without(latest, names, part)
            for name in names:
                if name not in found:
                    raise InvalidInputError(f"id {name!r} is not in the collection: nothing was deleted")
            return replace(latest, segments=kept)

        with storage_errors(self._reader.path):
            self._commit(changed)

    def _without(
        self, manifest: Manifest, ids: Sequence[str], part: Share
    ) -> tuple[tuple[ListedFile, ...], set[str]]:
        """Return the segments without some items, and which of these there were."""
        kept, gone = [], set[str]()
        for listed in manifest.segments:
            if may_share(listed.part, part):
                segment, dead = self._reader.open(listed), listed.dead_rows()
                found = self._reader.rows_named(listed.name, segment, ids)
                rows = [row for row in found.values() if dead is None or not dead[row]]
                gone.update(name for name, row in found.items() if dead is None or not dead[row])
                listed = listed.without(np.array(rows, np.int64), segment) if rows else listed
            kept.append(listed)
        return tuple(kept), gone

    def compact(self, *, max_items: int = LARGEST, lists: bool | None = None, keep: int = KEPT) -> None:
        """Merge segments, up to ``max_items`` into one, without what is deleted.

        As many searchers as there are segments can share the work. ``lists`` is that of `SetIndex.compact`.
        Older manifests, and what only they name, are removed but for the newest ``keep``; with 0, what was
        deleted is on no disk any more. What a writer left that died more than a day ago is removed too.
        """
        with storage_errors(self._reader.path):
            runs: list[list[ListedFile]] = []
            items = 0
            for listed in self.manifest.segments:
                if not runs or items + listed.living > max_items or runs[-1][0].tables != listed.tables:
                    runs.append([])
                    items = 0
                runs[-1].append(listed)
                items += listed.living
            for run in runs:
                wanted = items_in(run) >= SMALLEST_LISTED if lists is None else lists
                if len(run) > 1 or run[0].dead or (wanted and not run[0].listed):
                    self._merge(run, wanted)
            self._prune(self.manifest.number, keep)
            self._remove_abandoned()

    def merge_small(self, part: Share) -> None:
        """Merge segments of a part, and of no other, where many of like size have piled up."""
        with storage_errors(self._reader.path):
            while True:
                tiers: dict[tuple[int, bool], list[ListedFile]] = {}
                for listed in self.manifest.segments:
                    if listed.part == part and listed.items < LARGEST // SMALL:
                        tier = max(listed.items, 1).bit_length() // 3
                        tiers.setdefault((tier, listed.tables), []).append(listed)
                due = next((own for _, own in sorted(tiers.items()) if len(own) >= SMALL), None)
                if due is None:
                    return
                self._merge(due, items_in(due) >= SMALLEST_LISTED)

    def _merge(self, old: Sequence[ListedFile], lists: bool) -> None:
        """Put one segment in the place of others, unless somebody else has done so since."""
        opened = {listed.name: self._reader.open(listed) for listed in old}
        for segment in opened.values():  # new checksums must not cover damage
            segment.file.require_sound()
        parts: list[Part] = [(opened[f.name], living_rows(f)) for f in old if f.living]
        own = {listed.part for listed in old}
        tables = self._joined_tables(old, parts) if parts and old[0].tables else None
        written = self._write(parts, own.pop() if len(own) == 1 else WHOLE, lists, tables) if parts else None

        def merged(latest: Manifest) -> Manifest:
            now = {listed.name: listed for listed in latest.segments}
            if not opened.keys() <= now.keys():
                return latest
            new = list[ListedFile]()
            if written is not None:
                segment = self._reader.open(written)
                late = [
                    source.seq[np.setdiff1d(rows, living_rows(now[f.name]))]
                    for f, (source, rows) in zip([f for f in old if f.living], parts, strict=True)
                ]
                new.append(written.without(np.searchsorted(segment.seq, np.concatenate(late)), segment))
            at = [listed.name for listed in latest.segments].index(old[0].name)
            kept = [listed for listed in latest.segments if listed.name not in opened]
            return replace(latest, segments=(*kept[:at], *new, *kept[at:]))

        self._commit(merged)

    def open_segment(self, listed: ListedFile) -> Segment:
        """Return a segment that the manifest lists."""
        return self._reader.open(listed)

    def table(self, listed: ListedFile, kind: str, columns: Sequence[str] | None = None) -> Any:
        """Return a table of a segment with the rows of all its items, or of all their elements."""
        arrow, parquet = pyarrow()
        path = table_path(kind, listed.name)
        try:
            found = parquet.read_table(arrow.BufferReader(self._files.read(path)), columns=columns)
        except (arrow.ArrowException, ValueError, OSError) as error:
            raise StorageError(f"{self._files}/{path} is damaged or gone: {error}") from None
        if len(found) != (listed.items if kind == "items" else listed.elements):
            raise StorageError(f"{self._files}/{path} is damaged: it has {len(found)} rows")
        return found

    def _joined_tables(self, old: Sequence[ListedFile], parts: Sequence[Part]) -> list[Any]:
        """Return the tables for a segment that is made of rows of others, in its order."""
        arrow, _ = pyarrow()
        order = np.argsort(np.concatenate([source.seq[rows] for source, rows in parts]), kind="stable")
        counts = np.concatenate([source.counts[rows] for source, rows in parts])
        elements = ragged(np.concatenate([[0], np.cumsum(counts)]), order)
        chosen = {"items": order, "elements": elements}
        return [
            arrow.concat_tables(
                self.table(listed, kind).take(rows if kind == "items" else ragged(source.offsets, rows))
                for listed, (source, rows) in zip([f for f in old if f.living], parts, strict=True)
            ).take(chosen[kind])
            for kind in TABLES
        ]

    def _write(
        self, parts: Sequence[Part], part: Share, lists: bool = False, tables: Sequence[Any] | None = None
    ) -> ListedFile:
        """Write a segment, which no manifest names yet."""
        name = f"{uuid4().hex}.seg"
        for kind, table in zip(TABLES, tables or (), strict=tables is not None):
            arrow, parquet = pyarrow()
            data = arrow.BufferOutputStream()
            parquet.write_table(table, data)
            self._files.create(table_path(kind, name), data.getvalue().to_pybytes())
        path = self._files.place(f"{SEGMENTS}/{name}")
        write_segment(path, parts, self._reader.settings.shape, lists)
        self._files.publish(f"{SEGMENTS}/{name}")
        file = SegmentFile(path)
        numbers = (file.info["items"], file.info["elements"], file.bytes, file.crc)
        columns, has_lists = tuple(file.info["columns"]), "list_start" in file
        return ListedFile(name, *numbers, columns, has_lists, part=part, tables=tables is not None)

    def _commit(self, change: Callable[[Manifest], Manifest]) -> None:
        """Create the next manifest; whoever is too late reads again and retries."""
        while True:
            latest = self.manifest
            changed = change(latest)
            if changed is latest:
                return
            new = replace(changed, number=latest.number + 1)
            if self._files.create(manifest_path(new.number), new.to_bytes()):
                self._reader.manifest = new
                if new.number % 16 == 0:
                    self._prune(new.number, KEPT)
                return

    def _prune(self, number: int, keep: int) -> None:
        """Remove older manifests, oldest first, each after the segments that the next does not name."""
        for at in [n for n in manifest_numbers(self._files) if n < number - keep]:
            with suppress(FileNotFoundError, StorageError):  # somebody else removes them too
                this, following = (
                    Manifest.parse(self._files.read(manifest_path(n)), f"{self._files}: manifest {n}")
                    for n in (at, at + 1)
                )
                named = {name for listed in following.segments for name in listed.files}
                for name in {name for listed in this.segments for name in listed.files} - named:
                    self._files.remove(name)
                self._files.remove(manifest_path(at))

    def _remove_abandoned(self) -> None:
        """Remove what no manifest names and was written long ago."""
        files, named = self._files, set[str]()
        for number in manifest_numbers(files):
            with suppress(FileNotFoundError):
                manifest = Manifest.parse(files.read(manifest_path(number)), f"{files}: manifest {number}")
                named.update(name for listed in manifest.segments for name in listed.files)
        for folder in (SEGMENTS, *TABLES):
            for name in files.names_before(folder, time() - ABANDONED):
                if f"{folder}/{name}" not in named:
                    files.remove(f"{folder}/{name}")
