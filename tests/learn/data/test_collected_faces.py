from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from invented_collect import invented_run
from setnet.collect import CollectRun, write_result
from setnet.learn import DescriptorSource, load_settings, new_backbone, run_sets
from setnet.learn.training.stages import open_source


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("collected")
    run = invented_run(place, 6, [(a, b) for a in range(6) for b in range(a + 1, 6)])
    for number, row in enumerate(run.manifest("labels").rows()):
        pixels = np.random.default_rng(number).integers(0, 255, (100, 200, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(row["photo"])
    run = CollectRun.begin(run.path, split=(1.0, 0.0, 0.0))
    write_result(run, place / "set", unanswered="unknown")
    return place / "set"


def test_a_data_set_is_a_source_of_descriptors(collected: Path) -> None:
    source = DescriptorSource.open(collected)
    assert (source.people, source.dim) == (6, 128)
    assert len(source.faces) == 2 * 15 + 3 * 6  # in photos, and portraits


def test_a_data_set_is_a_source_of_faces_cut_out_of_its_photos(collected: Path, tmp_path: Path) -> None:
    settings = load_settings("tiny", ["augment.short_side=40"])
    source = open_source(collected, new_backbone(settings), settings, tmp_path)
    assert source.people == 6
    faces = source.load(np.array([0, 1]), None)
    assert faces.shape[:2] == (2, 3)


@pytest.mark.usefixtures("one_thread")
def test_sets_are_trained_on_a_data_set(collected: Path, tmp_path: Path) -> None:
    head = ["aggregator.dim=8", "aggregator.clusters=2", "aggregator.start_sets=50"]
    sets = ["sets.steps=2", "sets.identities=4", "sets.sizes=[2]"]
    settings = load_settings("default", ["backbone.dim=128", *head, *sets])
    report = run_sets(collected, tmp_path / "run", settings)
    assert report.steps == 2
    assert (tmp_path / "run" / "network.safetensors").is_file()
