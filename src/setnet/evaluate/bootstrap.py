"""How far a mean over queries would move had other people, and other worlds, been drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Groups = Sequence[Sequence[int]] | NDArray[np.int64]  # the people of each query
DRAWS = 200


@dataclass(frozen=True)
class Measured:
    """Measures of one method: the mean over queries in every repeat, and in resamples of the people."""

    values: dict[str, list[float]]
    draws: dict[str, list[float]]

    @classmethod
    def of(cls, found: Mapping[str, Sequence[Sequence[float]]], people: Groups) -> Measured:
        """Return both from the value of every query in every repeat; `people` are those of each query."""
        values = {key: np.mean(repeats, axis=1).tolist() for key, repeats in found.items()}
        draws = {
            key: people_draws([np.mean(repeats, axis=0)], [people]).round(4).tolist()
            for key, repeats in found.items()
        }
        return cls(values, draws)


def people_draws(values: Sequence[Floats], people: Sequence[Groups]) -> Floats:
    """Return the mean of `values` in `DRAWS` resamples of worlds and, in each, of its people.

    A query for several people counts as often as all of them were drawn: queries that share a person rise
    and fall together, which a bootstrap over queries would take for independent evidence. The same worlds
    and queries are resampled alike, so that the draws of two methods are paired.

    Parameters
    ----------
    values
        For each world, one value per query.
    people
        For each world, the people of each query.

    Examples
    --------
    >>> draws = people_draws([np.array([1.0, 3.0, 5.0, 7.0])], [[(0, 1), (2, 3), (4, 5), (6, 7)]])
    >>> len(draws), bool(abs(draws.mean() - 4.0) < 0.3), bool(draws.std() > 0.5)
    (200, True, True)
    """
    worlds = len(values)
    rng = np.random.default_rng(0)
    chosen = rng.integers(worlds, size=(DRAWS, worlds))
    means = np.stack([_resampled(one, who, worlds, rng) for one, who in zip(values, people, strict=True)])
    rows, places = np.indices(chosen.shape)
    drawn: Floats = means[chosen, rows, places].mean(axis=1)
    return drawn


def _resampled(values: Floats, people: Groups, times: int, rng: np.random.Generator) -> Floats:
    """Return (DRAWS, times) means of a world's values, its people drawn anew for each."""
    members = [np.asarray(query).tolist() for query in people]
    known = sorted({person for query in members for person in query})
    place = {person: number for number, person in enumerate(known)}
    counts = rng.multinomial(len(known), np.full(len(known), 1 / len(known)), size=DRAWS * times)
    weights = np.stack([counts[:, [place[p] for p in query]].prod(axis=1) for query in members], axis=1)
    total = weights.sum(axis=1)
    means = np.where(total > 0, weights @ values / np.maximum(total, 1), values.mean())
    return np.asarray(means.reshape(DRAWS, times))
