"""A world whose elements are made once and kept in a file, for experiments that pass over it often."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.worlds.worlds import World

Floats = NDArray[np.float32]


class StoredWorld(World):
    """Everything as in the world it wraps; elements come from a file read in pieces."""

    def __init__(self, world: World, path: Path) -> None:
        super().__init__(
            world.name, world.dim, world.counts, world.owner, world.identities, world.seed, world.queried
        )
        self._world, self._path = world, path
        with open(path, "wb") as file:
            for chunk in world.chunks():
                file.write(np.ascontiguousarray(chunk.elements, np.float32).data)

    def elements(self, first: int, rows: slice) -> Floats:
        """Read the elements of a chunk."""
        shape = (rows.stop - rows.start, self.dim)
        offset = int(rows.start) * self.dim * 4
        return np.fromfile(self._path, np.float32, shape[0] * self.dim, offset=offset).reshape(shape)

    def faces_of(self, rng: np.random.Generator, each: int) -> Floats:
        """Return faces of every identity that are in no item."""
        return self._world.faces_of(rng, each)
