"""Whitening after training (section 5.1): decorrelate, equalise, L2."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from setnet.errors import TrainingError
from setnet.learn.models.aggregators.ragged import unit


class Whitening(nn.Module):
    """``unit((v - mean) matrix)``; applied to set vectors, or to descriptors before aggregation."""

    mean: Tensor
    matrix: Tensor

    def __init__(self, mean: Tensor, matrix: Tensor) -> None:
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("matrix", matrix)

    def forward(self, vectors: Tensor) -> Tensor:
        """Return whitened rows at unit norm."""
        return unit((vectors - self.mean) @ self.matrix)


def fit_whitening(vectors: Tensor, ridge: float = 0.01) -> Whitening:
    """Return the PCA whitening of the rows of `vectors`.

    `ridge`, a share of the mean variance, is added to every direction: without it the directions in which
    training vectors hardly vary would be blown up into noise.
    """
    n, dim = vectors.shape
    if n <= dim:
        raise TrainingError(
            f"whitening {dim} dimensions needs more than {dim} vectors, got {n}: add training data"
        )
    rows = vectors.detach().double()
    mean = rows.mean(0)
    centred = rows - mean
    variance, axes = torch.linalg.eigh(centred.T @ centred / (n - 1))
    variance = variance.clamp_min(0) + ridge * variance.mean()
    matrix = axes / variance.sqrt()
    return Whitening(mean.to(vectors.dtype), matrix.flip(1).to(vectors.dtype))
