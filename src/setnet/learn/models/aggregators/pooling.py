"""The paper's baselines (section 5.2): average (also before the last layer), generalised mean, sum."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from setnet.learn.models.aggregators.aggregator_module import AggregatorModule
from setnet.learn.models.aggregators.ragged import ragged_mean, ragged_sum, unit


class Average(AggregatorModule):
    """Average pooling and L2: *Baseline*."""

    def __init__(self, element_dim: int) -> None:
        super().__init__(element_dim, element_dim)

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the unit mean of each set."""
        return unit(ragged_mean(elements, counts))


class Sum(Average):
    """Sum pooling without the final L2: a set's length then grows with its size."""

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the sum of each set's elements."""
        return ragged_sum(elements, counts)


class AverageBeforeFC(AggregatorModule):
    """Average of the L2-normalised features before the last layer, then that layer, then L2.

    The layer is the aggregator's own (started from the backbone's), so that training it moves one copy only.
    """

    before_fc = True

    def __init__(self, fc: nn.Linear) -> None:
        super().__init__(fc.in_features, fc.out_features)
        self.fc = nn.Linear(fc.in_features, fc.out_features, bias=fc.bias is not None)
        self.fc.load_state_dict(fc.state_dict())

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the unit image, under the last layer, of each set's mean feature."""
        return unit(self.fc(ragged_mean(unit(elements), counts)))


class GeneralisedMean(AggregatorModule):
    """``(mean |x|^p)^(1/p)`` and L2, with p learned: one for all dimensions or one per dimension.

    Signs are lost, so whitening can only follow the aggregation (section 5.2).
    """

    def __init__(self, element_dim: int, per_dimension: bool = False, p: float = 3.0) -> None:
        super().__init__(element_dim, element_dim)
        self.p = nn.Parameter(torch.full((element_dim,) if per_dimension else (1,), p))

    @property
    def exponents(self) -> Tensor:
        """The exponents in use, from 1 to 6: below, 1 / p explodes; above, powers of small numbers are 0."""
        return self.p.clamp(1.0, 6.0)

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the unit generalised mean of each set."""
        p = self.exponents
        # The floor keeps the logarithm in x^p's derivative finite at 0.
        powers = elements.abs().clamp_min(1e-6) ** p
        return unit(ragged_mean(powers, counts) ** (1.0 / p))
