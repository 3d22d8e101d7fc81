"""Virtual people fitted to others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.errors import ModelError
from setnet.evaluate.people import virtual_split
from setnet.train import VirtualPeople
from studies.fit import fit_virtual


def test_fitting_finds_known_people_again(tmp_path: Path) -> None:
    half = virtual_split(1.3, seed=1, people=250).train
    fit = fit_virtual(half.descriptors, half.labels, evaluations=20)
    assert fit.same.wasserstein < 0.03
    assert fit.different.wasserstein < 0.03
    fit.model.save(tmp_path / "people.npz")
    again = VirtualPeople.load(tmp_path / "people.npz")
    assert again.face_spread == fit.model.face_spread
    np.testing.assert_allclose(again.within, fit.model.within, rtol=1e-2, atol=1e-4)
    for damaged in (b"", (tmp_path / "people.npz").read_bytes()[:300]):
        (tmp_path / "people.npz").write_bytes(damaged)
        with pytest.raises(ModelError, match="no parameters"):
            VirtualPeople.load(tmp_path / "people.npz")
