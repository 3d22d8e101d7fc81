"""Identification and verification of single faces."""

from __future__ import annotations

import numpy as np
import pytest

from setnet.evaluate import identify
from setnet.evaluate.identify import identify_probes, roc
from setnet.evaluate.record import mean_and_error


@pytest.mark.usefixtures("toy_people")
def test_identification() -> None:
    gallery = np.eye(12, dtype=np.float32)
    probe = np.array([[0.5, 1.0, *[0.0] * 10]], dtype=np.float32)
    found = identify_probes(gallery, probe, np.array([0]))
    assert {rank: hits.tolist() for rank, hits in found.items()} == {1: [0.0], 5: [100.0], 10: [100.0]}
    same, different = np.array([0.9, 0.4], np.float32), np.linspace(0, 0.5, 101).astype(np.float32)
    assert roc(same, different, [0.01, 0.5]).tolist() == [50.0, 100.0]
    record = identify.run(identify.Settings(methods=["mean"], repeats=2))
    rates = {key: mean_and_error(v)[0] for key, v in record.row("descriptor").values.items()}
    assert 50 < rates["tpir1"] <= rates["tpir5"] <= rates["tpir10"]
    assert rates["tar@0.0001"] <= rates["tar@0.01"]
    draws = record.row("descriptor").draws
    assert draws.keys() == rates.keys(), "every figure has its error over people"
    assert np.mean(draws["tar@0.01"]) == pytest.approx(rates["tar@0.01"], abs=3.0)
