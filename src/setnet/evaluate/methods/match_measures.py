"""How often people are found, and strangers taken for them: sure, maybe, and by the probability given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from setnet.evaluate.methods.match_bounds import by_person, clopper_pearson
from setnet.library import Cohort, LabelledFaces, MatchModel, Recogniser, Trial, trials

Z = np.arange(3.0, 6.51, 0.1)  # where strangers' shares are told, in standard deviations
_BINS = (0.0, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0)
_QUALITY = ("size", "score", "sharpness", "yaw", "pitch", "roll")


@dataclass(frozen=True, eq=False)
class Bands:
    """What trials with one number of examples gave.

    Attributes
    ----------
    person, compared, wrong
        By trial: who it was, strangers compared with them, and those taken for them surely.
    sure, maybe
        Mean thresholds.
    false_maybe
        Share of strangers who are sure or maybe matches.
    recall_sure, recall_maybe
        Percentage of own faces found, every person weighing the same.
    beyond
        Share of strangers beyond each of `Z`.
    """

    examples: int
    person: NDArray[np.int64]
    compared: NDArray[np.float64]
    wrong: NDArray[np.float64]
    sure: float
    maybe: float
    false_maybe: float
    recall_sure: float
    recall_maybe: float
    beyond: NDArray[np.float64]

    def to_dict(self) -> dict[str, object]:
        """Return the numbers as a row's facts."""
        return {
            "examples": self.examples,
            "trials": len(self.person),
            **false_matches([self]),
            "sure": self.sure,
            "maybe": self.maybe,
            "false_maybe": self.false_maybe * 1e5,
            "recall_sure": self.recall_sure,
            "recall_maybe": self.recall_maybe,
            "curve": {"z": Z.tolist(), "seen": self.beyond.tolist()},
        }


def recognised(
    faces: LabelledFaces, model: MatchModel, examples: int, most: int, seed: int = 0, left: int = 1
) -> Iterator[tuple[Trial, Recogniser]]:
    """Yield trials on faces with the recogniser that a library of these faces would make of the examples."""
    rng = np.random.default_rng((seed, examples))
    cohort = Cohort.of_faces(faces.descriptors, model)
    for trial in trials(faces, examples, most, rng, left=left):
        strangers = cohort.strangers(trial.vector, examples, model)
        yield trial, Recogniser.of(model, trial.vector, examples, strangers, cohort.faces)


def bands(faces: LabelledFaces, model: MatchModel, examples: int, most: int, seed: int = 0) -> Bands:
    """Return false matches and recall of the two bands on faces, searched as one library."""
    person, compared, wrong, guessed, beyond = [], [], [], [], np.zeros(len(Z))
    found: dict[int, list[tuple[float, float]]] = {}
    thresholds = []
    for trial, known in recognised(faces, model, examples, most, seed, left=0):
        person.append(trial.person)
        compared.append(len(trial.strangers))
        wrong.append(float((trial.strangers >= known.sure).sum()))
        guessed.append(float((trial.strangers >= known.maybe).sum()))
        z = (trial.strangers - known.strangers.mean) / known.strangers.spread
        beyond += (z[z > Z[0]][:, None] >= Z).sum(axis=0)
        if len(trial.genuine):
            both = float(np.mean(trial.genuine >= known.sure)), float(np.mean(trial.genuine >= known.maybe))
            found.setdefault(trial.person, []).append(both)
        thresholds.append((known.sure, known.maybe))
    recall = 100.0 * np.mean([np.mean(each, axis=0) for each in found.values()], axis=0)
    sure, maybe = np.mean(thresholds, axis=0).tolist()
    total = float(np.sum(compared))
    return Bands(
        examples, np.array(person), np.array(compared, np.float64), np.array(wrong), sure, maybe,
        float(np.sum(guessed)) / total, float(recall[0]), float(recall[1]), beyond / total,
    )  # fmt: skip


def false_matches(parts: Sequence[Bands]) -> dict[str, float]:
    """Return how many strangers of a million were taken for sure, of all parts, with its 95 % bound.

    The bound is the greater of two: that of a bootstrap of people, and Clopper and Pearson's with every
    comparison of a person and a face counted once, however often the person was tried.
    """
    person, compared, wrong = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("person", "compared", "wrong")
    )
    rate = float(wrong.sum() / compared.sum())
    distinct = sum(
        float(part.compared.sum()) * len(set(part.person.tolist())) / len(part.person) for part in parts
    )
    bound = max(clopper_pearson(rate * distinct, distinct), by_person(wrong, compared, person))
    return {"millions": float(compared.sum()) / 1e6, "false_sure": 1e6 * rate, "bound": 1e6 * bound}


def reliability(faces: LabelledFaces, model: MatchModel, examples: int, most: int) -> list[dict[str, float]]:
    """Return, for bins of the probability given, how many matches there are and how many are right."""
    given: list[float] = []
    right: list[bool] = []
    for trial, known in recognised(faces, model, examples, most):
        for similarity, row in zip(trial.genuine.tolist(), trial.genuine_rows.tolist(), strict=True):
            if similarity >= known.maybe:
                given.append(known.probability(similarity, _quality(faces, row)))
                right.append(True)
        for similarity in trial.strangers[trial.strangers >= known.maybe].tolist():
            given.append(known.probability(similarity))
            right.append(False)
    probability, is_right = np.array(given), np.array(right)
    rows = []
    for low, high in pairwise(_BINS):
        here = (probability >= low) & ((probability < high) | (high == 1.0))
        if here.any():
            rows.append(
                {
                    "low": low,
                    "high": high,
                    "matches": int(here.sum()),
                    "given": 100.0 * float(probability[here].mean()),
                    "right": 100.0 * float(is_right[here].mean()),
                }
            )
    return rows


def _quality(faces: LabelledFaces, row: int) -> dict[str, float] | None:
    if faces.quality is None or not np.isfinite(faces.quality[row]).all():
        return None
    return dict(zip(_QUALITY, faces.quality[row].tolist(), strict=True))


def absent(
    faces: LabelledFaces, distractors: NDArray[np.float32], model: MatchModel, examples: int, most: int
) -> dict[str, float]:
    """Return how often the answer for somebody who is not in a library has no sure match, in percent.

    The library has the faces of everybody else and the distractors.
    """
    everything = np.concatenate([faces.descriptors, distractors])
    cohort = Cohort.of_faces(everything, model)
    rng = np.random.default_rng((1, examples))
    sure: list[int] = []
    maybe: list[int] = []
    real: list[float] = []
    own: list[float] = []
    for trial in trials(faces, examples, most, rng):
        strangers = cohort.strangers(trial.vector, examples, model)
        known = Recogniser.of(model, trial.vector, examples, strangers, cohort.faces)
        far = np.concatenate([trial.strangers, distractors @ trial.vector])
        sure.append(int((far >= known.sure).sum()))
        maybe.append(int((far >= known.maybe).sum()))
        real.append(float((trial.strangers >= known.sure).mean()))
        own.append(float((trial.genuine >= known.sure).mean()))
    return {
        "faces": len(everything),
        "searches": len(sure),
        "empty": 100.0 * float(np.mean(np.array(sure) == 0)),
        "false": float(np.mean(sure)),
        "guesses": float(np.mean(maybe)),
        "real": len(everything) * float(np.mean(real)),
        "recall_sure": 100.0 * float(np.mean(own)),
    }
