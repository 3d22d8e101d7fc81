"""Constants fitted to labelled faces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from setnet.errors import InvalidInputError
from setnet.evaluate.people import LFW_LIKE
from setnet.faces.settings import load_calibration
from setnet.library.person_matcher import BackgroundSample
from setnet.library.score_calibration import ScoreCalibration
from setnet.train import VirtualPeople
from studies.score_fitting import LabelledFaces, fit_score_calibration

SFACE = ScoreCalibration.of(load_calibration("sface", "match"))


def virtual(people: int, each: int, seed: int = 0, difficulty: float = 1.0) -> LabelledFaces:
    rng = np.random.default_rng(seed)
    model = VirtualPeople.load(LFW_LIKE).harder(difficulty)
    owner = np.repeat(np.arange(people), each)
    return LabelledFaces(model.faces(rng, model.people(rng, people), owner), owner)


def test_what_is_fitted_holds_for_other_people() -> None:
    model = fit_score_calibration(virtual(600, 5), replace(SFACE, genuine=0.5, non_match=0.08, spread=0.1))
    others = virtual(1500, 1, seed=1).descriptors
    pairs = (others @ others.T)[np.triu_indices(1500, 1)]
    assert model.non_match == pytest.approx(float(pairs.mean()), abs=0.01)
    assert model.non_match < model.non_match_many
    assert model.genuine < model.genuine_many
    assert model.genuine_spread > model.genuine_spread_many
    background = BackgroundSample.of_faces(others, model)
    for rate in (1e-4, 1e-5):
        bars = [model.threshold(rate, background.non_match_scores(face, 1, model)) for face in others]
        reached = (others @ others.T >= np.array(bars)[:, None]) & ~np.eye(1500, dtype=bool)
        assert 0.1 * rate < reached.mean() < 1.6 * rate


def test_harder_photos_have_lower_similarities() -> None:
    easy, hard = (fit_score_calibration(virtual(300, 4, difficulty=d), SFACE) for d in (0.9, 1.4))
    assert hard.genuine < easy.genuine - 0.05


def test_worse_copies_tell_what_quality_costs() -> None:
    faces = virtual(200, 4)
    rng = np.random.default_rng(5)
    blur = rng.uniform(0.0, 1.0, len(faces.owner))
    noise = rng.normal(size=faces.descriptors.shape) / np.sqrt(128)
    worse = faces.descriptors + 0.8 * blur[:, None] * noise
    worse = (worse / np.linalg.norm(worse, axis=1, keepdims=True)).astype(np.float32)

    def quality(sharpness: Any) -> NDArray[np.float32]:
        rows = np.tile(np.array([112.0, 1.0, 0.2, 0.0, 0.0, 0.0], np.float32), (len(faces.owner), 1))
        rows[:, 2] = sharpness
        return rows

    plain = replace(faces, quality=quality(0.2))
    copies = LabelledFaces(worse, faces.owner, quality(0.2 * (1 - blur)), shown=faces.descriptors)
    model = fit_score_calibration(plain, replace(SFACE, blurred=0.0), [copies])
    assert 0.15 < model.blurred < 0.4
    assert model.small == model.turned == 0.0, "nothing was small or turned"
    unknown = replace(copies, quality=np.full((len(faces.owner), 6), np.nan, np.float32))
    assert fit_score_calibration(faces, SFACE, [unknown]).blurred == SFACE.blurred


def test_too_few_people_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="4 people have two labelled faces or more: 10 are needed"):
        fit_score_calibration(virtual(4, 3), SFACE)
