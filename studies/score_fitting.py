"""Fit what similarities mean to labelled faces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library.person_matcher import evenly, measure_non_matches, person_vector
from setnet.library.score_calibration import NonMatchScores, ScoreCalibration

Descriptors = NDArray[np.float32]
_MAX_GENUINE = 20  # faces of one person that a trial looks for


@dataclass(frozen=True, eq=False)
class LabelledFaces:
    """Descriptors of length 1 and whose each is.

    Attributes
    ----------
    quality
        (n, 6) numbers of `setnet.faces.Quality`, NaN where they are not known.
    shown
        (n, dim) descriptors of other pictures of the same faces, from which examples are taken.
    """

    descriptors: Descriptors
    owner: NDArray[np.int64]
    quality: Descriptors | None = None
    shown: Descriptors | None = None

    def people(self, min_faces: int = 1) -> list[NDArray[np.int64]]:
        """Return the rows of each person with so many faces or more."""
        order = np.argsort(self.owner, kind="stable")
        cuts = np.flatnonzero(np.diff(self.owner[order])) + 1
        return [rows for rows in np.split(order, cuts) if len(rows) >= min_faces]


@dataclass(frozen=True, eq=False)
class Trial:
    """One person, known by some examples, compared with faces.

    Attributes
    ----------
    person
        The owner's number.
    vector
        What faces were compared with.
    genuine, genuine_rows
        Similarities of the person's other faces, and their rows.
    non_matches
        Similarities of everybody else's faces.
    """

    person: int
    examples: int
    vector: Descriptors
    genuine: Descriptors
    genuine_rows: NDArray[np.int64]
    non_matches: Descriptors


def trials(
    faces: LabelledFaces,
    examples: int,
    max_trials: int,
    rng: np.random.Generator,
    left: int = 1,
) -> Iterator[Trial]:
    """Yield about so many trials, each person once in turn and again while there is room.

    Taken are people with so many faces as examples and `left` more to look for.
    """
    people = faces.people(examples + left)
    if not people:
        return
    shown = faces.descriptors if faces.shown is None else faces.shown
    for _ in range(max(1, max_trials // len(people))):
        for rows in people:
            mixed = rng.permutation(rows)
            vector = person_vector(shown[mixed[:examples]])
            similarity = faces.descriptors @ vector
            person = int(faces.owner[rows[0]])
            wanted = mixed[examples : examples + _MAX_GENUINE]
            others = similarity[faces.owner != person]
            yield Trial(person, examples, vector, similarity[wanted], wanted, others)


EXAMPLES = (1, 2, 3, 5, 10)
MIN_PEOPLE = 10  # with two faces or more
_TRIALS = 1000  # for each number of examples
_BOOTSTRAPS = 400
_SURE = 0.95
_QUALITY = ("size", "score", "sharpness", "yaw", "pitch", "roll")

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class _Measured:
    """What the trials of one number of examples gave."""

    examples: int
    non_matches: NonMatchScores
    person: NDArray[np.int64]
    compared: Floats  # faces of others, by trial
    beyond: Floats  # of these, in the tail
    excess: Floats  # by how much, in standard deviations, added up
    genuine: list[Floats]
    qualities: list[NDArray[np.float32] | None]


def fit_score_calibration(
    faces: LabelledFaces,
    start: ScoreCalibration,
    degraded: Sequence[LabelledFaces] = (),
    seed: int = 0,
) -> ScoreCalibration:
    """Return the model fitted to labelled faces.

    Its tail is the upper 95 % bound of what was seen, people drawn again: a tail that is too heavy costs some
    recall, one that is too light costs false matches.

    Parameters
    ----------
    faces
        Faces of photos as they are.
    start
        Any model of these descriptors; where its tail begins is kept, and what faces cannot tell.
    degraded
        Faces of worse copies of the photos: with `faces`, they tell what quality costs.
    """
    if (several := len(faces.people(2))) < MIN_PEOPLE:
        raise InvalidInputError(
            f"{several} people have two labelled faces or more: {MIN_PEOPLE} are needed to fit what "
            "similarities mean"
        )
    found = [_measure(faces, n, start, seed) for n in EXAMPLES if faces.people(n + 1)]
    worse = [_measure(part, n, start, seed) for part in degraded for n in EXAMPLES if part.people(n + 1)]
    rate, scale = _tail(found, seed)
    one, many = _approach(found, [m.non_matches.mean for m in found])
    spread = float(np.mean([m.non_matches.spread for m in found]))
    model = replace(
        start, tail_rate=rate, tail_scale=scale, non_match=one, non_match_many=many, spread=spread
    )
    return _with_genuine(_with_quality(model, [*found, *worse]), found)


def _measure(part: LabelledFaces, examples: int, model: ScoreCalibration, seed: int) -> _Measured:
    rng = np.random.default_rng((seed, examples))
    sample = evenly(part.descriptors)
    known = model.non_match_scores(examples)
    done: list[tuple[Trial, NonMatchScores, Floats]] = []
    for trial in trials(part, examples, _TRIALS, rng):
        here = measure_non_matches(sample, trial.vector, known)
        z = (trial.non_matches - here.mean) / here.spread
        done.append((trial, here, z[z > model.tail_from].astype(np.float64) - model.tail_from))
    return _Measured(
        examples,
        NonMatchScores(
            float(np.mean([here.mean for _, here, _ in done])),
            float(np.mean([here.spread for _, here, _ in done])),
        ),
        np.array([trial.person for trial, _, _ in done]),
        np.array([len(trial.non_matches) for trial, _, _ in done], np.float64),
        np.array([len(over) for _, _, over in done], np.float64),
        np.array([over.sum() for _, _, over in done]),
        [trial.genuine.astype(np.float64) for trial, _, _ in done],
        [None if part.quality is None else part.quality[trial.genuine_rows] for trial, _, _ in done],
    )


def _tail(found: Sequence[_Measured], seed: int) -> tuple[float, float]:
    """Return share and scale of the tail: the mean over numbers of examples, each weighing the same."""
    rng = np.random.default_rng((seed, 1))
    rates, scales = [], []
    for measured_ in found:
        people, owner = np.unique(measured_.person, return_inverse=True)
        sums = np.stack(
            [np.bincount(owner, each) for each in (measured_.compared, measured_.beyond, measured_.excess)]
        )
        drawn = sums[:, rng.integers(0, len(people), (_BOOTSTRAPS, len(people)))].sum(axis=2)
        rates.append(drawn[1] / drawn[0])
        scales.append(drawn[2] / np.maximum(drawn[1], 1.0))
    return tuple(float(np.quantile(np.mean(each, axis=0), _SURE)) for each in (rates, scales))  # type: ignore[return-value]


def _with_quality(model: ScoreCalibration, found: Sequence[_Measured]) -> ScoreCalibration:
    """Return the model with the effect of size, sharpness and turn on the similarity of own faces."""
    best: dict[int, float] = {}  # of all sources, by the number of examples
    for m in found:
        best[m.examples] = max(best.get(m.examples, 0.0), float(np.mean(np.concatenate(m.genuine))))
    known = [
        (np.log(np.maximum(s / best[m.examples], 0.05)), q)
        for m in found
        for s, q in zip(m.genuine, m.qualities, strict=True)
        if q is not None and len(s)
    ]
    known = [(s[there], q[there]) for s, q in known if (there := np.isfinite(q).all(axis=1)).any()]
    if not known:
        return model
    faces = np.concatenate([q for _, q in known])
    costs = np.array([model.costs(dict(zip(_QUALITY, row, strict=True))) for row in faces.tolist()])
    table = np.column_stack([np.ones(len(costs)), -costs])
    weights, *_ = np.linalg.lstsq(table, np.concatenate([s for s, _ in known]), rcond=None)
    small, blurred, turned, doubtful = np.maximum(weights[1:], 0.0).tolist()
    return replace(model, small=small, blurred=blurred, turned=turned, doubtful=doubtful)


def _with_genuine(model: ScoreCalibration, found: Sequence[_Measured]) -> ScoreCalibration:
    """Return the model with mean and spread of own faces' similarities, and the share that strays."""
    means, spreads, strays = [], [], []
    for m in found:
        rows = [
            s / _qualities(model, q, len(s)) for s, q in zip(m.genuine, m.qualities, strict=True) if len(s)
        ]
        weights = np.concatenate([np.full(len(s), 1.0 / len(s)) for s in rows])
        values = np.concatenate(rows)
        middle, low = _quantile(values, weights, 0.5), _quantile(values, weights, 0.1587)
        means.append(middle)
        spreads.append(middle - low)
        strays.append(float(weights[values < 0.7 * middle].sum() / weights.sum()))
    one, many = _approach(found, means)
    spread, spread_many = _approach(found, spreads)
    return replace(
        model,
        genuine=one,
        genuine_many=many,
        genuine_spread=max(spread, 0.01),
        genuine_spread_many=max(spread_many, 0.01),
        stray=min(max(float(np.mean(strays)), 0.005), 0.2),
    )


def _qualities(model: ScoreCalibration, rows: NDArray[np.float32] | None, count: int) -> Floats:
    if rows is None:
        return np.ones(count)
    found = [model.quality(dict(zip(_QUALITY, row, strict=True))) for row in np.nan_to_num(rows).tolist()]
    return np.where(np.isfinite(rows).all(axis=1), found, 1.0)


def _approach(found: Sequence[_Measured], values: Sequence[float]) -> tuple[float, float]:
    """Return the value at one example and at many, of values that approach a limit as 1 / n."""
    share = np.array([1.0 / m.examples for m in found])
    if len(set(share.tolist())) == 1:
        return float(np.mean(values)), float(np.mean(values))
    slope, limit = np.polyfit(share, np.asarray(values, np.float64), 1)
    return float(limit + slope), float(limit)


def _quantile(values: Floats, weights: Floats, share: float) -> float:
    order = np.argsort(values)
    place = np.searchsorted(np.cumsum(weights[order]), share * weights.sum())
    return float(values[order[min(int(place), len(values) - 1)]])
