"""Descriptors of folders: of faces by folder, of frames by shot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.faces import FaceSettings
from setnet.library import describe_frames
from setnet.library.describe import describe_photos
from setnet.library.descriptor_files import read_arrays
from tests.support.clips import Scene, write_clip


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


@pytest.mark.usefixtures("_people")
def test_frames_of_one_shot_share_a_label(tmp_path: Path) -> None:
    scenes = [Scene(("P001",), 2.0), Scene(("P005",), 2.0, (140, 60, 40))]
    write_clip(tmp_path / "films" / "two.mp4", scenes)
    (tmp_path / "films" / "broken.avi").write_bytes(b"no video")
    frames, shots, failed = describe_frames(
        [tmp_path / "films"], tmp_path / "frames.npz", "sface", every=0.5, workers=0
    )
    assert (shots, len(failed)) == (2, 1)
    names = ("descriptors", "labels", "times")
    descriptors, labels, times = read_arrays(tmp_path / "frames.npz", names)
    assert descriptors.shape == (frames, 128)
    assert sorted({label[-2:] for label in labels.tolist()}) == ["#0", "#1"]
    assert [label[-1] for label in labels] == ["0" if time < 2 else "1" for time in times]
    assert (np.diff(times) > 0).all()


def test_a_folder_without_videos_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no video in"):
        describe_frames([tmp_path], tmp_path / "frames.npz", "sface", workers=0)
