"""Where Labeled Faces in the Wild is, and a sample of it that is described once for all tests who ask."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

LFW = Path(os.environ.get("SETNET_LFW", Path(__file__).parents[3] / "shared" / "data" / "lfw"))
needs_lfw = pytest.mark.skipif(
    not (LFW / "images").is_dir(), reason=f"LFW is not at {LFW}; set SETNET_LFW to its folder"
)


def lfw_sample(test: bool) -> list[Path]:
    """Return up to five photos of each of some people of a half: many photos, two or three, or one."""
    from setnet.evaluate.people import read_split

    split = read_split()
    half = split.test if test else split.train
    photos = [sorted(f.iterdir()) for f in sorted((LFW / "images").iterdir()) if f.name in half]
    many, few, one = (40, 40, 160) if test else (12, 12, 20)
    chosen = [theirs for theirs in photos if len(theirs) >= 4][3::7][:many]
    chosen += [theirs for theirs in photos if 2 <= len(theirs) < 4][3::7][:few]
    chosen += [theirs for theirs in photos if len(theirs) == 1][3::11][:one]
    return [photo for theirs in chosen for photo in theirs[:5]]
