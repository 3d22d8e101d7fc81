"""Looks at H.264 and H.265, where ffmpeg is there to encode them: packets give the pictures of the video."""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from setnet.video.decode.looks import _apart, looks
from setnet.video.decode.packets import Packet, PacketGroup
from setnet.video.decode.pictures import pictures


@pytest.mark.parametrize(("codec", "keys"), [("libx264", 250), ("libx264", 8), ("libx265", 250)])
def test_packets_give_the_pictures_of_the_whole_video(
    clip: Path, tmp_path: Path, codec: str, keys: int
) -> None:
    ffmpeg = shutil.which("ffmpeg")
    if ffmpeg is None:
        pytest.skip("ffmpeg is needed to encode H.264 and H.265")
    made = tmp_path / "made.mp4"
    command = [ffmpeg, "-loglevel", "error", "-i", str(clip), "-c:v", codec, "-g", str(keys), str(made)]
    subprocess.run(command, check=True)
    whole = {round(look.time, 2): look for look in pictures(str(made), 0.0, 0.0)}
    found = list(looks(str(made), 0.0, lambda a, b: True))
    assert len(found) >= 6
    assert all(b.time > a.time for a, b in pairwise(found))
    for look in found:
        same = whole[round(look.time, 2)]
        assert np.abs(look.frame.astype(int) - same.frame).mean() < 3


def test_of_a_video_with_only_key_pictures_a_few_are_seen() -> None:
    groups = [PacketGroup(Packet(n / 30, b"k", False)) for n in range(60)]
    assert [round(group.key.time, 1) for group in _apart(groups)] == [0.0, 0.5, 1.0, 1.5]
