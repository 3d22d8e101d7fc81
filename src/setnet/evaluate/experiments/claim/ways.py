"""The ways of keeping a set that the claim compares: one vector of a network's, or every element."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.evaluate.experiments.claim.described import Described
from setnet.evaluate.methods.element_codes import coded_elements
from setnet.evaluate.methods.ranking_calibration import best_ranking
from setnet.evaluate.methods.stress_measure import (
    FACES,
    PairSimilarities,
    StressTest,
    element_similarities,
    set_similarities,
    set_vectors,
    vector_similarities,
)
from setnet.heads import Aggregator, unit
from setnet.train import NetworkAggregator, SetNetwork, Variant, whiten

Floats = NDArray[np.float32]


class Way(Protocol):
    """A way of keeping sets."""

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities of queries with sets, by number of elements."""


@dataclass(frozen=True)
class SetVectors:
    """One vector per set."""

    aggregator: Aggregator

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities of queries with sets, by number of elements."""
        return set_similarities(self.aggregator, test)


@dataclass(frozen=True)
class EveryElement:
    """Every element, in so many bits per dimension."""

    bits: int

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities of queries with sets, by number of elements."""
        return element_similarities(test, FACES, unit, coded_elements(self.bits))


@dataclass(frozen=True)
class ElementVectors:
    """Every element kept as the vector that a network makes of it alone: what is left before any pooling."""

    network: SetNetwork

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities of queries with sets, by number of elements."""
        return element_similarities(test, FACES, NetworkAggregator(self.network, "").describe)


class Pooled:
    """A trained network's set vectors, which whitening after aggregation only maps: pooled once for all."""

    def __init__(self, network: SetNetwork) -> None:
        self._network = network
        self._known: dict[StressTest, tuple[Floats, list[Floats]]] = {}

    def similarities(self, test: StressTest) -> Iterator[PairSimilarities]:
        """Yield the similarities by number of elements, with the whitening that the network has now."""
        after, self._network.after = self._network.after, None
        if test not in self._known:
            plain = NetworkAggregator(self._network, "")
            queries = plain.describe(test.world.descriptors[test.examples])
            self._known[test] = queries, [set_vectors(plain, test.world, size) for size in FACES]
        self._network.after = after
        queries, sets = self._known[test]
        for vectors in sets:
            if after is None:
                yield vector_similarities(queries, vectors)
            else:
                yield vector_similarities(*(after(torch.from_numpy(v)).numpy() for v in (queries, vectors)))


def forms(variant: Variant) -> Iterator[tuple[str, str | None]]:
    """Yield a variant's rows: as it is, whitened, and for averages also whitened after aggregation."""
    yield variant.name, None
    if variant.aggregator == "average":
        yield f"{variant.name} + W (W after agg.)", "after"
        yield f"{variant.name} + W", "before"
    elif variant.aggregator not in ("memory", "muvera"):
        yield f"{variant.name} + W", "after"


def formed(network: SetNetwork, pooled: Pooled, place: str | None, size: int, described: Described) -> Pooled:
    """Give `network` the whitening of a form; return how its sets are kept."""
    network.before = network.after = None
    if place is not None:
        whiten(network, *described.sample, (size,), place)
    return Pooled(network) if place == "before" else pooled


def quality(way: Way, described: Described) -> float:
    """Return the nDCG@10 of validation identities, calibrated on another draw of them: mean over sizes."""
    fitted, judged = described.validation
    logistic = best_ranking(way.similarities(fitted), fitted)
    return float(np.mean([judged.ndcg(one, logistic) for one in way.similarities(judged)]))
