"""The reading side of an open index: its catalogue, settings, head and the snapshot of the latest commit."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine.catalog import Catalog
from setnet.engine.query import KnownPair
from setnet.engine.recovery import check_index
from setnet.engine.results import Report
from setnet.engine.settings import GIVEN, Settings, head_named, spec_of
from setnet.engine.snapshot import Allowed, Snapshot
from setnet.errors import InvalidInputError, StorageError
from setnet.heads import Aggregator, Mean


class IndexReader:
    """What every thread that searches shares; all access to the catalogue is under one lock."""

    def __init__(self, path: str | Path, head: Aggregator | None) -> None:
        self.path = path = Path(path)
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._snapshot: Snapshot | None = None
        self._catalog: Catalog | None = Catalog(path / "catalog.sqlite", read_only=True)
        with self._catalog.reading():
            self.settings = Settings.of_json(self._catalog.get("settings"))
        self._head = self._checked_head(head)

    def close(self) -> None:
        """Close the catalogue; searches still running end on what they hold."""
        with self._lock:
            if self._catalog is not None:
                if self._process == os.getpid():
                    self._catalog.close()
                else:
                    self._catalog.abandon()
            self._catalog = None
            self._snapshot = None

    @property
    def how_to_write(self) -> str:
        """What somebody is told who would change what is open for reading."""
        return f"open it with SetIndex.open({str(self.path)!r})"

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._catalog is None

    @contextmanager
    def catalog(self) -> Iterator[Catalog]:
        """Yield the catalogue to one thread at a time; an error says so when the index is closed."""
        with self._lock:
            self.ensure_open()
            assert self._catalog is not None
            if self._process != os.getpid():  # SQLite's connections do not survive a fork
                self._catalog.abandon()
                self._catalog, self._process = Catalog(self._catalog.path, read_only=True), os.getpid()
            if self._catalog.is_outdated and not self._catalog.db.in_transaction:
                before, self._catalog = self._catalog, Catalog(self._catalog.path, read_only=True)
                before.close()
            yield self._catalog

    @contextmanager
    def reading(self) -> Iterator[Catalog]:
        """Yield the catalogue for several reads on one and the same state of it."""
        with self.catalog() as catalog, catalog.reading():
            yield catalog

    @property
    def head(self) -> Aggregator | None:
        """The aggregator behind the set vectors; None when there are none or the caller makes them."""
        sets = self.settings.shape.sets
        if sets is None or sets.name == GIVEN:
            return None
        if self._head is None:
            self._head = self._checked_head(head_named(sets.name, self.settings.shape.dim, sets.bits))
        return self._head

    def _checked_head(self, head: Aggregator | None) -> Aggregator | None:
        shape = self.settings.shape
        if head is None:
            return Mean(shape.dim, bits=shape.sets.bits) if shape.sets and shape.sets.name == "mean" else None
        if (made := spec_of(head)) != shape.sets:
            raise InvalidInputError(
                f"head {head.name!r} did not make the set vectors of {self.path}: it is {made}, they are "
                f"{shape.sets or 'none'}. Open the index with the head that made them, or create it again"
            )
        return head

    def view(self, where: Mapping[str, Any] | None) -> tuple[Snapshot, Allowed]:
        """Return the latest snapshot and the rows that satisfy the conditions."""
        with self.consistent() as (_, snapshot):
            pass
        return snapshot, snapshot.allowed(where) if where else None

    @contextmanager
    def consistent(self) -> Iterator[tuple[Catalog, Snapshot]]:
        """Yield the catalogue and the snapshot of the latest commit, in the transaction that read both."""
        for attempt in range(5):
            with self.reading() as catalog:
                try:
                    snapshot = self._latest(catalog)
                except FileNotFoundError as error:  # a merge removed it since the catalogue was read
                    if attempt < 4:
                        continue
                    raise StorageError(f"{error.filename} is missing; run check() on the index") from error
                yield catalog, snapshot
                return

    def _latest(self, catalog: Catalog) -> Snapshot:
        if self._snapshot is None or self._snapshot.generation != catalog.get("generation"):
            self.settings = Settings.of_json(catalog.get("settings"))
            known = {s.number: s for s in self._snapshot.segments} if self._snapshot else {}
            self._snapshot = Snapshot(catalog, self.path, self.settings.shape, known)
        self._snapshot.ensure_whole()
        return self._snapshot

    def snapshot(self) -> Snapshot:
        """Return the state of the latest commit."""
        return self.view(None)[0]

    def ensure_open(self) -> None:
        """Raise an error that says so when the index is closed."""
        if self.closed:
            raise InvalidInputError(f"the index {self.path} is closed: open it again with SetIndex.open")

    def totals(self) -> tuple[int, int, int, int]:
        """Return the numbers of items, elements, segments and deleted items."""
        with self.reading() as catalog:
            sql = (
                "SELECT ifnull(sum(elements - deleted_elements), 0), count(*), ifnull(sum(deleted), 0) "
                "FROM segments"
            )
            ((elements, segments, deleted),) = catalog.rows((int, int, int), sql)
            return catalog.living_items(), elements, segments, deleted

    def file_sizes(self) -> dict[str, int]:
        """Return the bytes of each file."""
        files = sorted(p for p in self.path.rglob("*") if p.is_file())
        return {str(p.relative_to(self.path)): p.stat().st_size for p in files if p.exists()}

    def check(self) -> Report:
        """Verify every checksum, and that the catalogue and the segments agree; name what is damaged."""
        with self.catalog() as catalog:
            return check_index(catalog, self.path, self.settings.shape)

    def living_items(self) -> int:
        """Return the number of items."""
        with self.catalog() as catalog:
            return catalog.living_items()

    def known_seqs(self, ids: Sequence[str]) -> dict[str, int]:
        """Return the sequence numbers of those ids that are stored."""
        with self.catalog() as catalog:
            return catalog.seqs_of(ids)

    def known_pairs(self, known: Mapping[str, Sequence[KnownPair]] | None) -> dict[int, Sequence[KnownPair]]:
        """Return what is known of pairs by sequence number; items that are not stored have none."""
        if not known:
            return {}
        return {seq: known[name] for name, seq in self.known_seqs(list(known)).items()}

    def seqs_of(self, ids: Sequence[str], consequence: str = "") -> NDArray[np.int64]:
        """Return the sequence numbers of items in ascending order; an id that is not stored is an error."""
        known = self.known_seqs(ids)
        unknown = next((name for name in ids if name not in known), None)
        if unknown is not None:
            raise InvalidInputError(f"id {unknown!r} is not in the index{consequence}")
        return np.array(sorted(known.values()), np.int64)
