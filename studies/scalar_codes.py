"""The stress test with the plain rival of budget codes: a random rotation, and as many bits for each dimension.

python -m studies.scalar_codes --descriptors lfw.npz --bytes 64 --bytes 128 --json codes.json
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate import stress
from setnet.evaluate.methods import Methods
from setnet.evaluate.representations import element_similarities
from setnet.evaluate.stress_trial import PairSimilarities, StressTest
from setnet.heads import unit

TITLE = stress.TITLE
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class ScalarElements:
    """The plain rival of budget codes: a random rotation, as many bits for each dimension, a factor.

    The levels are the best for a normal distribution (Lloyd, Max); a factor of two bytes gives each vector
    the right product with itself, as RaBitQ's does.
    """

    budget: int
    mean: Floats

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities of query faces with all sets, by number of faces."""
        faces = unit(test.world.descriptors - self.mean)
        for size in test.faces:
            stored = self.decoded(faces, (self.budget - 2 * size) * 8 // size)
            yield from element_similarities(faces[test.examples], stored, replace(test, faces=(size,)))

    def decoded(self, rows: Floats, bits: int) -> Floats:
        """Return what is left of rows at so many bits each."""
        dim = rows.shape[1]
        rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((dim, dim)))[0].astype(np.float32)
        turned = rows @ rotation
        scaled, out = turned * np.sqrt(dim), np.zeros_like(turned)
        for axis in range(dim):
            if (own := min(8, bits // dim + (axis < bits % dim))) > 0:
                levels = normal_levels(own)
                out[:, axis] = levels[np.searchsorted((levels[1:] + levels[:-1]) / 2, scaled[:, axis])]
        factor = np.square(turned).sum(axis=1) / np.maximum((turned * out).sum(axis=1), 1e-9)
        return np.asarray((out * factor[:, None]) @ rotation.T, np.float32)


@cache
def normal_levels(bits: int) -> NDArray[np.float64]:
    """Return the levels that lose least of a normal distribution.

    >>> normal_levels(1).round(2).tolist()
    [-0.8, 0.8]
    """
    drawn = np.sort(np.random.default_rng(0).standard_normal(200_000))
    levels = np.quantile(drawn, (np.arange(2**bits) + 0.5) / 2**bits)
    for _ in range(60):
        cell = np.searchsorted((levels[1:] + levels[:-1]) / 2, drawn)
        levels = np.bincount(cell, drawn) / np.bincount(cell)
    return np.asarray(levels)


@dataclass(frozen=True, kw_only=True)
class Settings(stress.Settings):
    """The stress test, also with the plain rival of budget codes."""

    def element_methods(self, methods: Methods) -> dict[str, stress.ElementMethod]:
        """Return the rows that keep every face."""
        mean = methods.train.descriptors.mean(axis=0)
        return super().element_methods(methods) | {
            f"rotation and levels, {budget} bytes": stress.ElementMethod(
                partial(ScalarElements, budget, mean), str(budget), budget
            )
            for budget in self.budgets
        }


run, tables = stress.run, stress.tables

if __name__ == "__main__":
    from setnet.cli.evaluate import run_study

    run_study(sys.modules[__name__], "python -m studies.scalar_codes")
