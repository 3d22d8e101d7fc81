"""Section 5.4: how orthogonal people's descriptors are to each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.bootstrap import DRAWS
from setnet.evaluate.data.labelled_people import LabelledPeople
from setnet.evaluate.experiments.inputs import PAPER_DIFFICULTY, Inputs
from setnet.evaluate.experiments.one_face.single_faces import on_single_faces
from setnet.evaluate.experiments.running import OnProgress
from setnet.evaluate.methods.baselines import Whitening, fit_whitening
from setnet.evaluate.methods.methods import Methods
from setnet.evaluate.report.record import Record, Row, Run
from setnet.heads import unit

Floats = NDArray[np.float32]
MOST_FACES = 100
LEAST_FACES = 2
# Table 6 of the paper, over n = 2622 people in 128 dimensions: n / sqrt(D) = 231.8.


def identity_descriptors(
    rows: Floats, groups: Sequence[NDArray[np.int64]], rng: np.random.Generator
) -> Floats:
    """Return one unit vector per person: the mean of up to 100 of their faces' descriptors."""
    chosen = [g if len(g) <= MOST_FACES else rng.choice(g, MOST_FACES, replace=False) for g in groups]
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


def orthogonality(
    descriptors: Path | None = None,
    *,
    people: Path | None = None,
    difficulty: float = PAPER_DIFFICULTY,
    methods: Sequence[str] | None = None,
    heads: Sequence[str] | None = None,
    repeats: int = 10,
    seed: int = 0,
    json: Path | None = None,
    progress: OnProgress | None = None,
) -> Record:
    """Measure how orthogonal people's descriptors are to each other (section 5.4).

    Parameters are those of `stress`; of ``methods``, only heads count.
    """
    inputs = Inputs(descriptors, difficulty=difficulty, people=people, heads=heads, seed=seed)
    return on_single_faces("orthogonality", run_orthogonality, inputs, methods, repeats, json, progress)


def run_orthogonality(
    run: Run,
    test: LabelledPeople,
    methods: Methods,
    heads: Sequence[str],
    *,
    repeats: int = 10,
    seed: int = 0,
) -> None:
    """Fill ``run``: G_diff of the descriptor and of every head, not whitened and whitened.

    A repeat takes other hundreds of faces of those who have more: where nobody has, repeats are all alike.
    """
    groups = test.groups(LEAST_FACES)
    run.note(people=len(groups), faces=int(sum(map(len, groups))))
    for name in ["descriptor", *heads]:
        if run.has(name):
            continue
        run.say(name)
        vectors = test.descriptors
        train = methods.train.descriptors
        if name != "descriptor":
            aggregator = methods.aggregator(name)
            vectors, train = aggregator.describe(vectors), aggregator.describe(train)
        dim = vectors.shape[1]
        random = len(groups) / np.sqrt(dim)
        # a whitening of thousands of dimensions would need far more faces than there are
        whitening = fit_whitening(train) if 4 * dim < len(train) else None
        values: dict[str, list[float]] = {"plain": [], "plain_ratio": []}
        if whitening is not None:
            values |= {"whitened": [], "whitened_ratio": []}
        draws: dict[str, list[float]] = {}
        for repeat in range(repeats):
            for key, identities in _both(vectors, groups, whitening, (seed, repeat)).items():
                found = gram_difference(identities)
                values[key].append(found)
                values[f"{key}_ratio"].append(found / random)
                if key not in draws:
                    drawn = gram_draws(identities)
                    draws[key] = drawn.round(4).tolist()
                    draws[f"{key}_ratio"] = (drawn / random).round(6).tolist()
        run.add(Row(name, values, {"dim": dim, "random": float(random)}, draws=draws))


def _both(
    vectors: Floats, groups: Sequence[NDArray[np.int64]], whitening: Whitening | None, seed: tuple[int, int]
) -> dict[str, Floats]:
    """Return one descriptor per person, as it is and whitened."""
    found = {"plain": identity_descriptors(vectors, groups, np.random.default_rng(seed))}
    if whitening is not None:
        rng = np.random.default_rng(seed)
        found["whitened"] = identity_descriptors(whitening(vectors), groups, rng)
    return found
