"""A model's own numbers, those fitted on this machine, and what happens where there are none."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError, ModelError
from setnet.faces import add_model_file, model_entries, model_entry, remove_model
from setnet.faces.registry import models_folder, write_model_entry
from setnet.faces.settings import load_calibration, store_calibration
from setnet.library.score_calibration import ScoreCalibration
from tests.support.small_models import write_small_model

pytestmark = pytest.mark.usefixtures("own_cache")


def test_every_descriptor_that_setnet_knows_has_its_threshold() -> None:
    for entry in model_entries().values():
        if entry.kind == "descriptor":
            assert entry.calibration["false_match_rate"] == 1e-4
            assert 0.2 < entry.calibration["threshold"] < 0.5
            assert entry.calibration["w"] > 0 > entry.calibration["b"]


def test_every_descriptor_that_setnet_knows_says_what_its_similarities_mean(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = {}
    for entry in model_entries().values():
        if entry.kind == "descriptor":
            numbers = load_calibration(entry.name, "match")
            found[entry.name] = model = ScoreCalibration.of(numbers)
            non_matches = model.non_match_scores(1)
            # one stranger in ten thousand reaches the threshold that was fitted for that rate
            assert abs(model.threshold(1e-4, non_matches) - entry.calibration["threshold"]) < 0.03
            assert model.threshold(1e-6, non_matches) < model.genuine
    assert caplog.text == ""
    assert len(set(found.values())) == len(found) >= 3


def test_a_model_without_calibration_is_judged_like_the_default_and_it_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entry = str(write_model_entry(write_small_model(tmp_path / "s.onnx"), name="s", dim=24))
    with caplog.at_level(logging.WARNING, "setnet.faces"):
        assert load_calibration("sface") == model_entry("sface", "descriptor").calibration
        assert caplog.text == ""
        assert load_calibration(entry) == load_calibration("sface")
    assert "has no calibration" in caplog.text


def test_a_part_of_a_calibration_is_looked_for_by_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    numbers = {"threshold": 0.3, "match": {"spread": 0.08}}
    file = write_small_model(tmp_path / "s.onnx")
    entry = str(write_model_entry(file, name="s", dim=24, calibration=numbers))
    assert load_calibration(entry, "match") == {"spread": 0.08}
    assert caplog.text == ""
    assert load_calibration(entry, "other") == load_calibration("sface", "other")
    assert "has no calibration" in caplog.text


def test_what_was_fitted_here_comes_first_and_goes_with_the_model(tmp_path: Path) -> None:
    add_model_file(write_small_model(tmp_path / "s.onnx"), kind="arcface")
    path = store_calibration("s", {"threshold": 0.31, "w": 25.0})
    assert dict(load_calibration("s")) == {"threshold": 0.31, "w": 25.0}
    assert path in remove_model("s")
    assert not list(models_folder().iterdir())


def test_fitted_numbers_replace_those_of_the_entry_one_by_one() -> None:
    own = load_calibration("sface")
    store_calibration("sface", {"threshold": 0.5})
    assert dict(load_calibration("sface")) == {**own, "threshold": 0.5}
    assert [path.name for path in remove_model("sface")] == ["sface.calibration.json"]
    assert load_calibration("sface") == own


def test_a_model_named_by_its_file_has_its_numbers_beside_it(tmp_path: Path) -> None:
    entry = write_model_entry(write_small_model(tmp_path / "s.onnx"), name="s", dim=24)
    assert store_calibration(str(entry), {"threshold": 0.2}).parent == tmp_path
    assert dict(load_calibration(str(entry))) == {"threshold": 0.2}


def test_a_damaged_calibration_is_named() -> None:
    path = store_calibration("sface", {"threshold": 0.5})
    for text in ("[1, 2]", "{", "\xff"):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(ModelError, match=r"sface\.calibration\.json: .*delete it"):
            model_entries()


def test_a_model_whose_name_is_no_file_name_cannot_have_one(tmp_path: Path) -> None:
    entry = write_model_entry(write_small_model(tmp_path / "s.onnx"), name="odd name", dim=24)
    with pytest.raises(InvalidInputError, match="stored under the model's name"):
        store_calibration(str(entry), {"threshold": 0.5})


def test_a_calibration_that_is_no_table_is_refused(tmp_path: Path) -> None:
    path = write_model_entry(write_small_model(tmp_path / "s.onnx"), name="s", dim=24)
    path.write_text(path.read_text() + "calibration = 3\n")
    with pytest.raises(ModelError, match="'calibration' must be a dict"):
        model_entry(str(path), "descriptor")
