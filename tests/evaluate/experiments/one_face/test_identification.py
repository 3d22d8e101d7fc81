"""Identification and verification of single faces."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.evaluate.methods import Methods
from setnet.evaluate.one_face import identified, roc, run_identify
from setnet.evaluate.people import Halves
from setnet.evaluate.record import Run, mean_and_error


def test_identification(halves: Halves, methods: Methods) -> None:
    gallery = np.eye(12, dtype=np.float32)
    probe = np.array([[0.5, 1.0, *[0.0] * 10]], dtype=np.float32)
    found = identified(gallery, probe, np.array([0]))
    assert {rank: hits.tolist() for rank, hits in found.items()} == {1: [0.0], 5: [100.0], 10: [100.0]}
    same, different = np.array([0.9, 0.4], np.float32), np.linspace(0, 0.5, 101).astype(np.float32)
    assert roc(same, different, [0.01, 0.5]).tolist() == [50.0, 100.0]
    run = Run("identify", {})
    run_identify(run, halves.test, methods, [], repeats=2)
    rates = {key: mean_and_error(v)[0] for key, v in run.rows["descriptor"].values.items()}
    assert 50 < rates["tpir1"] <= rates["tpir5"] <= rates["tpir10"]
    assert rates["tar@0.0001"] <= rates["tar@0.01"]
    draws = run.rows["descriptor"].draws
    assert draws.keys() == rates.keys(), "every figure has its error over people"
    assert np.mean(draws["tar@0.01"]) == pytest.approx(rates["tar@0.01"], abs=3.0)
