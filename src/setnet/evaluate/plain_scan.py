"""Searches of every item by one matrix product in NumPy: what speed-ups are measured against."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray

from setnet.engine import greedy_matches
from setnet.evaluate.stress_trial import probability_in_place
from setnet.evaluate.worlds import World
from setnet.heads import Aggregator, Logistic, unit

Floats = NDArray[np.float32]


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which NumPy's matrix products use one thread, where threadpoolctl is installed."""
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(1)
    return limits


class PlainElements:
    """Every face in one array, items of equal size together; each query compares and matches them all."""

    def __init__(self, world: World) -> None:
        parts: dict[int, list[Floats]] = {}
        items: dict[int, list[NDArray[np.int64]]] = {}
        for chunk in world.chunks():
            starts = np.cumsum(chunk.counts) - chunk.counts
            for size in np.unique(chunk.counts).tolist():
                which = np.flatnonzero(chunk.counts == size)
                rows = (starts[which][:, None] + np.arange(size)).ravel()
                parts.setdefault(size, []).append(chunk.elements[rows])
                items.setdefault(size, []).append(chunk.first + which)
        self.sizes = sorted(size for size in parts if size)
        self.rows = {size: np.concatenate(parts.pop(size)) for size in self.sizes}
        self.items = {size: np.concatenate(items.pop(size)) for size in self.sizes}

    def search(self, people: Floats, k: int, logistic: Logistic) -> NDArray[np.int64]:
        """Return the k items with the highest sum of scores under greedy matching, best first."""
        scores, items = [], []
        for size in self.sizes:
            sims = (self.rows[size] @ people.T).reshape(-1, size, len(people)).transpose(0, 2, 1)
            element = greedy_matches(sims)
            matched = np.take_along_axis(sims, np.maximum(element, 0)[..., None], axis=2)[..., 0]
            scores.append(np.where(element < 0, 0, probability_in_place(matched, logistic)).sum(axis=1))
            items.append(self.items[size])
        return _best(np.concatenate(scores), np.concatenate(items), k)


class PlainSets:
    """One float32 set vector per item in one array; a query is one matrix product and a sort."""

    def __init__(self, world: World, aggregator: Aggregator) -> None:
        self.aggregator = aggregator
        self.vectors = np.empty((world.size, aggregator.dim), dtype=np.float32)
        for chunk in world.chunks():
            pooled = aggregator.pool(chunk.elements, chunk.counts)
            self.vectors[chunk.first : chunk.first + len(chunk.counts)] = pooled

    def search(self, people: Floats, k: int, logistic: Logistic) -> NDArray[np.int64]:
        """Return the k items with the highest sum of scores, best first."""
        sims = self.vectors @ self.aggregator.describe(unit(people)).T
        return _best(probability_in_place(sims, logistic).sum(axis=1), None, k)


def _best(scores: Floats, items: NDArray[np.int64] | None, k: int) -> NDArray[np.int64]:
    k = min(k, len(scores))
    top = np.argpartition(-scores, k - 1)[:k]
    top = top[np.argsort(-scores[top], kind="stable")]
    return top if items is None else items[top]
