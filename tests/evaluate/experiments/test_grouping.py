"""Grouping as an experiment: on people that nothing was chosen on, ours is precise and finds most people."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from setnet.evaluate.data.splits import read_split
from setnet.evaluate.experiments.grouping import OURS, grouping
from setnet.evaluate.report.record import Record
from setnet.faces import FaceSettings
from setnet.library import describe_photos

LFW = Path(os.environ.get("SETNET_LFW", Path(__file__).parents[4] / "shared" / "data" / "lfw"))


def check(record: Record) -> None:
    found = {name: float(np.mean(values)) for name, values in record.row(OURS).values.items()}
    assert found["precision 0"] >= 98
    assert found["recall 0"] >= 92
    assert found["f1 0"] >= 95
    assert found["found 0"] >= 90


def test_invented_people_are_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    owner = np.concatenate([np.repeat(np.arange(40), 6), 40 + np.arange(100)])
    means = rng.normal(size=(140, 128)) + np.concatenate([[3.6], np.zeros(127)])
    faces = (means[owner] + 0.7 * rng.normal(size=(len(owner), 128))).astype(np.float32)
    np.savez(tmp_path / "faces.npz", descriptors=faces, labels=np.array([f"p{n:03}" for n in owner]))
    record = grouping(tmp_path / "faces.npz", json=tmp_path / "grouping.json")
    check(record)
    assert record.row(OURS).facts["threshold"] is None


@pytest.mark.skipif(
    not (LFW / "images").is_dir(), reason=f"LFW is not at {LFW}; set SETNET_LFW to its folder"
)
@pytest.mark.timeout(900)
def test_people_of_lfws_test_half_are_found(tmp_path: Path) -> None:
    folders = sorted((LFW / "images").iterdir())
    sizes = {folder: len(list(folder.iterdir())) for folder in folders}
    split, chosen = read_split(), list[Path]()
    for half, several, singles in ((split.train, 24, 20), (split.test, 60, 120)):
        theirs = [folder for folder in folders if folder.name in half]
        chosen += [folder for folder in theirs if sizes[folder] >= 2][3::7][:several]
        chosen += [folder for folder in theirs if sizes[folder] == 1][3::11][:singles]
    for folder in chosen:
        (tmp_path / "photos" / folder.name).mkdir(parents=True)
        for photo in sorted(folder.iterdir())[:8]:
            (tmp_path / "photos" / folder.name / photo.name).symlink_to(photo)
    describe_photos([tmp_path / "photos"], tmp_path / "lfw.npz", FaceSettings())
    check(grouping(tmp_path / "lfw.npz"))
