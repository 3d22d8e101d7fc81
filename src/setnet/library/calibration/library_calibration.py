"""Fit what similarities mean to a library: to the faces of its named people and groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.library.calibration.match_fitting import fit_match_model
from setnet.library.calibration.match_trials import LabelledFaces, trials
from setnet.library.calibration.stored import match_model_of, model_calibration
from setnet.library.recognition.cohort import Cohort
from setnet.library.recognition.probability import MatchModel
from setnet.library.recognition.recogniser import Recogniser

if TYPE_CHECKING:
    from setnet.library.library import Library

LEAST_PEOPLE = 5  # with two faces or more: fewer say nothing about a library
_TRIALS = 500
Groups = Mapping[str, Sequence[tuple[str, int]]]  # faces of photos, by group


@dataclass(frozen=True, slots=True)
class Effect:
    """What a calibration makes of the faces of known people.

    `sure` and `maybe` are mean thresholds for a person of one example; `recall` is the percentage of their
    other faces that are recognised surely, and `false` how many other people's faces are, of a million.
    """

    sure: float
    maybe: float
    recall: float
    false: float

    def to_dict(self) -> dict[str, float]:
        """Return the numbers as values that JSON can hold."""
        return {
            "sure": round(self.sure, 4),
            "maybe": round(self.maybe, 4),
            "recall": round(self.recall, 2),
            "false_per_million": round(self.false, 3),
        }


@dataclass(frozen=True, slots=True)
class CalibrationReport:
    """A library's calibration before and after, and how many people and faces it was fitted to."""

    people: int
    faces: int
    before: Effect
    after: Effect
    model: MatchModel

    def to_dict(self) -> dict[str, Any]:
        """Return the report as values that JSON can hold."""
        return {
            "people": self.people,
            "faces": self.faces,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "model": self.model.to_dict(),
        }


def calibrate_library(library: Library, groups: Groups | None = None) -> CalibrationReport:
    """Fit the library's own calibration to its people and to groups of faces, and store it."""
    known = labelled_faces(library, groups or {})
    several = len(known.people(2))
    if several < LEAST_PEOPLE:
        raise InvalidInputError(
            f"{several} people of this library have two example faces or more: {LEAST_PEOPLE} are needed to "
            "calibrate it. `setnet people add NAME PHOTO...` adds examples; until then the constants of the "
            "descriptor model are used, which fit most photos"
        )
    before = match_model_of(library.catalog, library.settings)
    prior = model_calibration(library.settings)
    cohort = library.matching.cohort
    after = fit_match_model(known, prior, prior=prior, sample=cohort.sample)
    effects = [effect(known, cohort, model) for model in (before, after)]
    library.store_calibration(after)
    return CalibrationReport(several, len(known.descriptors), effects[0], effects[1], after)


def labelled_faces(library: Library, groups: Groups) -> LabelledFaces:
    """Return the example faces of saved people and the faces of groups, each group a person."""
    rows: list[NDArray[np.float32]] = []
    for person in library.people:
        if person.examples:
            rows.append(library.people.descriptors(person.name))
    for faces in groups.values():
        found = [library.descriptors(photo)[face] for photo, face in faces]
        if found:
            rows.append(np.stack(found))
    if not rows:
        return LabelledFaces(np.zeros((0, library.dim), np.float32), np.zeros(0, np.int64))
    everything = np.concatenate(rows)
    everything = everything / np.maximum(np.linalg.norm(everything, axis=1, keepdims=True), 1e-12)
    return LabelledFaces(everything, np.repeat(np.arange(len(rows)), [len(part) for part in rows]))


def effect(known: LabelledFaces, cohort: Cohort, model: MatchModel) -> Effect:
    """Return what a model makes of known faces, searched among all faces of a library."""
    rng = np.random.default_rng(0)
    thresholds, found = [], []
    wrong = compared = 0
    for trial in trials(known, 1, _TRIALS, rng):
        strangers = cohort.strangers(trial.vector, 1, model)
        recogniser = Recogniser.of(model, trial.vector, 1, strangers, cohort.faces)
        thresholds.append((recogniser.sure, recogniser.maybe))
        found.append(float(np.mean(trial.genuine >= recogniser.sure)))
        wrong += int((trial.strangers >= recogniser.sure).sum())
        compared += len(trial.strangers)
    sure, maybe = np.mean(thresholds, axis=0).tolist()
    return Effect(sure, maybe, 100.0 * float(np.mean(found)), 1e6 * wrong / max(compared, 1))
