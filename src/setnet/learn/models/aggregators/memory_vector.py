"""Memory vectors (Iscen et al., "Memory vectors for similarity search in high-dimensional spaces", 2017)."""

from __future__ import annotations

import torch
from torch import Tensor

from setnet.learn.models.aggregators.aggregator_module import AggregatorModule
from setnet.learn.models.aggregators.ragged import set_numbers, unit


class MemoryVector(AggregatorModule):
    """The vector whose scalar product with every element of the set is one: the pseudo-inverse construction.

    ``m = X^T (X X^T + ridge I)^-1 1`` for the set's rows X, then L2; the ridge is for near-duplicates.
    """

    def __init__(self, element_dim: int, ridge: float = 0.01) -> None:
        super().__init__(element_dim, element_dim)
        self.ridge = ridge

    def pool(self, elements: Tensor, counts: Tensor) -> Tensor:
        """Return the unit memory vector of each set."""
        out = elements.new_zeros((len(counts), self.dim))
        numbers = set_numbers(counts)
        # Sets of one size are solved together: no padding, one batched solve per size.
        for size in torch.unique(counts).tolist():
            rows = torch.nonzero(counts == size).flatten()
            members = elements[counts[numbers] == size].view(len(rows), size, -1)
            gram = members @ members.transpose(1, 2)
            gram = gram + self.ridge * torch.eye(size, dtype=gram.dtype, device=gram.device)
            weights = torch.linalg.solve(gram, gram.new_ones(len(rows), size, 1))
            out = out.index_add(0, rows, (weights * members).sum(1))
        return unit(out)
