from __future__ import annotations

import numpy as np
import pytest

from setnet.collect.classifier import SHARPNESS, FaceClassifier, fit_softmax, portrait_trials
from tests.support.invented_photos import face_of


def gallery(people: int, each: int = 3) -> dict[str, np.ndarray]:
    return {f"p{p}": np.stack([face_of(p, k) for k in range(each)]) for p in range(people)}


def test_people_of_the_list_score_high_and_others_low() -> None:
    classifier = FaceClassifier.from_portraits(gallery(30))
    faces = np.stack([face_of(p, 77) for p in range(60)])
    ranked = classifier.rank(faces, 5)
    assert [each[0].name for each in ranked[:30]] == [f"p{p}" for p in range(30)]
    assert min(each[0].score for each in ranked[:30]) > 0.8
    assert max(each[0].score for each in ranked[30:]) < 0.4
    assert classifier.scores(faces).sum(axis=1).max() <= 1.0


def test_a_portrait_left_out_is_compared_with_the_others_of_its_person_only() -> None:
    people = gallery(3, each=2)
    similarities, own = portrait_trials(people)
    first, second = people["p0"]
    assert own[0] == 0
    assert similarities[0, 0] == pytest.approx(float(first @ second), abs=1e-6)


def test_people_of_one_portrait_leave_the_softmax_as_it_is() -> None:
    similarities, own = portrait_trials(gallery(5, each=1))
    assert len(own) == 0
    assert fit_softmax(similarities, own)[0] == SHARPNESS
