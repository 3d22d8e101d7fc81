"""Verification: how many genuine pairs are accepted at a threshold that few impostor pairs pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.bootstrap import people_draws
from setnet.evaluate.data.labelled_people import LabelledPeople

ROWS_AT_ONCE = 512


def true_match_rates(people: LabelledPeople, rates: Sequence[float]) -> NDArray[np.float64]:
    """Return (rates, people): the percentage of each person's pairs of faces accepted at a false match rate.

    The threshold of a rate is what that share of all impostor pairs exceeds; people are those with two faces
    or more, in order of names.

    >>> rows = np.eye(3, dtype=np.float32)[[0, 0, 1, 2]]
    >>> true_match_rates(LabelledPeople(rows, np.array(["a", "a", "b", "c"])), [0.1]).tolist()
    [[100.0]]
    """
    groups = people.groups(2)
    impostors = np.concatenate([*_impostors(people), np.empty(0, np.float32)])
    if not groups or not len(impostors):
        raise InvalidInputError("verification needs two faces of one person and a face of another")
    bars = np.quantile(impostors, 1.0 - np.asarray(rates, np.float64), method="higher")
    accepted = [[100.0 * (genuine > bar).mean() for genuine in _genuine(people, groups)] for bar in bars]
    return np.array(accepted)


def match_rate_draws(accepted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (rates, draws): the mean over people in resamples of them; thresholds stay as they are."""
    everyone = [(number,) for number in range(accepted.shape[1])]
    return np.array([people_draws([each], [everyone]) for each in accepted])


def _impostors(people: LabelledPeople) -> Iterator[NDArray[np.float32]]:
    """Yield the similarities of all pairs of faces of different people; an unknown face is like no other."""
    rows, labels = people.descriptors, people.labels
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some, own = rows[start : start + ROWS_AT_ONCE], labels[start : start + ROWS_AT_ONCE]
        later = np.arange(len(rows))[None, :] > np.arange(start, start + len(some))[:, None]
        other = (own[:, None] != labels[None, :]) & later
        yield (some @ rows.T)[other]


def _genuine(people: LabelledPeople, groups: Sequence[NDArray[np.int64]]) -> Iterator[NDArray[np.float32]]:
    """Yield the similarities of all pairs of faces of each person."""
    for group in groups:
        own = people.descriptors[group]
        yield (own @ own.T)[np.triu_indices(len(group), 1)]
