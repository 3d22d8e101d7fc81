"""Clusters by average linkage: the two most similar ones merge, again and again, until none are alike enough.

The mean similarity of the pairs of two clusters is the product of their sums over that of their weights, so
that sums are all that is kept of them. Only clusters with neighbours in common are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.engine.kernels import backend
from setnet.engine.kernels.backend import threads
from setnet.library.neighbours import Neighbours

LOOK_SECONDS = 0.2  # between two looks at how far the kernel is

Floats = NDArray[np.float32]
OnMerges = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class LinkageRule:
    """When two clusters are alike enough to merge.

    Their mean similarity s is compared with that of clusters that do not belong together: the score is
    (s - mean) / (spread f f'), where f^2 = rest + (1 - rest) / weight tells how much of the spread is left in
    the mean of a cluster of some weight.

    Attributes
    ----------
    mean, spread
        Mean and standard deviation of the similarity of two elements that do not belong together.
    rest
        The share of the spread that is left between two large clusters; 1 compares all sizes alike.
    apart_penalty
        Taken off the score of two single elements that are probably apart. Of clusters with k such pairs, the
        smaller one of n elements, it grows with the log likelihood ratio of k in n at the rate k / n and at
        that of mistakes: nothing for isolated pairs of large clusters, much for many.
    apart_rate
        The share of a cluster's elements that are apart from others of it by mistake.
    bars
        The least score at which two merge, by the number of clusters there are: ``bars[n]`` for n of them.
    """

    mean: float
    spread: float
    rest: float
    apart_penalty: float
    apart_rate: float
    bars: NDArray[np.float64]

    def factor(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return how much of the spread is left in the means of clusters, at most 1 for whole elements."""
        return np.asarray(np.sqrt(self.rest + (1 - self.rest) / weights))


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """What is known of each cluster; an element by itself is one.

    Attributes
    ----------
    sums
        (n, dim) weighted sums of the elements.
    weights, sizes
        The elements' weights added up, and how many there are.
    names
        Clusters of two names never merge; -1 has none.
    """

    sums: Floats
    weights: NDArray[np.float64]
    sizes: NDArray[np.int64]
    names: NDArray[np.int32]

    @classmethod
    def of(cls, vectors: Floats, weights: NDArray[np.float64] | None = None) -> Clusters:
        """Return elements without a name as clusters of one each."""
        n = len(vectors)
        heavy = np.ones(n) if weights is None else np.asarray(weights, np.float64).copy()
        sums = (vectors * heavy[:, None].astype(np.float32)).astype(np.float32)
        return cls(sums, heavy, np.ones(n, np.int64), np.full(n, -1, np.int32))

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def means(self) -> Floats:
        """The weighted mean of each cluster's elements."""
        return np.asarray(self.sums / self.weights[:, None].astype(np.float32))

    def merged(self, to: NDArray[np.int64], count: int) -> Clusters:
        """Return ``count`` clusters, of which number ``to[i]`` has all that cluster i had."""
        order = np.argsort(to, kind="stable")
        first = np.searchsorted(to[order], np.arange(count))
        return Clusters(
            np.add.reduceat(self.sums[order], first, axis=0),
            np.add.reduceat(self.weights[order], first),
            np.add.reduceat(self.sizes[order], first),
            np.maximum.reduceat(self.names[order], first),
        )


@dataclass(frozen=True, slots=True, eq=False)
class CannotLink:
    """Pairs of elements that are probably of different clusters (weight 1), or certainly (infinity)."""

    one: NDArray[np.int64]
    other: NDArray[np.int64]
    weight: Floats

    @classmethod
    def none(cls) -> CannotLink:
        """Return no pair."""
        return cls(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))

    def those(self, place: NDArray[np.int64]) -> CannotLink:
        """Return the pairs of elements that have a place, which is not -1, under their places' numbers."""
        kept = (place[self.one] >= 0) & (place[self.other] >= 0)
        return CannotLink(place[self.one[kept]], place[self.other[kept]], self.weight[kept])

    def merged(self, to: NDArray[np.int64]) -> CannotLink:
        """Return the pairs as those of clusters, number ``to[i]`` of which has element i."""
        one, other = to[self.one], to[self.other]
        kept = one != other
        return CannotLink(one[kept], other[kept], self.weight[kept])


def link(
    clusters: Clusters,
    near: Neighbours,
    apart: CannotLink,
    rule: LinkageRule,
    on_merges: OnMerges | None = None,
) -> NDArray[np.int64]:
    """Merge clusters and return, for each of those given, the number of the one it is part of, from 0 on.

    ``near`` has the neighbours of the given clusters; ``rule.bars`` one more entry than there are clusters.
    ``on_merges`` is called now and then with the number of merges; an exception of its own, or Ctrl-C, ends
    the work.
    """
    n = len(clusters)
    start, neighbours = _both_ways(near, n)
    apart_start, other, weight = _listed(apart, n)
    sums, weights = clusters.sums.copy(), clusters.weights.copy()
    found, status = np.empty(n, np.int32), np.zeros(2, np.int64)
    work = threads("linkage").submit(
        backend.kernels.linkage, sums.shape[1], sums, weights, clusters.sizes.copy(), clusters.names.copy(),
        start, neighbours, apart_start, other, weight, rule.mean, rule.spread, rule.rest, rule.apart_penalty,
        rule.apart_rate, rule.bars, found, status,
    )  # fmt: skip
    try:
        while wait([work], LOOK_SECONDS).not_done:
            if on_merges is not None:
                on_merges(int(status[0]))
        work.result()
    except BaseException:
        status[1] = 1
        wait([work])
        raise
    return np.unique(found, return_inverse=True)[1].astype(np.int64)


def _both_ways(near: Neighbours, n: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Return neighbours so that each of a pair has the other one."""
    pairs = np.concatenate([near.row * n + near.other, near.other.astype(np.int64) * n + near.row])
    pairs.sort()  # not `np.unique`, which takes fifty times as long for such numbers
    pairs = pairs[np.flatnonzero(np.diff(pairs, prepend=-1))]
    counts = np.bincount(pairs // n, minlength=n) if n else np.zeros(0, np.int64)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), (pairs % max(n, 1)).astype(np.int32)


def _listed(apart: CannotLink, n: int) -> tuple[NDArray[np.int64], NDArray[np.int32], Floats]:
    one = np.concatenate([apart.one, apart.other])
    order = np.argsort(one, kind="stable")
    start = np.concatenate([[0], np.cumsum(np.bincount(one, minlength=n))]).astype(np.int64)
    other = np.concatenate([apart.other, apart.one])[order].astype(np.int32)
    return start, other, np.concatenate([apart.weight, apart.weight])[order].astype(np.float32)
