"""NetVLAD with the paper's modification, and the SetNet aggregator built on it (sections 3.1 and 3.2)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from setnet.learn.models.aggregators.aggregator_module import AggregatorModule
from setnet.learn.models.aggregators.ragged import ragged_sum, unit


class NetVLAD(nn.Module):
    """Soft-assigned residuals to K centres (eq. 1); a_k, b_k and c_k are trained independently.

    The paper's modification: an element's total contribution (its K weighted residuals together) is
    L2-normalised before the sum, so that each face weighs the same. The output is laid out cluster by
    cluster: entry ``k * element_dim + j`` is V(j, k).
    """

    def __init__(self, element_dim: int, clusters: int) -> None:
        super().__init__()
        self.element_dim, self.clusters = element_dim, clusters
        self.a = nn.Parameter(torch.randn(clusters, element_dim) / element_dim**0.5)
        self.b = nn.Parameter(torch.zeros(clusters))
        self.c = nn.Parameter(torch.randn(clusters, element_dim) / element_dim**0.5)

    def contributions(self, elements: Tensor) -> Tensor:
        """Return each element's unit-norm contribution, (n, clusters * element_dim)."""
        weights = torch.softmax(elements @ self.a.T + self.b, dim=1)
        residuals = weights[:, :, None] * (elements[:, None, :] - self.c)
        return unit(residuals.flatten(1))

    def forward(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the L2-normalised sum of the contributions of each set."""
        return unit(ragged_sum(self.contributions(elements), counts))


class NetVLADAggregator(AggregatorModule):
    """SetNet's aggregator: NetVLAD, fully-connected layer to `dim`, batch norm, L2."""

    def __init__(self, element_dim: int, dim: int, clusters: int = 8) -> None:
        super().__init__(element_dim, dim)
        self.vlad = NetVLAD(element_dim, clusters)
        self.fc = nn.Linear(clusters * element_dim, dim, bias=False)  # batch norm's shift is its bias
        self.norm = nn.BatchNorm1d(dim)

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return one unit vector per set."""
        return unit(self.norm(self.fc(self.vlad(elements, counts))))
