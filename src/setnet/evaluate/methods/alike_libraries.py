"""Libraries of people who look alike: what measuring strangers' similarities in each of them is worth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from setnet.library import Cohort, LabelledFaces, MatchModel, Recogniser, trials

DIRECTIONS = 10
_LEAST_PEOPLE = 50
WAYS = ("measured in each library", "the same for all libraries")


def alike_libraries(
    faces: LabelledFaces, model: MatchModel, count: int, most: int, seed: int = 0
) -> dict[str, dict[str, float]]:
    """Return false matches and recall in libraries of people near to each other, one example each.

    The people are divided into `count` libraries by k-means of their descriptors.
    """
    from scipy.cluster.vq import kmeans2

    centred = faces.descriptors - faces.descriptors.mean(axis=0)
    axes = np.linalg.svd(centred[:: max(1, len(centred) // 3000)], full_matrices=False)[2][:DIRECTIONS]
    _, library = kmeans2(centred @ axes.T, count, seed=seed, minit="++")
    sums = {way: np.zeros(4) for way in WAYS}  # compared, falsely sure, false at all, own faces sure
    own = libraries = 0
    for number in range(count):
        part = _some(faces, library == number)
        if len(part.people()) < _LEAST_PEOPLE:
            continue
        libraries += 1
        cohort = Cohort.of_faces(part.descriptors, model)
        for trial in trials(part, 1, most // count, np.random.default_rng((seed, number)), left=0):
            own += len(trial.genuine)
            here = cohort.strangers(trial.vector, 1, model)
            for way, strangers in zip(WAYS, (here, model.strangers_to(1)), strict=True):
                known = Recogniser.of(model, trial.vector, 1, strangers, cohort.faces)
                sums[way] += [
                    len(trial.strangers),
                    (trial.strangers >= known.sure).sum(),
                    (trial.strangers >= known.maybe).sum(),
                    (trial.genuine >= known.sure).sum(),
                ]
    return {
        way: {
            "libraries": libraries,
            "false_sure": float(1e6 * wrong / compared),
            "false_maybe": float(1e5 * guessed / compared),
            "recall_sure": float(100.0 * found / max(own, 1)),
        }
        for way, (compared, wrong, guessed, found) in sums.items()
        if compared
    }


def _some(faces: LabelledFaces, which: NDArray[np.bool_]) -> LabelledFaces:
    return LabelledFaces(faces.descriptors[which], faces.owner[which])
