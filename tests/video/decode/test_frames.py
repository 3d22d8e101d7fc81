"""Looks at H.264 and H.265, where ffmpeg is there to encode them: packets give the pictures of the video."""

from __future__ import annotations

import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from setnet.video.capture import Packet, PacketGroup
from setnet.video.frames import Frame, _thin_out, read_frames, watch_frames
from setnet.video.shots import find_cuts, may_be_cut, signature
from studies.video import set_turned


def encoded(clip: Path, folder: Path, *options: str) -> Path:
    """Return a clip encoded with options of ffmpeg; without ffmpeg the test is skipped."""
    ffmpeg = shutil.which("ffmpeg")
    if ffmpeg is None:
        pytest.skip("ffmpeg is needed to encode H.264 and H.265")
    made = folder / "made.mp4"
    subprocess.run([ffmpeg, "-loglevel", "error", "-i", str(clip), *options, str(made)], check=True)
    return made


@pytest.mark.parametrize(("codec", "keys"), [("libx264", 250), ("libx264", 8), ("libx265", 250)])
def test_packets_give_the_pictures_of_the_whole_video(
    clip: Path, tmp_path: Path, codec: str, keys: int
) -> None:
    made = encoded(clip, tmp_path, "-c:v", codec, "-g", str(keys))
    whole = {round(frame.time, 2): frame for frame in read_frames(str(made), 0.0, 0.0)}
    found = list(watch_frames(str(made), 0.0, lambda a, b: True))
    assert len(found) >= 6
    assert all(b.time > a.time for a, b in pairwise(found))
    for frame in found:
        same = whole[round(frame.time, 2)]
        assert np.abs(frame.bgr.astype(int) - same.bgr).mean() < 3


def test_of_a_video_with_only_key_pictures_a_few_are_seen() -> None:
    groups = [PacketGroup(Packet(n / 30, b"k", False)) for n in range(60)]
    assert [round(group.key.time, 1) for group in _thin_out(groups)] == [0.0, 0.5, 1.0, 1.5]


@pytest.mark.parametrize("options", ["-g 8", "-g 250", "-g 15 -sc_threshold 0"])
def test_cuts_are_found_wherever_the_key_pictures_are(clip: Path, tmp_path: Path, options: str) -> None:
    made = encoded(clip, tmp_path, "-c:v", "libx264", *options.split())
    seen = [signature(frame) for frame in watch_frames(str(made), 0.0, _may_be_cut)]
    assert [limit.begin for limit in find_cuts(seen)] == pytest.approx([2.0, 4.0], abs=0.3)
    assert seen[-1].time > 5.5


def test_a_flag_that_turns_the_pictures_is_followed(clip: Path, tmp_path: Path) -> None:
    made = encoded(clip, tmp_path, "-c:v", "libx264", "-g", "8")
    before = next(watch_frames(str(made), 0.0, _may_be_cut)).bgr
    set_turned(made)
    after = next(watch_frames(str(made), 0.0, _may_be_cut)).bgr
    assert np.array_equal(after, np.rot90(before, -1))


def _may_be_cut(a: Frame, b: Frame) -> bool:
    return may_be_cut(signature(a), signature(b))


def test_of_two_key_pictures_close_to_each_other_the_one_after_the_cut_is_seen() -> None:
    groups = [
        PacketGroup(Packet(0.0, b"k", False), [Packet(1.9, b"p", False)]),
        PacketGroup(Packet(1.96, b"k", False)),
        PacketGroup(Packet(2.0, b"k", False), [Packet(2.9, b"p", False)]),
    ]
    assert [group.key.time for group in _thin_out(groups)] == [0.0, 2.0]
