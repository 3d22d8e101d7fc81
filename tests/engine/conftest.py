"""Worlds to search in, and the slow, plain computation every answer is compared with."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet import SetIndex
from setnet.engine import Hit
from setnet.engine.kernels import backend
from setnet.heads.logistic import ELEMENT_LOGISTIC, Logistic


def unit(rows: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@dataclass
class World:
    """A dictionary of items: what an index must behave like."""

    dim: int
    items: dict[str, NDArray[Any]] = field(default_factory=dict)
    logistic: Logistic = ELEMENT_LOGISTIC

    def ranking(
        self, query: NDArray[Any], keep: Callable[[str], bool] = lambda item: True
    ) -> list[tuple[float, str]]:
        """All items that are not empty with their float64 scores, best first, the long way round."""
        rows = []
        for place, (name, elements) in enumerate(self.items.items()):
            if len(elements) and keep(name):
                sims = query.astype(np.float64) @ elements.astype(np.float64).T
                pairs = self.greedy(sims)
                score = sum(float(self.logistic.probability(sims[p, e])) for p, e in pairs)
                rows.append((-score, -sum(sims[p, e] for p, e in pairs), place, name))
        return [(-score, name) for score, _, _, name in sorted(rows)]

    @staticmethod
    def greedy(sims: NDArray[Any]) -> list[tuple[int, int]]:
        """Take the largest free entry again and again."""
        left, pairs = sims.copy(), []
        for _ in range(min(sims.shape)):
            p, e = np.unravel_index(np.argmax(left), left.shape)
            pairs.append((int(p), int(e)))
            left[p, :] = -np.inf
            left[:, e] = -np.inf
        return pairs

    def agrees(
        self,
        hits: Sequence[Hit],
        query: NDArray[Any],
        k: int,
        keep: Callable[[str], bool] = lambda item: True,
    ) -> None:
        """Assert the law of exactness: the same items in the same order wherever scores differ by 1e-5."""
        truth = self.ranking(query, keep)
        scores = {name: score for score, name in truth}
        assert len(hits) == min(k, len(truth))
        assert len({hit.id for hit in hits}) == len(hits)
        for hit, (expected, _) in zip(hits, truth, strict=False):
            assert abs(scores[hit.id] - expected) <= 1e-5, (hit.id, scores[hit.id], expected)
            assert hit.score == pytest.approx(scores[hit.id], abs=1e-6)
        assert all(a.score >= b.score for a, b in itertools.pairwise(hits))

    def stack(self, names: list[str]) -> tuple[NDArray[Any], list[int]]:
        rows = [self.items[name] for name in names]
        return np.concatenate([*rows, np.empty((0, self.dim), np.float32)]), [len(r) for r in rows]


def random_world(seed: int, items: int, dim: int = 16, most: int = 6, identities: int = 50) -> World:
    """Items of 0 to ``most`` noisy elements of ``identities`` identities."""
    rng = np.random.default_rng(seed)
    centres = unit(rng.normal(size=(identities, dim)))
    world = World(dim)
    for i in range(items):
        who = rng.integers(0, identities, rng.integers(0, most + 1))
        world.items[f"item {i}"] = unit(centres[who] + 0.4 * rng.normal(size=(len(who), dim)) / np.sqrt(dim))
    return world


def indexed(world: World, path: Path, batch: int = 400, **options: Any) -> SetIndex:
    index = SetIndex.create(path, dim=world.dim, **options)
    names = list(world.items)
    for at in range(0, len(names), batch):
        elements, counts = world.stack(names[at : at + batch])
        index.add(names[at : at + batch], elements, counts)
    return index


@pytest.fixture(params=backend.kernels.levels())
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    """Every instruction set this machine has, one after the other."""
    before = backend.level()
    backend.use(request.param)
    yield request.param
    backend.use(before)


@pytest.fixture
def make_world() -> Callable[..., World]:
    return random_world


@pytest.fixture
def make_index() -> Callable[..., SetIndex]:
    return indexed


@pytest.fixture
def empty_world() -> type[World]:
    return World
