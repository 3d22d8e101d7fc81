"""Constants that belong to a descriptor model."""

from __future__ import annotations

from setnet.faces import calibration_of, model_entries
from setnet.library import MatchModel


def test_every_built_in_descriptor_has_constants_and_others_get_ordinary_ones() -> None:
    names = [entry.name for entry in model_entries().values() if entry.kind == "descriptor"]
    assert "sface" in names
    ordinary = calibration_of("a model of the user's")
    for name in names:
        assert calibration_of(name) != ordinary
        MatchModel.of(calibration_of(name))
    MatchModel.of(ordinary)
