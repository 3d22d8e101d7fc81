"""Average linkage over a graph in plain Python, for some thousand elements: the oracle of the C one."""

from __future__ import annotations

import heapq
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def linkage(
    dim: int, sums: NDArray[np.float32], weights: NDArray[np.float64], sizes: NDArray[np.int64],
    names: NDArray[np.int32], start: NDArray[np.int64], neighbours: NDArray[np.int32],
    apart_start: NDArray[np.int64], apart: NDArray[np.int32], apart_weight: NDArray[np.float32], mean: float,
    spread: float, rest: float, apart_penalty: float, apart_rate: float, bars: NDArray[np.float64],
    clusters: NDArray[np.int32], status: NDArray[np.int64],
) -> None:  # fmt: skip
    """Merge the two clusters of the highest score until none reaches the bar; write the cluster of each.

    A heap has the scores of all pairs of neighbours, those of clusters that have merged since included.
    """
    n = len(weights)
    near = [set(neighbours[start[i] : start[i + 1]].tolist()) - {i} for i in range(n)]
    conflicts: list[dict[int, float]] = [{} for _ in range(n)]
    for i in range(n):
        for at in range(apart_start[i], apart_start[i + 1]):
            other = int(apart[at])
            conflicts[i][other] = conflicts[i].get(other, 0.0) + float(apart_weight[at])
    merges, clusters[:] = [0] * n, np.arange(n)
    factor = np.sqrt(rest + (1 - rest) / weights)

    def score(a: int, b: int) -> float:
        conflict = conflicts[a].get(b, 0.0)
        if conflict == np.inf or (names[a] >= 0 and names[b] >= 0 and names[a] != names[b]):
            return -np.inf
        similarity = float(sums[a].astype(np.float64) @ sums[b]) / (weights[a] * weights[b])
        taken = apart_penalty * _apart_cost(conflict, int(min(sizes[a], sizes[b])), apart_rate)
        return float((similarity - mean) / (spread * (factor[a] * factor[b])) - taken)

    def entry(a: int, b: int) -> tuple[float, int, int, int, int]:
        a, b = min(a, b), max(a, b)
        return -score(a, b), a, b, merges[a], merges[b]

    heap = [entry(a, b) for a in range(n) for b in near[a] if a < b]
    heapq.heapify(heap)
    left = n
    while heap and not status[1]:
        lowest, a, b, *as_of = heapq.heappop(heap)
        if [merges[a], merges[b]] != as_of:
            continue
        if -lowest < bars[left] or lowest == np.inf:
            break
        sums[a] += sums[b]
        weights[a], sizes[a], names[a] = weights[a] + weights[b], sizes[a] + sizes[b], max(names[a], names[b])
        factor[a] = np.sqrt(rest + (1 - rest) / weights[a])
        merges[a], merges[b], left = merges[a] + 1, -1, left - 1
        clusters[clusters == b] = a
        status[0] += 1
        _move(near, conflicts, a, b)
        for other in near[a]:
            heapq.heappush(heap, entry(a, other))


def _apart_cost(pairs: float, elements: int, rate: float) -> float:
    """Return how much less likely so many pairs are by mistake than by their own rate, 1 for one of one."""
    share = min(1.0, pairs / elements)
    if share <= rate:
        return 0.0
    rest = (1 - share) * math.log((1 - share) / (1 - rate)) if share < 1 else 0.0
    return elements * (share * math.log(share / rate) + rest) / -math.log(rate)


def _move(near: list[set[int]], conflicts: list[dict[int, Any]], a: int, b: int) -> None:
    """Give a what b has: its neighbours and its conflicts, in the lists of the others too."""
    for other in near[b]:
        near[other].discard(b)
        near[other].add(a)
    near[a] = (near[a] | near[b]) - {a, b}
    near[b] = set()
    for other, weight in conflicts[b].items():
        conflicts[other].pop(b, None)
        if other != a:
            conflicts[a][other] = conflicts[other][a] = conflicts[a].get(other, 0.0) + weight
    conflicts[b] = {}
