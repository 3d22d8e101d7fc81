"""Ways to compare faces with several examples of a person, and which of them help."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from setnet.heads import unit
from setnet.library import LabelledFaces, person_vector

Floats = NDArray[np.float32]
Way = Callable[[Floats, Floats], Floats]  # examples and faces -> the faces' similarities

WAYS: dict[str, Way] = {
    "plain mean": lambda examples, faces: faces @ _mean(examples),
    "weighted mean": lambda examples, faces: faces @ person_vector(examples),
    "nearest example": lambda examples, faces: (faces @ examples.T).max(axis=1),
    "best of mean and nearest": lambda examples, faces: np.maximum(
        faces @ _mean(examples), 0.95 * (faces @ examples.T).max(axis=1)
    ),
    "mean of similarities": lambda examples, faces: faces @ examples.mean(axis=0),
}
RATES = (1e-4, 1e-5)


def recalls(
    faces: LabelledFaces, examples: int, wrong: int, trials: int, rng: np.random.Generator
) -> dict[str, list[float]]:
    """Return, for each way, the percentage of own faces found at each of `RATES` of false matches.

    Of a person's examples, so many are `wrong`: faces of somebody else, whose other faces count as strangers.
    Every trial weighs the same.
    """
    strangers: dict[str, list[Floats]] = {name: [] for name in WAYS}
    own: dict[str, list[Floats]] = {name: [] for name in WAYS}
    compared = 0
    for known, genuine, others in _trials(faces, examples, wrong, trials, rng):
        compared += len(others)
        for name, way in WAYS.items():
            far = way(known, faces.descriptors[others])
            strangers[name].append(far[far > 0.2])
            own[name].append(way(known, faces.descriptors[genuine]))
    return {name: [_recall(own[name], strangers[name], compared, rate) for rate in RATES] for name in WAYS}


def _trials(
    faces: LabelledFaces, examples: int, wrong: int, trials: int, rng: np.random.Generator
) -> Iterator[tuple[Floats, NDArray[np.int64], NDArray[np.int64]]]:
    people = faces.people(examples - wrong + 1)
    for _ in range(max(1, trials // len(people))):
        for rows in people:
            mixed = rng.permutation(rows)
            chosen, genuine = mixed[: examples - wrong], mixed[examples - wrong :][:20]
            others = np.flatnonzero(faces.owner != faces.owner[rows[0]])
            odd = rng.choice(others, wrong, replace=False)
            strangers = np.setdiff1d(others, odd, assume_unique=True)
            yield faces.descriptors[np.concatenate([chosen, odd])], genuine, strangers


def _recall(own: list[Floats], strangers: list[Floats], compared: int, rate: float) -> float:
    far = np.concatenate(strangers)
    count = max(1, round(rate * compared))
    bar = np.partition(far, len(far) - count)[len(far) - count] if count <= len(far) else -1.0
    return float(100.0 * np.mean([np.mean(each >= bar) for each in own]))


def _mean(examples: Floats) -> Floats:
    mean: Floats = unit(examples.mean(axis=0, keepdims=True))[0]
    return mean
