from __future__ import annotations

import pytest
import torch

from setnet.errors import TrainingError
from setnet.learn.models.whitening import fit_whitening


def test_whitened_vectors_are_uncorrelated_before_l2_and_unit_after() -> None:
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(2000, 6, generator=generator) @ torch.randn(6, 6, generator=generator) + 3
    fit = fit_whitening(rows, ridge=0.0)
    flat = (rows - fit.mean) @ fit.matrix
    torch.testing.assert_close(torch.cov(flat.T), torch.eye(6), atol=1e-3, rtol=0)
    norms = fit(rows).norm(dim=1)
    torch.testing.assert_close(norms, torch.ones_like(norms))


def test_a_direction_without_variance_is_not_blown_up() -> None:
    rows = torch.randn(500, 4, generator=torch.Generator().manual_seed(0))
    rows[:, 3] *= 1e-6
    assert fit_whitening(rows).matrix.abs().max() < 20


def test_too_few_vectors_are_refused() -> None:
    with pytest.raises(TrainingError, match="needs more than 8 vectors, got 8"):
        fit_whitening(torch.randn(8, 8))
