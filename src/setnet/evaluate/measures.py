"""Measures of rankings, of groups and of verification, and their errors by resampling people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from setnet.errors import InvalidInputError

NEVER = 1000.0  # rank given to a first full match that is not among the hits


def dcg(relevance: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return DCG@n: the sum of (2^rel(i) - 1) / log2(i + 1) over ranks i = 1..n (Jarvelin, Kekalainen 2002).

    `relevance` (..., R) is in ranked order, best rank first; ranks past R count as irrelevant.
    """
    gains = np.exp2(np.asarray(relevance, dtype=np.float64)[..., :n]) - 1.0
    discounts = 1.0 / np.log2(np.arange(2, gains.shape[-1] + 2))
    total: NDArray[np.float64] = gains @ discounts
    return total


def ndcg(ranked: ArrayLike, relevance: ArrayLike, n: int) -> NDArray[np.float64]:
    """Return nDCG@n in percent: DCG of the ranking over DCG of the ideal ranking.

    Parameters
    ----------
    ranked
        (..., R) relevance of the retrieved items in ranked order: how many queried people each holds.
    relevance
        (..., N) relevance of all items, in any order: the ground truth.

    Examples
    --------
    >>> float(ndcg([2, 1, 0], [0, 1, 2, 0], n=10))
    100.0
    >>> round(float(ndcg([1, 2, 0], [0, 1, 2, 0], n=10)), 2)
    79.67
    """
    truth = np.asarray(relevance)
    keep = min(n, truth.shape[-1])
    ideal = dcg(-np.sort(np.partition(-truth, keep - 1, axis=-1)[..., :keep], axis=-1), n)
    if not (ideal > 0).all():
        raise InvalidInputError("nDCG needs at least one relevant item for every query")
    return 100.0 * dcg(ranked, n) / ideal


def full_match_recall(ranked: ArrayLike, relevance: ArrayLike, people: int, n: int) -> NDArray[np.float64]:
    """Return the percentage of items with all ``people`` that are among the first n (at most n can be)."""
    found = (np.asarray(ranked)[..., :n] >= people).sum(axis=-1)
    there = (np.asarray(relevance) >= people).sum(axis=-1)
    share: NDArray[np.float64] = 100.0 * found / np.maximum(np.minimum(there, n), 1)
    return share


def first_full_match(ranked: ArrayLike, people: int) -> NDArray[np.float64]:
    """Return the rank (from 1) of the first item with all ``people``; infinity if there is none."""
    full = np.asarray(ranked) >= people
    rank = full.argmax(axis=-1) + 1.0
    return np.where(full.any(axis=-1), rank, np.inf)


Item = TypeVar("Item")


def ranking_measures(found: Sequence[Item], truth: Mapping[Item, int], people: int) -> dict[str, float]:
    """Return nDCG@10, nDCG@30, full matches among 30 and the rank of the first, of one ranking.

    `truth` says how many of the query's people each item holds; items that hold none may be left out.
    """
    ranked = np.array([*(truth.get(item, 0) for item in found), 0])  # an empty ranking has measures too
    ideal = np.array(sorted(truth.values(), reverse=True))
    measures = {f"ndcg{n}": 100.0 * float(dcg(ranked, n) / dcg(ideal, n)) for n in (10, 30)}
    measures["recall30"] = float(full_match_recall(ranked, ideal, people, 30))
    measures["first"] = min(float(first_full_match(ranked, people)), NEVER)
    return measures


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
    and queries are resampled alike, so that the draws of two methods are paired. For each world, `values` has
    one value per query, and `people` those of each query.

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
    """Return (DRAWS, times) means of a world's values, its people drawn again for each."""
    members = [np.asarray(query).tolist() for query in people]
    known = sorted({person for query in members for person in query})
    place = {person: number for number, person in enumerate(known)}
    counts = rng.multinomial(len(known), np.full(len(known), 1 / len(known)), size=DRAWS * times)
    weights = np.stack([counts[:, [place[p] for p in query]].prod(axis=1) for query in members], axis=1)
    total = weights.sum(axis=1)
    means = np.where(total > 0, weights @ values / np.maximum(total, 1), values.mean())
    return np.asarray(means.reshape(DRAWS, times))


def match_rate_draws(accepted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (rates, draws): the mean over people in resamples of them; thresholds stay as they are."""
    everyone = [(number,) for number in range(accepted.shape[1])]
    return np.array([people_draws([each], [everyone]) for each in accepted])
