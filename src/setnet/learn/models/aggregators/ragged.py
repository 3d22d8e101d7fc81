"""Sums over sets of different sizes without padding: elements lie end to end, `counts` cuts them."""

from __future__ import annotations

import torch
from torch import Tensor

from setnet.errors import InvalidInputError


def check_counts(elements: Tensor, counts: Tensor) -> None:
    """Raise unless `counts` cuts `elements` into sets of at least one."""
    if elements.ndim != 2:
        raise InvalidInputError(f"elements must be (n, dim), got shape {tuple(elements.shape)}")
    if counts.ndim != 1 or bool((counts < 1).any()):
        raise InvalidInputError("counts must be one positive number per set; drop empty sets first")
    if int(counts.sum()) != len(elements):
        raise InvalidInputError(
            f"counts add up to {int(counts.sum())} but there are {len(elements)} elements"
        )


def set_numbers(counts: Tensor) -> Tensor:
    """Return, for each element, the number of its set.

    >>> set_numbers(torch.tensor([2, 1])).tolist()
    [0, 0, 1]
    """
    return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)


def ragged_sum(values: Tensor, counts: Tensor) -> Tensor:
    """Return the sum of each set's rows, (N, ...)."""
    out = values.new_zeros((len(counts), *values.shape[1:]))
    return out.index_add(0, set_numbers(counts), values)


def ragged_mean(values: Tensor, counts: Tensor) -> Tensor:
    """Return the mean of each set's rows, (N, ...)."""
    return ragged_sum(values, counts) / counts.to(values.dtype)[:, None]


def unit(x: Tensor) -> Tensor:
    """Return the rows of `x` scaled to unit norm (a zero row stays zero)."""
    return torch.nn.functional.normalize(x, dim=-1, eps=1e-12)
