from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.train.training import balanced_logistic, contrastive, membership, set_loss


def literal_loss(queries: np.ndarray, sets: np.ndarray, y: np.ndarray, w: float, b: float) -> float:
    """Equation 2 with positives and negatives each divided by their count, averaged over the sets."""
    total = 0.0
    for s in range(len(sets)):
        positive = [-np.log(1 / (1 + np.exp(-(w * q @ sets[s] + b)))) for q in queries[y[:, s]]]
        negative = [-np.log(1 - 1 / (1 + np.exp(-(w * q @ sets[s] + b)))) for q in queries[~y[:, s]]]
        total += np.mean(positive) + np.mean(negative)
    return total / len(sets)


def batch(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    queries = torch.nn.functional.normalize(torch.randn(6, 5, generator=generator, dtype=torch.float64))
    sets = torch.nn.functional.normalize(torch.randn(3, 5, generator=generator, dtype=torch.float64))
    labels = torch.arange(6)
    return queries, sets, membership(labels, labels, torch.tensor([1, 2, 3]))


def test_members_are_the_people_of_each_set() -> None:
    _, _, y = batch()
    assert y.sum(0).tolist() == [1, 2, 3]
    assert y.sum(1).tolist() == [1] * 6


@settings(max_examples=20, deadline=None)
@given(st.floats(0.1, 20), st.floats(-5, 5), st.integers(0, 100))
def test_it_is_equation_2_balanced(w: float, b: float, seed: int) -> None:
    queries, sets, y = batch(seed)
    ours = balanced_logistic(w * queries @ sets.T + b, y)
    assert ours.item() == pytest.approx(
        literal_loss(queries.numpy(), sets.numpy(), y.numpy(), w, b), rel=1e-6
    )


def test_gradients_reach_both_sides_and_w_and_b() -> None:
    queries, sets, y = batch()
    w, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (4.0, -1.0))
    inputs = (queries.requires_grad_(), sets.requires_grad_(), w, b)
    for loss in (balanced_logistic, contrastive):
        assert torch.autograd.gradcheck(lambda q, s, w, b, loss=loss: loss(w * q @ s.T + b, y), inputs)


def test_more_of_the_same_negatives_do_not_outweigh_the_positives() -> None:
    logits = torch.tensor([[2.0], [-1.0]])
    y = torch.tensor([[True], [False]])
    many = torch.cat([logits[:1], logits[1:].repeat(50, 1)])
    members = torch.cat([y[:1], y[1:].repeat(50, 1)])
    torch.testing.assert_close(balanced_logistic(many, members), balanced_logistic(logits, y))


def test_the_contrastive_loss_looks_at_the_worst_wrong_set() -> None:
    y = torch.eye(20, dtype=torch.bool)
    calm = torch.full((20, 20), -4.0).masked_fill(y, 2.0)
    rival = calm.clone()
    rival[0, 5] = 6.0  # one wrong set above the right one
    average = (balanced_logistic(rival, y) - balanced_logistic(calm, y)).item()
    gained = (contrastive(rival, y) - contrastive(calm, y)).item()
    assert gained > average > 0


def test_a_perfect_batch_costs_nearly_nothing() -> None:
    y = torch.eye(8, dtype=torch.bool)
    logits = torch.full((8, 8), -30.0).masked_fill(y, 30.0)
    for name in ("logistic", "contrastive"):
        assert set_loss(name, logits, y) < 1e-6


def test_an_unknown_loss_lists_the_valid_ones() -> None:
    with pytest.raises(InvalidInputError, match="'contrastive'"):
        set_loss("triplet", torch.zeros(2, 2), torch.eye(2, dtype=torch.bool))
