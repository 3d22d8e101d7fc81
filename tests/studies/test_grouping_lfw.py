"""Grouping as an experiment: on people that nothing was chosen on, ours is precise and finds most people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies.grouping import OURS, Settings, run
from tests.support.lfw_sample import needs_lfw

pytestmark = [needs_lfw, pytest.mark.xdist_group("lfw"), pytest.mark.timeout(900)]


def test_people_of_lfws_test_half_are_found(lfw_file: Path) -> None:
    record = run(Settings(descriptors=lfw_file, repeats=1))
    found = {name: float(np.mean(value)) for name, value in record.row(OURS).values.items()}
    assert found["precision 0"] >= 98
    assert found["recall 0"] >= 92
    assert found["f1 0"] >= 95
    assert found["found 0"] >= 90
