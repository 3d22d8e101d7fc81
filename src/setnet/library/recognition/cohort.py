"""The cohort: a sample of a library's faces, which tells how similar strangers are to a person."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from setnet.engine import SetIndex
from setnet.library.recognition.probability import MatchModel, Strangers

FACES = 2048  # of a sample
_COMPARED = 1024  # of these, to see how many people they are
_ALIKE = 1e-4  # two faces that so few strangers' are as similar as are one person's
_LEAST_MEAN = 0.5  # standard deviations below the model's: so low it is for one person in fifty
_CUT = 3.0  # standard deviations above the mean: what is more similar may be the person
# How many people the model's constants count as: means differ more between sources of photos than spreads.
_PRIOR_FOR_MEAN, _PRIOR_FOR_SPREAD = 10.0, 250.0


@dataclass(frozen=True, slots=True, eq=False)
class Cohort:
    """Some faces of a library, how many people they show in effect, and how many faces there are in all.

    The people of one library are more alike than those of another: of one family, one age, one part of the
    world, or in poor light. What strangers' similarities are like is therefore measured where it matters.
    """

    sample: NDArray[np.float32]
    people: float
    faces: int

    @classmethod
    def of(cls, index: SetIndex, faces: int, model: MatchModel) -> Cohort:
        """Return the cohort of an index that has so many faces."""
        sample = index.sample(FACES)
        sample = sample / np.maximum(np.linalg.norm(sample, axis=1, keepdims=True), 1e-12)
        return cls(sample, effective_people(sample, model), max(faces, len(sample)))

    @classmethod
    def of_faces(
        cls, descriptors: NDArray[np.float32], model: MatchModel, faces: int | None = None
    ) -> Cohort:
        """Return the cohort of a library of these descriptors, which are of length 1."""
        sample = evenly(descriptors)
        return cls(sample, effective_people(sample, model), len(descriptors) if faces is None else faces)

    def strangers(self, vector: NDArray[np.floating], examples: int, model: MatchModel) -> Strangers:
        """Return what strangers' similarities to a person are like in this library.

        With few people in it, the model's constants weigh more; and strangers who are less similar than in
        any ordinary library do not make a match sure. Faces that may be the person's are left out, however
        many they are.
        """
        known = model.strangers_to(examples)
        if not len(self.sample):
            return known
        seen = measured(self.sample, vector, known)
        mean = _weighed(seen.mean, self.people, known.mean, _PRIOR_FOR_MEAN)
        mean = max(mean, known.mean - _LEAST_MEAN * known.spread)
        variance = _weighed(seen.spread**2, self.people, known.spread**2, _PRIOR_FOR_SPREAD)
        return Strangers(mean, float(np.sqrt(variance)))


def evenly(rows: NDArray[np.float32], count: int = FACES) -> NDArray[np.float32]:
    """Return so many of the rows, or all there are, evenly spaced."""
    return rows[np.linspace(0, len(rows) - 1, min(count, len(rows))).astype(np.int64)]


def measured(sample: NDArray[np.float32], vector: NDArray[np.floating], known: Strangers) -> Strangers:
    """Return what similarities of a sample's faces are like, without those that may be the person's own.

    `known` says what strangers' are like in general, and is returned where the sample has none.
    """
    seen = sample @ vector.astype(np.float32)
    seen = seen[seen < known.mean + _CUT * known.spread].astype(np.float64)
    return Strangers(float(seen.mean()), float(seen.std())) if len(seen) > 1 else known


def effective_people(sample: NDArray[np.float32], model: MatchModel) -> float:
    """Return how many people faces show in effect: the inverse of the chance that two show the same one.

    Of a thousand faces of which half are one person's, four in effect: their mean is as uncertain as that of
    four people.
    """
    some = sample[:: max(1, -(-len(sample) // _COMPARED))]
    if len(some) < 2:
        return float(len(some))
    alike = some @ some.T >= model.threshold(_ALIKE, model.strangers_to(1))
    np.fill_diagonal(alike, True)
    return float(len(some) ** 2 / np.count_nonzero(alike))


def _weighed(seen: float, people: float, known: float, prior: float) -> float:
    return (people * seen + prior * known) / (people + prior)
