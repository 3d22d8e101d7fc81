"""A torch network behind the run time's `Aggregator` interface, for experiments."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from setnet.heads import Aggregator, Logistic
from setnet.learn.models.network import SetNetwork, learned_exponents

Floats = NDArray[np.float32]
SETS_AT_ONCE = 4096


class NetworkAggregator(Aggregator):
    """Aggregates the *elements* that a network makes as float32; see `setnet.heads.Aggregator`."""

    def __init__(self, network: SetNetwork, name: str) -> None:
        self.network = network.eval()
        self.name, self.bits = name, 32
        self.element_dim, self.dim = network.aggregator.element_dim, network.aggregator.dim
        self.logistic = Logistic(max(network.w.item(), 1e-3), network.b.item())

    @property
    def exponents(self) -> list[float]:
        """The exponents p that a generalised mean learned; none for other aggregators."""
        return learned_exponents(self.network)

    def describe(self, elements: Floats) -> Floats:
        """Return the query vectors of single elements."""
        with torch.no_grad():
            return np.asarray(self.network.describe(torch.from_numpy(np.ascontiguousarray(elements))).numpy())

    def pool(self, elements: Floats, counts: NDArray[np.int64]) -> Floats:
        """Return one set vector per set."""
        ends = np.cumsum(counts)
        out = np.empty((len(counts), self.dim), dtype=np.float32)
        with torch.no_grad():
            for first in range(0, len(counts), SETS_AT_ONCE):
                some = counts[first : first + SETS_AT_ONCE]
                start = int(ends[first] - counts[first])
                rows = torch.from_numpy(np.ascontiguousarray(elements[start : start + int(some.sum())]))
                out[first : first + len(some)] = self.network.aggregate(rows, torch.from_numpy(some)).numpy()
        return out
