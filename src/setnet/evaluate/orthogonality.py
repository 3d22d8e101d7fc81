"""Section 5.4: how orthogonal people's descriptors are to each other, whitened and not (table 6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.measures import DRAWS
from setnet.evaluate.record import Record, Row, Run
from setnet.evaluate.settings import MethodSettings, experiment
from setnet.evaluate.tables import CAPTION, Column, Table, result_table
from setnet.heads import unit
from setnet.heads.whitening import Whitening, fit_whitening

TITLE = "Orthogonality (section 5.4)"

Floats = NDArray[np.float32]
MAX_FACES = 100


def identity_descriptors(
    rows: Floats, groups: Sequence[NDArray[np.int64]], rng: np.random.Generator
) -> Floats:
    """Return one unit vector per person: the mean of up to 100 of their faces' descriptors."""
    chosen = [g if len(g) <= MAX_FACES else rng.choice(g, MAX_FACES, replace=False) for g in groups]
    return unit(np.stack([rows[g].mean(axis=0) for g in chosen]))


def gram_difference(identities: NDArray[np.floating]) -> float:
    """Return ||G - I||_F (eq. 4): G the Gram matrix after mean subtraction and re-normalisation.

    >>> round(gram_difference(np.array([[1.0, 0.0], [-1.0, 0.0]])), 3)
    1.414
    """
    centred = _centred(identities)
    # the squares of the n x n Gram matrix add up to those of the D x D one: no large matrix
    squares = float(((centred.T @ centred) ** 2).sum())
    return float(np.sqrt(max(0.0, squares - len(centred))))


def gram_draws(identities: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return ||G - I||_F in resamples of the people; pairs of a person drawn twice do not count.

    >>> gram_draws(np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])).shape
    (200,)
    """
    squares = np.square(_centred(identities) @ _centred(identities).T)
    np.fill_diagonal(squares, 0.0)
    people = len(squares)
    counts = np.random.default_rng(0).multinomial(people, np.full(people, 1 / people), size=DRAWS)
    pairs = people**2 - np.square(counts).sum(axis=1)
    totals = np.einsum("dp,dp->d", counts @ squares, counts)
    drawn: NDArray[np.float64] = np.sqrt(totals * people * (people - 1) / np.maximum(pairs, 1))
    return drawn


def _centred(identities: NDArray[np.floating]) -> NDArray[np.float64]:
    centred = np.asarray(identities, np.float64)
    centred = centred - centred.mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=1, keepdims=True), 1e-30)
    return np.asarray(centred)


@dataclass(frozen=True, kw_only=True)
class Settings(MethodSettings):
    """Section 5.4: how orthogonal people's descriptors are, whitened and not."""


@experiment("orthogonality")
def run(run: Run, settings: Settings) -> None:
    """Measure G_diff of the descriptor and of every head, not whitened and whitened.

    A repeat takes other hundreds of faces of those who have more: where nobody has, repeats are all alike.
    """
    split = settings.train_test_split()
    methods = settings.fitted_methods(split)
    heads = methods.chosen_heads(settings.methods)
    groups = split.test.groups(2)
    run.total = len(heads) + 1
    run.note(world=split.name, people=len(groups), faces=int(sum(map(len, groups))))
    for name in ["descriptor", *heads]:
        if run.has(name):
            continue
        run.say(name)
        vectors, train = split.test.descriptors, split.train.descriptors
        if name != "descriptor":
            aggregator = methods.aggregator(name)
            vectors, train = aggregator.describe(vectors), aggregator.describe(train)
        dim = vectors.shape[1]
        random = float(len(groups) / np.sqrt(dim))
        # a whitening of thousands of dimensions would need far more faces than there are
        whitening = fit_whitening(train) if 4 * dim < len(train) else None
        values: dict[str, list[float]] = {"plain": [], "plain_ratio": []}
        if whitening is not None:
            values |= {"whitened": [], "whitened_ratio": []}
        draws: dict[str, list[float]] = {}
        for repeat in range(settings.repeats):
            for key, identities in _both(vectors, groups, whitening, (settings.seed, repeat)).items():
                found = gram_difference(identities)
                values[key].append(found)
                values[f"{key}_ratio"].append(found / random)
                if key not in draws:
                    drawn = gram_draws(identities)
                    draws[key] = drawn.round(4).tolist()
                    draws[f"{key}_ratio"] = (drawn / random).round(6).tolist()
        run.add(Row(name, values, {"dim": dim, "random": random}, draws=draws))


def _both(
    vectors: Floats, groups: Sequence[NDArray[np.int64]], whitening: Whitening | None, seed: tuple[int, int]
) -> dict[str, Floats]:
    """Return one descriptor per person, as it is and whitened."""
    found = {"plain": identity_descriptors(vectors, groups, np.random.default_rng(seed))}
    if whitening is not None:
        rng = np.random.default_rng(seed)
        found["whitened"] = identity_descriptors(whitening(vectors), groups, rng)
    return found


def tables(record: Record) -> list[Table]:
    """Return the table of all rows."""
    columns = [
        Column("dim", "D", fact=True),
        Column("random", "n / sqrt(D)", fact=True),
        Column("plain", "G_diff", lower=True),
        Column("whitened", "G_diff whitened", lower=True),
        Column("plain_ratio", "ratio", lower=True, digits=2),
        Column("whitened_ratio", "ratio whitened", lower=True, digits=2),
    ]
    people = record.extra.get("people")
    note = f"n = {people} people. Ratio: G_diff over n / sqrt(D), the value of random directions. " + CAPTION
    return [result_table("Orthogonality of people's descriptors", record.rows, columns, note)]
