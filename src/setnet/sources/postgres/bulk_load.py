"""Loads items from a file or an index into PostgreSQL, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.index import SetIndex
from setnet.library import read_arrays
from setnet.sources.postgres.postgres_sets import PostgresSets

BATCH = 1000


@dataclass(frozen=True, slots=True)
class LoadReport:
    """How many items and elements were stored, in how many batches."""

    items: int
    elements: int
    batches: int

    def to_dict(self) -> dict[str, int]:
        """Return the numbers for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Some items, as `PostgresSets.add` takes them."""

    ids: list[str]
    elements: NDArray[np.float32]
    counts: NDArray[np.int64]
    attributes: list[dict[str, Any]] | None


def load(
    sets: PostgresSets,
    source: str | Path,
    batch: int = BATCH,
    progress: Callable[[int, int], None] = lambda done, items: None,
) -> LoadReport:
    """Store the items of an ``.npz`` file or of an index; each batch is one transaction.

    A load that was interrupted has stored whole batches and can be repeated: what is there is replaced by the
    same.

    Parameters
    ----------
    source
        A file with the arrays ``ids``, ``elements``, ``counts`` and, if any, ``attributes`` (JSON texts), or
        with ``descriptors`` in place of ``elements`` as `setnet export` writes it; or the folder of an index.
    batch
        How many items are stored together.
    progress
        Called after each batch with the number of items that are stored, and of all.
    """
    if batch < 1:
        raise InvalidInputError(f"batch is {batch}: valid are 1 and more")
    path = Path(source)
    if path.is_dir():
        with SetIndex.open(path, read_only=True) as index:
            return _stored(sets, _of_index(index, batch), len(index), progress)
    if not path.is_file():
        raise InvalidInputError(f"{path}: no such file or folder; expected an .npz file or an index")
    whole = _read(path)
    return _stored(sets, _parts(whole, batch), len(whole.ids), progress)


def _stored(
    sets: PostgresSets, parts: Iterator[_Part], items: int, progress: Callable[[int, int], None]
) -> LoadReport:
    done = elements = batches = 0
    for part in parts:
        sets.add(part.ids, part.elements, part.counts, part.attributes)
        done, elements, batches = done + len(part.ids), elements + len(part.elements), batches + 1
        progress(done, items)
    return LoadReport(done, elements, batches)


def _of_index(index: SetIndex, batch: int) -> Iterator[_Part]:
    items = index.items()
    while some := list(islice(items, batch)):
        none = np.empty((0, index.shape.dim), np.float32)
        vectors = np.concatenate([none, *(index.elements(item.id) for item in some if item.elements)])
        counts = np.array([item.elements for item in some], np.int64)
        yield _Part([item.id for item in some], vectors, counts, [item.attributes for item in some])


def _read(path: Path) -> _Part:
    with open(path, "rb") as file:
        names = _array_names(file, path)
    vectors = "elements" if "elements" in names else "descriptors"
    ids, elements, counts = read_arrays(path, ("ids", vectors, "counts"))
    if ids.dtype.kind != "U" or ids.ndim != 1:
        raise InvalidInputError(f"{path}: 'ids' must be a list of texts, not {ids.dtype}{ids.shape}")
    good = counts.dtype.kind in "iu" and counts.shape == ids.shape and elements.ndim == 2
    if not good or (counts < 0).any() or int(counts.sum()) != len(elements):
        raise InvalidInputError(
            f"{path}: 'counts' must be a whole number for each of {len(ids)} ids, and add up to the rows of "
            f"{vectors!r}, which has shape {elements.shape}"
        )
    attributes = None
    if "attributes" in names:
        attributes = [_attributes(text, path) for text in read_arrays(path, ("attributes",))[0].tolist()]
    elif "paths" in names:
        attributes = [{"path": text} for text in read_arrays(path, ("paths",))[0].tolist()]
    if attributes is not None and len(attributes) != len(ids):
        raise InvalidInputError(f"{path}: attributes of {len(attributes)} items for {len(ids)} ids")
    return _Part(ids.tolist(), elements, counts.astype(np.int64), attributes)


def _array_names(file: Any, path: Path) -> list[str]:
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return list(arrays)
    except Exception as error:  # the unpackers and NumPy raise whatever they like on damaged data
        raise InvalidInputError(f"{path}: not a readable .npz file ({str(error)[:200]})") from error


def _attributes(text: str, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise InvalidInputError(f"{path}: 'attributes' must be JSON objects as texts, not {text!r:.80}")
    return found


def _parts(whole: _Part, batch: int) -> Iterator[_Part]:
    ends = np.concatenate([[0], np.cumsum(whole.counts)])
    for first in range(0, len(whole.ids), batch):
        last = min(first + batch, len(whole.ids))
        details = None if whole.attributes is None else whole.attributes[first:last]
        rows = whole.elements[ends[first] : ends[last]]
        yield _Part(whole.ids[first:last], rows, whole.counts[first:last], details)
