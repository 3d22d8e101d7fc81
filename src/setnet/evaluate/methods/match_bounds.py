"""Upper bounds of rare rates: of false matches among so many comparisons."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def clopper_pearson(count: float, trials: float, confidence: float = 0.95) -> float:
    """Return the upper bound of a rate after `count` events in independent trials (Clopper, Pearson 1934).

    >>> round(clopper_pearson(0, 1_000_000) * 1e6, 2)
    3.0
    """
    from scipy.stats import beta

    return float(beta.ppf(confidence, count + 1, max(trials - count, 1e-9)))


def by_person(
    counts: NDArray[np.floating],
    trials: NDArray[np.floating],
    person: NDArray[np.int64],
    confidence: float = 0.95,
    draws: int = 2000,
    seed: int = 0,
) -> float:
    """Return the upper bound of a rate when what concerns one person comes together: people are drawn anew.

    A bootstrap of people; where none has an event it says 0, and `clopper_pearson` says more.
    """
    _, owner = np.unique(person, return_inverse=True)
    events, tries = np.bincount(owner, counts), np.bincount(owner, trials)
    rng = np.random.default_rng(seed)
    rates = []
    for _ in range(draws):
        drawn = rng.integers(0, len(events), len(events))
        rates.append(events[drawn].sum() / tries[drawn].sum())
    return float(np.quantile(rates, confidence))
