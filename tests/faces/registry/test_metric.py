"""The metric of a model: what it does to descriptors, and that two of them are never mixed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import InvalidInputError, ModelError
from setnet.faces import Metric, model_entry
from setnet.faces.descriptor import Descriptor
from setnet.faces.registry import entry_from_table
from setnet.faces.settings import store_calibration
from setnet.library import write_descriptor_file
from studies.matching_faces import check_one_model

OFFSET = Metric((0.6, 0.0), "some faces")


class Session:
    """Stands for a network of two numbers, which it takes from the colour of a crop."""

    def get_inputs(self) -> list[Any]:
        return [type("Input", (), {"name": "in"})]

    def get_outputs(self) -> list[Any]:
        return [type("Output", (), {"name": "out"})]

    def run(self, names: list[str], inputs: dict[str, Any]) -> list[Any]:
        return [inputs["in"][:, :2].mean(axis=(2, 3))]


def test_descriptors_are_measured_from_the_offset() -> None:
    entry = entry_from_table(
        "small", {"kind": "descriptor", "path": "x", "dim": 2, "size": 4}, Path("x.toml")
    )
    crop = np.zeros((4, 4, 3), np.uint8)
    crop[..., 0], crop[..., 1] = 30, 40
    plain = Descriptor(entry, Session()).describe([crop])
    moved = Descriptor(replace(entry, metric=OFFSET), Session()).describe([crop])
    assert plain == pytest.approx(np.array([[0.6, 0.8]]))
    assert moved == pytest.approx(np.array([[0.0, 1.0]]), abs=1e-6)


def test_everybody_counts_the_same_in_a_fitted_metric() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], np.float32)
    labels = np.array(["anna", "anna", "anna", "ben", ""])
    assert Metric.fit(rows, labels, "two people").offset == pytest.approx((0.5, 0.5))


def test_the_hash_tells_offsets_apart_and_survives_being_stored() -> None:
    assert Metric.of(OFFSET.to_dict(), 2).hash == OFFSET.hash
    assert replace(OFFSET, offset=(0.6, 0.1)).hash != OFFSET.hash
    with pytest.raises(ModelError, match="3 numbers"):
        Metric.of(OFFSET.to_dict(), 3)


def test_a_stored_metric_is_part_of_the_models_identity(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("setnet.faces.registry.models_folder", lambda: tmp_path)
    monkeypatch.setattr("setnet.faces.settings.models_folder", lambda: tmp_path)
    before = model_entry("edgeface-s", "descriptor")
    metric = Metric((0.01,) * 512, "some faces")
    store_calibration("edgeface-s", {"threshold": 0.3, "metric": metric.to_dict()})
    after = model_entry("edgeface-s", "descriptor")
    assert before.identity == "edgeface-s"
    assert after.identity == f"edgeface-s+{metric.hash}"
    assert after.calibration["threshold"] == 0.3
    assert "metric" not in after.calibration


def test_descriptor_files_of_two_metrics_are_not_used_together(tmp_path: Path) -> None:
    for name, model in (("a", "sface"), ("b", "sface+0123456789ab"), ("c", "")):
        more = {"model": np.array(model)} if model else {}
        write_descriptor_file(tmp_path / f"{name}.npz", np.eye(2, dtype=np.float32), ["x", "y"], **more)
    files = [tmp_path / f"{name}.npz" for name in "abc"]
    assert check_one_model([files[0], files[2]]) == "sface"
    with pytest.raises(InvalidInputError, match=r"sface, .*sface\+0123456789ab"):
        check_one_model(files)
