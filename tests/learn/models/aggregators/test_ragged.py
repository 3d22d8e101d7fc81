from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from setnet.errors import InvalidInputError
from setnet.learn.models.aggregators.ragged import check_counts, ragged_mean, ragged_sum, unit


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=8), st.integers(0, 100))
def test_sums_and_means_are_those_of_each_set_alone(counts: list[int], seed: int) -> None:
    rows = torch.randn(sum(counts), 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    sizes = torch.tensor(counts)
    for one, total, mean in zip(
        torch.split(rows, counts), ragged_sum(rows, sizes), ragged_mean(rows, sizes), strict=True
    ):
        torch.testing.assert_close(total, one.sum(0))
        torch.testing.assert_close(mean, one.mean(0))


@pytest.mark.parametrize(
    ("counts", "message"),
    [([2, 2], "add up to 4 but there are 3"), ([3, 0], "positive"), ([[3]], "positive")],
)
def test_counts_that_do_not_fit_are_refused(counts: list[int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        check_counts(torch.zeros(3, 2), torch.tensor(counts))


def test_zero_rows_stay_zero_and_have_a_gradient() -> None:
    x = torch.zeros(1, 4, requires_grad=True)
    torch.autograd.backward(unit(x).sum())
    assert x.grad is not None
    assert torch.isfinite(x.grad).all()
