"""Copies items from one index to another as they are stored: no vector is made or rounded anew."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from setnet.index.setindex import SetIndex
from setnet.index.storage.segments.batch import Batch

_CHUNK = 8192  # items copied at once


def copy_items(source: SetIndex, to: SetIndex, is_wanted: Callable[[str], bool]) -> None:
    """Add those items of an index to another one, of the same settings, whose ids are wanted.

    They keep their vectors to the last bit, set vectors too, and their attributes.
    """
    editor, snapshot = to._writable(), source._reader.snapshot()
    for s, segment in enumerate(snapshot.segments):
        living = snapshot.alive(s)
        ids = segment.ids_of(living)
        wanted = living[[is_wanted(name) for name in ids]] if len(ids) else living
        for at in range(0, len(wanted), _CHUNK):
            rows = wanted[at : at + _CHUNK]
            counts, details = segment.counts[rows], segment.attribute_values_of(rows)
            codes, scales = segment.sets_of(rows)
            editor.take(
                Batch(
                    segment.ids_of(rows),
                    np.empty(len(rows), np.int64),
                    counts,
                    np.concatenate([[0], np.cumsum(counts)]),
                    segment.elements_of(rows),
                    segment.attributes_of(rows) if any(details) else None,
                    codes,
                    scales,
                ),
                details,
            )
