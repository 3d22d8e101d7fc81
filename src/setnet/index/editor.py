"""The writing side of an open index: adds, deletes and merges, one thread at a time."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from setnet.durable import storage_errors
from setnet.errors import InvalidInputError, StorageError
from setnet.index.reader import IndexReader
from setnet.index.settings import GIVEN
from setnet.index.storage.ingest import check_ids, checked_batch
from setnet.index.storage.writer import Writer

logger = logging.getLogger(__name__)


class IndexEditor:
    """Changes an index on behalf of `setnet.index.SetIndex`, which says what each change means."""

    def __init__(self, reader: IndexReader, writer: Writer) -> None:
        self.writer = writer
        self._reader = reader
        self._one_at_a_time = threading.RLock()

    def close(self) -> None:
        """Close the index and give the write lock back, after a change under way."""
        with self._one_at_a_time:  # again after an interrupt: each part may be closed twice
            try:
                self._reader.close()
            finally:
                self.writer.close()

    def add(
        self,
        ids: Sequence[str],
        elements: ArrayLike,
        counts: ArrayLike,
        attributes: Sequence[Mapping[str, Any] | None] | None,
        set_vectors: ArrayLike | None,
    ) -> None:
        """Add items, or replace those whose id is stored already."""
        with self._one_at_a_time:
            if set_vectors is not None:
                self._take_given_sets(np.shape(set_vectors))
            snapshot = self._reader.snapshot()
            head = self._reader.head if set_vectors is None else None
            batch, details = checked_batch(
                ids, elements, counts, attributes, set_vectors, snapshot.shape, head
            )
            if batch.ids:
                self.writer.add(batch, details, snapshot)
                self._merge_small()

    def _merge_small(self) -> None:
        """Merge segments that pile up; a failure costs only tidiness, as the items are stored already."""
        try:
            with storage_errors(self._reader.path):
                while due := self.writer.overfull_tier(self._reader.snapshot()):
                    self.writer.merge(self._reader.snapshot(), due)
        except StorageError as error:
            logger.warning("small segments of %s were not merged: %s", self._reader.path, error)

    def _take_given_sets(self, shape: tuple[int, ...]) -> None:
        """Switch an index that holds nothing from the default head to set vectors made by the caller."""
        self._reader.snapshot()  # reads the settings of the latest commit
        settings = self._reader.settings
        sets = settings.shape.sets
        if sets is not None and sets.name == GIVEN:
            return
        if sets is None or sets.name != "mean" or self.writer.catalog.living_items():
            name = sets.name if sets else "none"
            raise InvalidInputError(
                f"this index makes its set vectors itself (head {name!r}): leave set_vectors out, or create "
                "the index with set_dim="
            )
        if len(shape) != 2:
            raise InvalidInputError(f"set vectors have shape {shape}, expected one row per id")
        self.writer.change_settings(settings.with_given_sets(shape[1]).meta())

    def delete(self, ids: Sequence[str]) -> None:
        """Delete items; an id that is not stored is an error, and then nothing is deleted."""
        with self._one_at_a_time:
            seqs = self._reader.seqs_of(check_ids(ids), ": nothing was deleted")
            if len(seqs):
                self.writer.delete(seqs, self._reader.snapshot())

    def compact(self, lists: bool | None) -> None:
        """Merge segments into as few as can be and drop deleted items from the disk, for good."""
        with self._one_at_a_time:
            while runs := self.writer.compactable(self._reader.snapshot(), lists):
                self.writer.merge(self._reader.snapshot(), runs[0], lists)
            self._reader.snapshot()
            self.writer.shrink()
