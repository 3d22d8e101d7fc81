"""Sets of one face: how orthogonal descriptors are (section 5.4), and identification by them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.inputs import PAPER_DIFFICULTY, Inputs, OnProgress, running
from setnet.evaluate.measures import DRAWS, match_rate_draws, people_draws
from setnet.evaluate.methods import Methods
from setnet.evaluate.people import LabelledPeople, similarities
from setnet.evaluate.record import Record, Row, Run
from setnet.heads import unit
from setnet.heads.whitening import Whitening, fit_whitening


def on_single_faces(
    experiment: str,
    fill: Callable[..., None],
    inputs: Inputs,
    methods: Sequence[str] | None,
    repeats: int,
    json: Path | None,
    progress: OnProgress | None,
) -> Record:
    """Let ``fill`` add the rows of the descriptor and of the heads among ``methods`` to a run."""
    halves = inputs.halves()
    fitted = inputs.methods(halves)
    names = fitted.chosen_heads(methods)
    settings = inputs.people_settings() | {"repeats": repeats} | inputs.head_settings()
    with running(experiment, settings, json, progress, len(names) + 1) as run:
        run.note(world=halves.name)
        fill(run, halves.test, fitted, names, repeats=repeats, seed=inputs.seed)
    return run.record()


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


RANKS = (1, 5, 10)
FALSE_ACCEPT_RATES = (1e-4, 1e-3, 1e-2)
CURVE = np.logspace(-5, 0, 61).tolist()


def identified(gallery: Floats, probes: Floats, truth: NDArray[np.int64]) -> dict[int, NDArray[np.float64]]:
    """Return for each probe 100 where its person is among the first so many of the gallery, else 0.

    >>> eye = np.eye(3, dtype=np.float32)
    >>> identified(eye, eye, np.array([0, 1, 0]))[1].tolist()
    [100.0, 100.0, 0.0]
    """
    sims = probes @ gallery.T
    own = sims[np.arange(len(probes)), truth]
    place = (sims > own[:, None]).sum(axis=1)
    return {rank: 100.0 * (place < rank) for rank in RANKS}


def roc(same: Floats, different: Floats, rates: Sequence[float]) -> NDArray[np.float64]:
    """Return the true accept rate (genuine pairs, in percent) at each false accept rate (impostor pairs)."""
    bars = np.quantile(different, 1.0 - np.asarray(rates, np.float64))
    accepted: NDArray[np.float64] = 100.0 * (same[None, :] > bars[:, None]).mean(axis=1)
    return accepted


def identify(
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
    """Measure identification and verification of single faces by the descriptor and by every head.

    Parameters are those of `stress`; of ``methods``, only heads count.
    """
    inputs = Inputs(descriptors, difficulty=difficulty, people=people, heads=heads, seed=seed)
    return on_single_faces("identify", run_identify, inputs, methods, repeats, json, progress)


def run_identify(
    run: Run,
    test: LabelledPeople,
    methods: Methods,
    heads: Sequence[str],
    *,
    repeats: int = 10,
    seed: int = 0,
) -> None:
    """Fill ``run``: identification rates and verification, for the descriptor, whitened, and every head.

    In each repeat a random half of a person's faces make their entry in the gallery (the mean), the other
    half are probes.
    """
    groups = test.groups(2)
    if len(groups) < 2:
        raise InvalidInputError("identification needs two people or more with two faces each")
    names, owner = np.unique(test.labels, return_inverse=True)
    owner = np.where(names[owner] == "", -1, owner)
    run.note(people=len(groups), faces=int(sum(map(len, groups))))
    single = ["descriptor", "descriptor +W"] if methods.whitens else ["descriptor"]
    for name in [*single, *heads]:
        if run.has(name):
            continue
        run.say(name)
        if name.startswith("descriptor"):
            vectors = methods.whitening(test.descriptors) if name.endswith("+W") else test.descriptors
        else:
            vectors = methods.aggregator(name).describe(test.descriptors)
        values: dict[str, list[float]] = {}
        draws: dict[str, list[float]] = {}
        curves = []
        for repeat in range(repeats):
            rng = np.random.default_rng((seed, repeat))
            truth, found = _one_repeat(vectors, groups, rng)
            for rank, hits in found.items():
                values.setdefault(f"tpir{rank}", []).append(float(hits.mean()))
                if not repeat:
                    drawn = people_draws([hits], [truth[:, None]])
                    draws[f"tpir{rank}"] = drawn.round(4).tolist()
            pairs = similarities(vectors, owner, rng)
            accepted = roc(pairs.same, pairs.different, FALSE_ACCEPT_RATES)
            for far, rate in zip(FALSE_ACCEPT_RATES, accepted, strict=True):
                values.setdefault(f"tar@{far:g}", []).append(float(rate))
            curves.append(roc(pairs.same, pairs.different, CURVE))
        bars = np.quantile(pairs.different, 1.0 - np.asarray(FALSE_ACCEPT_RATES))
        for far, drawn in zip(FALSE_ACCEPT_RATES, _accepted_draws(vectors, groups, bars), strict=True):
            draws[f"tar@{far:g}"] = drawn.round(4).tolist()
        curve = {"far": CURVE, "tar": np.mean(curves, axis=0).tolist()}
        run.add(Row(name, values, {"dim": int(vectors.shape[1]), "curve": curve}, draws=draws))


def _accepted_draws(
    vectors: Floats, groups: Sequence[NDArray[np.int64]], bars: NDArray[np.floating]
) -> NDArray[np.float64]:
    """Return (bars, draws): the share of genuine pairs accepted, every person counting alike."""
    pairs = [(vectors[rows] @ vectors[rows].T)[np.triu_indices(len(rows), 1)] for rows in groups]
    return match_rate_draws(np.array([[100.0 * (own > bar).mean() for own in pairs] for bar in bars]))


def _one_repeat(
    vectors: Floats, groups: Sequence[NDArray[np.int64]], rng: np.random.Generator
) -> tuple[NDArray[np.int64], dict[int, NDArray[np.float64]]]:
    """Return whose face each probe is, and whether it was identified within each rank."""
    gallery, probes, truth = [], [], []
    for person, group in enumerate(groups):
        rows = rng.permutation(group)
        half = (len(rows) + 1) // 2
        gallery.append(vectors[rows[:half]].mean(axis=0))
        probes.append(rows[half:])
        truth.append(np.full(len(rows) - half, person))
    whose = np.concatenate(truth)
    return whose, identified(unit(np.stack(gallery)), unit(vectors[np.concatenate(probes)]), whose)
