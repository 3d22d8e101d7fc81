"""The whole SetNet: a backbone, an aggregator, the logistic classifier, and whitening once trained."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from setnet.errors import ModelError, one_of
from setnet.learn.models.aggregators.aggregator_module import AggregatorModule
from setnet.learn.models.aggregators.memory_vector import MemoryVector
from setnet.learn.models.aggregators.muvera import Muvera
from setnet.learn.models.aggregators.netvlad import NetVLADAggregator
from setnet.learn.models.aggregators.pooling import Average, AverageBeforeFC, GeneralisedMean, Sum
from setnet.learn.models.aggregators.ragged import unit
from setnet.learn.models.backbones.backbone import Backbone
from setnet.learn.models.whitening import Whitening

AGGREGATORS = ("average", "before-fc", "gem", "gem-per-dim", "memory", "muvera", "netvlad", "sum")


def make_aggregator(name: str, backbone: Backbone, dim: int = 128, clusters: int = 8) -> AggregatorModule:
    """Return a fresh aggregator for `backbone`; `dim` and `clusters` apply to those that have them."""
    if name == "average":
        return Average(backbone.dim)
    if name == "before-fc":
        if not isinstance(getattr(backbone, "reduce", None), nn.Linear):
            raise ModelError(
                "aggregating before the last layer needs a backbone with one; descriptors have none"
            )
        return AverageBeforeFC(backbone.reduce)
    if name in ("gem", "gem-per-dim"):
        return GeneralisedMean(backbone.dim, per_dimension=name == "gem-per-dim")
    if name == "memory":
        return MemoryVector(backbone.dim)
    if name == "muvera":
        return Muvera(backbone.dim, dim)
    if name == "netvlad":
        return NetVLADAggregator(backbone.dim, dim, clusters)
    if name == "sum":
        return Sum(backbone.dim)
    raise one_of("aggregator", name, AGGREGATORS)


class SetNetwork(nn.Module):
    """Faces in, set vectors out; `w` and `b` are the logistic classifier of eq. 2.

    Whitening *before* turns descriptors into whitened descriptors ahead of the aggregation, whitening *after*
    applies to set vectors and query vectors alike.
    """

    def __init__(
        self, backbone: Backbone, aggregator: AggregatorModule, w: float = 10.0, b: float = -5.0
    ) -> None:
        super().__init__()
        wanted = backbone.feature_dim if aggregator.before_fc else backbone.dim
        if aggregator.element_dim != wanted:
            raise ModelError(
                f"the aggregator takes {aggregator.element_dim} dimensions, the backbone gives {wanted}"
            )
        self.backbone = backbone
        self.aggregator = aggregator
        self.w = nn.Parameter(torch.tensor(float(w)))
        self.b = nn.Parameter(torch.tensor(float(b)))
        self.before: Whitening | None = None
        self.after: Whitening | None = None

    def elements(self, faces: Tensor) -> Tensor:
        """Return what is aggregated, a row per face: unit descriptors, or features before the last layer."""
        features = self.backbone.features(faces)
        if self.aggregator.before_fc:
            return features
        reduced = features if self.backbone.spec is None else self.backbone.reduce(features)
        return unit(reduced)

    def aggregate(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return one vector per set of elements."""
        pooled: Tensor = self.aggregator(self._prepared(elements), counts)
        return pooled if self.after is None else self.after(pooled)

    def describe(self, elements: Tensor) -> Tensor:
        """Return the query vector of each element."""
        vectors = self.aggregator.describe(self._prepared(elements))
        return vectors if self.after is None else self.after(vectors)

    def _prepared(self, elements: Tensor) -> Tensor:
        return elements if self.before is None else self.before(elements)

    def logits(self, queries: Tensor, sets: Tensor) -> Tensor:
        """Return w <v_f, v_set> + b for all pairs, (queries, sets)."""
        return self.w * (queries @ sets.T) + self.b


def learned_exponents(network: SetNetwork) -> list[float]:
    """Return the exponents that a generalised mean learned; none for other aggregators."""
    aggregator = network.aggregator
    return aggregator.exponents.tolist() if isinstance(aggregator, GeneralisedMean) else []
