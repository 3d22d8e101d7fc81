"""The multi-label logistic loss of eq. 2, balanced, and two ranking losses for hard negatives."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from setnet.errors import one_of
from setnet.train.aggregators import set_numbers


def membership(query_labels: Tensor, set_labels: Tensor, counts: Tensor) -> Tensor:
    """Return y of eq. 2, (queries, sets): is the query's person among the set's elements?

    >>> membership(torch.tensor([7, 8]), torch.tensor([7, 9, 8]), torch.tensor([2, 1])).int().tolist()
    [[1, 0], [0, 1]]
    """
    same = query_labels[:, None] == set_labels[None, :]
    found = torch.zeros(len(query_labels), len(counts), device=same.device)
    found = found.index_add(1, set_numbers(counts), same.to(found.dtype))
    return found > 0


def balanced_logistic(logits: Tensor, members: Tensor) -> Tensor:
    """Return eq. 2 per set, positives and negatives each divided by their count, averaged over the sets.

    Parameters
    ----------
    logits
        (queries, sets): w <v_f, v_set> + b.
    members
        (queries, sets) bool, from `membership`.
    """
    y = members.to(logits.dtype)
    positive = (functional.softplus(-logits) * y).sum(0) / y.sum(0).clamp_min(1)
    negative = (functional.softplus(logits) * (1 - y)).sum(0) / (1 - y).sum(0).clamp_min(1)
    return (positive + negative).mean()


def hard_logistic(logits: Tensor, members: Tensor, hardest: int = 4) -> Tensor:
    """Return the balanced loss with only each query's `hardest` negative sets counted.

    A top-10 list is decided by the few wrong sets that score highest, which an average hides.
    """
    masked = logits.masked_fill(members, -torch.inf)
    worst = masked.topk(min(hardest, logits.shape[1]), dim=1).values
    kept = torch.isfinite(worst)
    negative = (functional.softplus(worst.masked_fill(~kept, -30.0)) * kept).sum() / kept.sum().clamp_min(1)
    y = members.to(logits.dtype)
    return (functional.softplus(-logits) * y).sum() / y.sum().clamp_min(1) + negative


def contrastive(logits: Tensor, members: Tensor) -> Tensor:
    """Return the cross-entropy of each true (query, set) pair against wrong sets and wrong queries.

    The softmax puts its weight on the wrong pairs nearest the top; w plays the part of the inverse
    temperature (b cancels).
    """
    wrong = logits.masked_fill(members, -torch.inf)
    losses = []
    for axis in (1, 0):
        rest = torch.logsumexp(wrong, dim=axis, keepdim=True)
        losses.append(functional.softplus(rest - logits)[members].mean())
    return (losses[0] + losses[1]) / 2


LOSSES = {"logistic": balanced_logistic, "hard": hard_logistic, "contrastive": contrastive}


def set_loss(name: str, logits: Tensor, members: Tensor) -> Tensor:
    """Return the loss called `name`; ranking losses keep half of eq. 2 so that w and b stay fitted."""
    if name not in LOSSES:
        raise one_of("loss", name, LOSSES)
    logistic = balanced_logistic(logits, members)
    return logistic if name == "logistic" else 0.5 * logistic + LOSSES[name](logits, members)
