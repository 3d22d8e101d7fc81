"""Frames of videos, labelled by shot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.library.descriptor_files import read_arrays
from studies.frame_sets import describe_frames
from tests.support.clips import Scene, write_clip


@pytest.mark.usefixtures("_people")
def test_frames_of_one_shot_share_a_label(tmp_path: Path) -> None:
    scenes = [Scene(("P001",), 2.0), Scene(("P005",), 2.0, (140, 60, 40))]
    write_clip(tmp_path / "films" / "two.mp4", scenes)
    (tmp_path / "films" / "broken.avi").write_bytes(b"no video")
    assert len(describe_frames([tmp_path / "films"], tmp_path / "frames.npz", "sface", every=0.5)) == 1
    names = ("descriptors", "labels", "times")
    descriptors, labels, times = read_arrays(tmp_path / "frames.npz", names)
    assert descriptors.shape == (len(labels), 128)
    assert sorted({label[-2:] for label in labels.tolist()}) == ["#0", "#1"]
    assert [label[-1] for label in labels] == ["0" if time < 2 else "1" for time in times]
    assert (np.diff(times) > 0).all()


def test_a_folder_without_videos_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no video that can be read in"):
        describe_frames([tmp_path], tmp_path / "frames.npz", "sface")
