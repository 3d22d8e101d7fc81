"""Merging the rankings of shards into that of one index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from setnet.index import Candidates, Hit, RankedItems


def first_k(k: int, shards: int) -> int:
    """Return how many hits to ask each shard for when the best k of all are wanted.

    Of k items that a hash spreads over the shards, one holds k / shards on average and next to never four
    standard deviations more. Asked for all k, a shard would look at many more items than are needed.

    >>> first_k(100, 1), first_k(100, 4), first_k(3, 4)
    (100, 45, 3)
    """
    share = k / shards
    return min(k, math.ceil(share + 4 * math.sqrt(share)))


def merged(parts: Mapping[int, RankedItems], k: int, size: int) -> RankedItems:
    """Return the best k of the items of all shards.

    Items are ordered by score, then by the sum of similarities, as in one index. Where both are equal, one
    index orders by insertion; here the lower shard comes first, and in a shard the earlier item.
    """
    found = [parts[shard] for shard in sorted(parts) if len(parts[shard])]
    if not found:
        return RankedItems.none(size)
    together = RankedItems.chained(found)
    order = np.lexsort((-together.sums, -together.scores))  # stable: shard by shard where both are equal
    return together.take(order[:k])


def may_have_more(part: RankedItems, asked: int, best: RankedItems, k: int) -> bool:
    """Return whether a shard that was asked for fewer than k items may hold more of the best k."""
    if asked >= k or len(part) < asked:
        return False
    if len(best) < k:
        return True
    return bool((part.scores[-1], part.sums[-1]) >= (best.scores[-1], best.sums[-1]))


def least_estimate(parts: Mapping[int, Candidates], wanted: int) -> float:
    """Return the estimate from which one index would re-rank: that of the last of the wanted best."""
    estimates = np.concatenate([part.estimates for part in parts.values()])
    return -np.inf if len(estimates) <= wanted else float(np.partition(estimates, -wanted)[-wanted])


def may_estimate_more(part: Candidates, asked: int, low: float) -> bool:
    """Return whether a shard asked for so many candidates may have more that reach an estimate."""
    return len(part.estimates) >= asked and bool(part.estimates.min(initial=np.inf) >= low)


def chosen(part: Candidates, low: float) -> NDArray[np.int64]:
    """Return the items of a shard that are re-ranked, by their numbers."""
    return np.concatenate([part.sure, part.items[part.estimates >= low]])


def merged_tags(parts: Mapping[int, Sequence[Hit]]) -> list[tuple[int, Hit]]:
    """Return the hits by tags of all shards with their shard: most names first, then most similar."""
    together = [(shard, hit) for shard in sorted(parts) for hit in parts[shard]]
    return sorted(together, key=lambda one: (-one[1].score, -sum(m.similarity for m in one[1].matches)))
