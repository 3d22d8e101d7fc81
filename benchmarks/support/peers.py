"""Other engines on the same work: what a user would reach for instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Score = Callable[[Floats, NDArray[np.int64]], NDArray[np.float64]]
NEAREST = 1000


@numba.njit(cache=False)
def greedy_scores(sims: Floats, offsets: NDArray[np.int64], w: float, b: float) -> NDArray[np.float64]:
    """Greedy one-to-one score of every item, compiled: sims is (elements, query elements)."""
    wanted = sims.shape[1]
    scores = np.zeros(len(offsets) - 1)
    for i in range(len(offsets) - 1):
        first, last = offsets[i], offsets[i + 1]
        taken_f, taken_p = 0, 0
        for _ in range(min(wanted, last - first)):
            best, bf, bp = -np.inf, 0, 0
            for f in range(first, last):
                if taken_f >> (f - first) & 1:
                    continue
                for p in range(wanted):
                    if not taken_p >> p & 1 and sims[f, p] > best:
                        best, bf, bp = sims[f, p], f, p
            taken_f |= 1 << (bf - first)
            taken_p |= 1 << bp
            scores[i] += 1.0 / (1.0 + np.exp(-(w * best + b)))
    return scores


def sgemm_and_greedy(
    elements: Floats, offsets: NDArray[np.int64], w: float, b: float
) -> Callable[[Floats, int], Any]:
    """The plain way: one matrix product over all elements, then compiled greedy matching."""

    def search(query: Floats, k: int) -> NDArray[np.int64]:
        scores = greedy_scores(elements @ query.T, offsets, w, b)
        best = np.argpartition(-scores, k)[:k]
        return best[np.argsort(-scores[best], kind="stable")]

    return search


@numba.njit(cache=False)
def maxsim_scores(sims: Floats, offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """The sum over query elements of the most similar element of every item: sims is (elements, query elements)."""
    scores = np.zeros(len(offsets) - 1)
    for i in range(len(offsets) - 1):
        for p in range(sims.shape[1]):
            scores[i] += sims[offsets[i] : offsets[i + 1], p].max()
    return scores


def elements_then(
    index: Any, elements: Floats, offsets: NDArray[np.int64], owner: NDArray[np.int64], score: Score
) -> Callable[[Floats, int], Any]:
    """An approximate index over elements: the nearest of each query element give items, ``score`` ranks them."""

    def search(query: Floats, k: int) -> NDArray[np.int64]:
        _, found = index.search(query, NEAREST)
        items = np.unique(owner[found[found >= 0]])
        counts = offsets[items + 1] - offsets[items]
        local = np.concatenate([[0], np.cumsum(counts)])
        rows = np.arange(local[-1]) + np.repeat(offsets[items] - local[:-1], counts)
        scores = score(elements[rows] @ query.T, local)
        best = np.argsort(-scores, kind="stable")[:k]
        return items[best]

    return search


def elements_then_greedy(
    index: Any, elements: Floats, offsets: NDArray[np.int64], owner: NDArray[np.int64], w: float, b: float
) -> Callable[[Floats, int], Any]:
    """An approximate index over elements, and greedy one-to-one ranking."""
    return elements_then(index, elements, offsets, owner, lambda sims, ends: greedy_scores(sims, ends, w, b))


def numpy_rerank(elements: Floats, offsets: NDArray[np.int64], w: float, b: float) -> Callable[..., Any]:
    """Re-ranking, vectorised over all candidates: padded gather, product, greedy by repeated argmax."""

    def rerank(items: NDArray[np.int64], query: Floats) -> NDArray[np.float64]:
        counts = offsets[items + 1] - offsets[items]
        widest = int(counts.max())
        place = offsets[items][:, None] + np.arange(widest)
        valid = np.arange(widest) < counts[:, None]
        gathered = elements[np.where(valid, place, 0)]
        sims = np.where(valid[:, :, None], gathered @ query.T, -np.inf)
        scores = np.zeros(len(items))
        flat = sims.reshape(len(items), -1)
        each = np.arange(len(items))
        for _ in range(min(len(query), widest)):
            at = flat.argmax(axis=1)
            best = flat[each, at]
            alive = np.isfinite(best)
            scores[alive] += 1.0 / (1.0 + np.exp(-(w * best[alive] + b)))
            element, member = np.divmod(at, len(query))
            sims[each, element, :] = -np.inf
            sims[each, :, member] = -np.inf
        return scores

    return rerank
