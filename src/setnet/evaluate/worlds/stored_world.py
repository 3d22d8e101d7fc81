"""A world whose elements are made once and kept in a file, for experiments that pass over it often."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.worlds.worlds import Chunk, Truth, World

__all__ = ["StoredWorld"]

Floats = NDArray[np.float32]
ITEMS = 65_536


class StoredWorld:
    """Everything as in the world it wraps; elements come from a file read in pieces."""

    def __init__(self, world: World, path: Path) -> None:
        self.world, self.path = world, path
        self.name, self.dim, self.size, self.faces = world.name, world.dim, world.size, world.faces
        counts = []
        with open(path, "wb") as file:
            for chunk in world.chunks():
                file.write(np.ascontiguousarray(chunk.elements, np.float32).data)
                counts.append(chunk.counts)
        self.counts = np.concatenate(counts)

    @property
    def truth(self) -> Truth:
        """Who is where."""
        return self.world.truth

    def chunks(self) -> Iterator[Chunk]:
        """Yield all items in order."""
        with open(self.path, "rb") as file:
            for first in range(0, self.size, ITEMS):
                counts = self.counts[first : first + ITEMS]
                rows = np.fromfile(file, np.float32, int(counts.sum()) * self.dim)
                yield Chunk(first, rows.reshape(-1, self.dim), counts)

    def queries(self, of_two: int, of_three: int) -> list[NDArray[np.int64]]:
        """Return groups of identities who appear together."""
        return self.world.queries(of_two, of_three)

    def examples(self, repeat: int, each: int) -> Floats:
        """Return query faces."""
        return self.world.examples(repeat, each)

    def gallery(self, each: int = 10) -> Floats:
        """Return faces to tag with."""
        return self.world.gallery(each)
