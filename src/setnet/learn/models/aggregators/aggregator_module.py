"""The interface of trainable aggregators: a set of elements becomes one unit vector."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from setnet.learn.models.aggregators.ragged import check_counts


class AggregatorModule(nn.Module):
    """Base of the set aggregators (section 3.1 of the paper, and its baselines).

    Attributes
    ----------
    element_dim, dim
        Width of an element and of a set vector.
    before_fc
        True when the elements are the features *before* the backbone's last layer.
    """

    before_fc = False

    def __init__(self, element_dim: int, dim: int) -> None:
        super().__init__()
        self.element_dim = element_dim
        self.dim = dim

    def forward(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return one unit vector per set, (N, dim); `counts` cuts the rows of `elements` into sets."""
        check_counts(elements, counts)
        return self.pool(elements, counts)

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the vectors of sets whose counts were checked."""
        raise NotImplementedError

    def describe(self, elements: Tensor) -> Tensor:
        """Return the query vectors of single faces: sets of one element."""
        ones = torch.ones(len(elements), dtype=torch.long, device=elements.device)
        out: Tensor = self(elements, ones)
        return out
