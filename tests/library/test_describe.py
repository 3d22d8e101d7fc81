"""Descriptors of folders of photos."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from setnet.faces import FaceSettings
from setnet.library.describe import describe_photos


def test_describe_labels_the_main_face_by_its_folder(album: Path, tmp_path: Path) -> None:
    done = describe_photos([album], tmp_path / "d.npz", FaceSettings(), all_faces=True, workers=0)
    assert (done.photos, done.descriptors, done.labels) == (6, 8, 2)
    assert [p.name for p in done.without_face] == ["nobody.jpg"]
    assert [p.name for p, _ in done.failed] == ["broken.jpg"]
    with np.load(tmp_path / "d.npz", allow_pickle=False) as data:
        assert sorted(data["labels"].tolist()) == ["", "", "", "", "2016", "2016", "2019", "2019"]
        assert len(data["paths"]) == len(data["boxes"]) == 8
        sides = np.sqrt(
            (data["boxes"][:, 2] - data["boxes"][:, 0]) * (data["boxes"][:, 3] - data["boxes"][:, 1])
        )
        assert data["quality"].shape == (8, 6)
        assert np.allclose(data["quality"][:, 0], sides, atol=0.01), "the first is the size"
