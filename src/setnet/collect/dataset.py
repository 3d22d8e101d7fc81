"""A data set on disk: its photos with labels, descriptors, queries and split."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.collect.run import Row, unpack
from setnet.durable import storage_errors
from setnet.errors import NotAnIndexError, StorageError, VersionError, choice_error
from setnet.library import read_descriptors

FORMAT = 1
HEAD, PHOTOS, ROWS, DESCRIPTORS, PORTRAITS, QUERIES, STATISTICS = (
    "data_set.json",
    "photos",
    "photos.jsonl",
    "descriptors.f32",
    "portraits.npz",
    "queries.json",
    "statistics.json",
)
DISTRACTOR = "distractor"
SPLITS = ("train", "validation", "test")


def is_collected(path: Path) -> bool:
    """Return whether a folder holds a data set made by `setnet collect`."""
    return (path / HEAD).is_file()


class CollectedSet:
    """A data set on disk.

    Attributes
    ----------
    path
        Its folder.
    head
        What ``data_set.json`` says.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not is_collected(self.path):
            raise NotAnIndexError(f"{path} holds no data set of `setnet collect`: no {HEAD} in it")
        self.head = self._json(HEAD)
        if self.head.get("format", 0) > FORMAT:
            raise VersionError(f"{path} is of format {self.head['format']}, this setnet reads {FORMAT}")

    def _json(self, name: str) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise StorageError(f"{self.path / name} cannot be read: {error}") from error
        return found

    @property
    def splits(self) -> dict[str, list[str]]:
        """The people of each split."""
        found: dict[str, list[str]] = self.head["splits"]
        return found

    def rows(self, *splits: str) -> Iterator[Row]:
        """Yield the photos of some splits, or all, in order; ``"distractor"`` is one too."""
        path = self.path / ROWS
        with storage_errors(path), path.open(encoding="utf-8") as file:
            for line in file:
                row: Row = json.loads(line)
                if not splits or row["split"] in splits:
                    yield row

    @cached_property
    def descriptors(self) -> NDArray[np.float32]:
        """Descriptors of all faces, read from the file as they are used; ``row["first"]`` says where."""
        path, shape = self.path / DESCRIPTORS, (self.head["faces"], self.head["dim"])
        if not path.is_file() or path.stat().st_size != 4 * shape[0] * shape[1]:
            raise StorageError(f"{path}: {shape[0]} descriptors of {shape[1]} numbers are expected")
        if not shape[0]:
            return np.empty(shape, np.float32)
        return np.memmap(path, "<f4", "r", shape=shape)

    def labelled_faces(self, split: str) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
        """Return the descriptors and labels of a split's faces and portraits; unknown people are ""."""
        if split not in self.splits:
            raise choice_error("split", split, self.splits)
        places: list[int] = []
        labels: list[str] = []
        for row in self.rows(split):
            for number, face in enumerate(row["faces"]):
                places.append(row["first"] + number)
                labels.append(face["name"] or "")
        descriptors, names = self.portraits
        own = np.isin(names, self.splits[split])
        return (
            np.concatenate([self.descriptors[places].reshape(-1, self.head["dim"]), descriptors[own]]),
            np.array([*labels, *names[own].tolist()], dtype=np.str_),
        )

    @cached_property
    def portraits(self) -> tuple[NDArray[np.float32], NDArray[np.str_]]:
        """Descriptors and names of the portraits, which are in no photo of the data set."""
        return read_descriptors(self.path / PORTRAITS)

    def queries(self) -> list[tuple[str, ...]]:
        """Return the test queries: first those of two people, then those of three."""
        stored = self._json(QUERIES)
        return [tuple(group) for size in ("two", "three") for group in stored[size]]

    def photo_file(self, row: Row) -> Path:
        """Return the file of a photo."""
        return self.path / PHOTOS / str(row["photo"])

    @staticmethod
    def place(face: Row) -> NDArray[np.float32]:
        """Return where a face is in its photo: four numbers of the box, then ten of the landmarks."""
        return np.concatenate([np.array(face["box"], np.float32), unpack(face["landmarks"])])


def together_queries(
    counts: NDArray[np.int64],
    owner: NDArray[np.int64],
    known: NDArray[np.bool_],
    of_two: int,
    of_three: int,
    rng: np.random.Generator,
) -> list[NDArray[np.int64]]:
    """Return random groups of two and of three people who are together in some item, none twice.

    `counts` are the faces per item, `owner` says whose each face is, and `known` who may be queried.
    """
    starts = np.cumsum(counts) - counts
    together = np.add.reduceat(known, starts) if len(starts) else np.empty(0, np.int64)
    queries: list[NDArray[np.int64]] = []
    for size, limit in ((2, of_two), (3, of_three)):
        seen: set[tuple[int, ...]] = set()
        for item in rng.permutation(np.flatnonzero(together >= size)):
            if len(seen) == limit:
                break
            rows = np.arange(starts[item], starts[item] + counts[item])
            people = np.unique(owner[rows[known[rows]]])
            if len(people) >= size:
                seen.add(tuple(sorted(rng.choice(people, size, replace=False).tolist())))
        queries += [np.array(group) for group in sorted(seen)]
    return queries
