"""All faces of a library as arrays, in the order of their numbers."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine import SetIndex
from setnet.library.recognition.probability import MatchModel
from setnet.library.store.tables.group_tables import FACES

_LEAST_WEIGHT = 0.05
_CHUNK = 20_000  # rows read at once


@dataclass(frozen=True, slots=True, eq=False)
class LibraryFaces:
    """The faces of a library's photos.

    Attributes
    ----------
    numbers
        What they are called in the database, in ascending order: see `face_number`.
    vectors
        (n, dim) descriptors of length 1.
    weights
        The share of its similarity that each face keeps for its size, sharpness and turn: 1 for a good one.
    """

    numbers: NDArray[np.int64]
    vectors: NDArray[np.float32]
    weights: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def read(cls, db: sqlite3.Connection, index: SetIndex, model: MatchModel) -> LibraryFaces:
        """Return the faces that both the database and the index have."""
        contents = index.contents()
        photos = np.array([int(name) if name.isdecimal() else -1 for name in contents.ids], np.int64)
        starts = np.cumsum(contents.counts) - contents.counts
        order = np.argsort(photos)
        numbers, weights = _stored(db, model)
        photo, ordinal = np.divmod(numbers, FACES)
        at = np.minimum(np.searchsorted(photos[order], photo), max(len(order) - 1, 0))
        if not len(order):
            return cls(np.empty(0, np.int64), contents.elements, np.empty(0))
        item = order[at]
        there = (photos[item] == photo) & (ordinal < contents.counts[item])
        vectors = contents.elements[(starts[item] + ordinal)[there]]
        vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return cls(numbers[there], vectors, weights[there])

    def rows_of(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the row of each face by its number; -1 for one that is not there."""
        if not len(self):
            return np.full(len(numbers), -1)
        at = np.minimum(np.searchsorted(self.numbers, numbers), len(self) - 1)
        return np.where(self.numbers[at] == numbers, at, -1)


def _stored(db: sqlite3.Connection, model: MatchModel) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    rows = db.execute(
        f"SELECT photo * {FACES} + ordinal, quality FROM faces JOIN photos ON photos.id = photo "
        "WHERE state = 'ready' ORDER BY photo, ordinal"
    )
    numbers, weights = [np.empty(0, np.int64)], [np.empty(0)]
    while chunk := rows.fetchmany(_CHUNK):
        numbers.append(np.array([number for number, _ in chunk], np.int64))
        weights.append(np.array([_weight(text, model) for _, text in chunk]))
    return np.concatenate(numbers), np.concatenate(weights)


def _weight(quality: Any, model: MatchModel) -> float:
    try:
        return max(_LEAST_WEIGHT, model.quality(json.loads(quality)))
    except (TypeError, ValueError, AttributeError):  # damaged, as a check will say
        return 1.0
