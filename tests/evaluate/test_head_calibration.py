"""A head's (w, b) on a user's own people: chosen by how it ranks."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.methods.head_calibration import calibrate_head
from setnet.learn.data.virtual_people import VirtualPeople
from setnet.sets import Logistic, SetNet

EYE = np.eye(128, dtype=np.float32)


def people(known: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    model = VirtualPeople(np.zeros(128, np.float32), EYE, 0.9 * EYE)
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(known), each)
    return model.faces(rng, model.people(rng, known), who), np.array([f"p{i}" for i in who])


def test_a_spoilt_score_is_mended_without_any_strangers_in_the_file() -> None:
    net = SetNet.load("sface-128d")
    # what likelihood gives: a slope so steep that one certain face outweighs two probable ones
    spoilt = SetNet(net.head.with_logistic(Logistic(60.0, -12.0)))
    fit = calibrate_head(spoilt, *people(60, 4))
    assert fit.after > fit.before + 3
    assert fit.logistic.w < 30


def test_too_few_people_are_counted() -> None:
    with pytest.raises(InvalidInputError, match="9 people have two labelled faces"):
        calibrate_head(SetNet.load("sface-128"), *people(9, 4))
