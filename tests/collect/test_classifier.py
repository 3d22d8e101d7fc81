from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.collect import CollectRun, calibrate_rules
from setnet.collect.classifier import SHARPNESS, FaceClassifier, fit_softmax, portrait_trials
from setnet.errors import InvalidInputError
from tests.support.invented_collect import invented_run
from tests.support.invented_photos import face_of


def gallery(people: int, each: int = 3) -> dict[str, np.ndarray]:
    return {f"p{p}": np.stack([face_of(p, k) for k in range(each)]) for p in range(people)}


def test_people_of_the_list_score_high_and_strangers_low() -> None:
    classifier = FaceClassifier.from_portraits(gallery(30), strangers=0.4)
    faces = np.stack([face_of(p, 77) for p in range(60)])
    ranked = classifier.rank(faces, 5)
    assert [each[0].name for each in ranked[:30]] == [f"p{p}" for p in range(30)]
    assert min(each[0].score for each in ranked[:30]) > 0.8
    assert max(each[0].score for each in ranked[30:]) < 0.4
    assert classifier.scores(faces).sum(axis=1).max() <= 1.0


def test_a_portrait_left_out_is_compared_with_the_others_of_its_person_only() -> None:
    people = gallery(3, each=2)
    trials = portrait_trials(people)
    first, second = people["p0"]
    assert trials.similarities[0, 0] == pytest.approx(float(first @ second), abs=1e-6)
    assert np.isinf(trials.as_strangers()[0, 0])


def test_people_of_one_portrait_leave_the_softmax_as_it_is() -> None:
    trials = portrait_trials(gallery(5, each=1))
    assert len(trials) == 0
    assert fit_softmax(trials, 0.4)[0] == SHARPNESS


def test_a_classifier_of_ones_own_is_read_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    good = tmp_path / "own.npz"
    np.savez(good, names=np.array(["a", "b"]), weights=np.eye(2, 4), bias=np.zeros(2))
    scores = FaceClassifier.read(good).scores(np.array([[9, 0, 0, 0]], np.float32))
    assert scores.sum() == pytest.approx(1.0)
    bad = tmp_path / "bad.npz"
    np.savez(bad, names=np.array(["a"]), weights=np.eye(2, 4), bias=np.zeros(2))
    with pytest.raises(InvalidInputError, match="do not fit"):
        FaceClassifier.read(bad)


def run_with_portraits(place: Path, people: int) -> CollectRun:
    run: CollectRun = invented_run(place, people, [])
    return run


def test_calibration_finds_thresholds_of_the_precision_asked_for(tmp_path: Path) -> None:
    found = calibrate_rules(run_with_portraits(tmp_path / "many", 40), precision=0.98)
    assert all(each.suggested_precision >= 0.98 for each in found.thresholds)
    suggested = {each.name: each.suggested for each in found.thresholds}
    assert suggested["unknown_below"] <= suggested["accept_other"]
    assert (found.portraits, found.people) == (120, 40)
    with pytest.raises(InvalidInputError, match="50 are needed"):
        calibrate_rules(run_with_portraits(tmp_path / "few", 5))
