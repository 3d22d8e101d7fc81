"""A sample of Labeled Faces in the Wild, where it is available; `benchmarks/lfw.py` does all of it."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from setnet.faces import Face, faces_of, open_photo

LFW = Path(os.environ.get("SETNET_LFW", Path(__file__).parents[3] / "shared" / "data" / "lfw"))
pytestmark = pytest.mark.skipif(
    not (LFW / "images").is_dir(), reason=f"LFW is not at {LFW}; set SETNET_LFW to its folder"
)


def central(path: Path) -> Face | None:
    photo = open_photo(path)
    faces = faces_of(photo)
    return min(
        faces,
        key=lambda f: (f.box.x0 + f.box.x1 - photo.width) ** 2 + (f.box.y0 + f.box.y1 - photo.height) ** 2,
        default=None,
    )


def test_real_photos_yield_faces_that_tell_people_apart() -> None:
    people = [folder for folder in sorted((LFW / "images").iterdir()) if len(list(folder.iterdir())) >= 2][
        ::28
    ]
    photos = [sorted(folder.iterdir())[:2] for folder in people]
    faces = [[central(path) for path in pair] for pair in photos]
    found = [face is not None for pair in faces for face in pair]
    assert np.mean(found) >= 0.98
    pairs = [(a.descriptor, b.descriptor) for a, b in faces if a is not None and b is not None]
    first, second = (np.stack(side) for side in zip(*pairs, strict=True))
    similarity = first @ second.T
    same, different = np.diag(similarity), similarity[~np.eye(len(similarity), dtype=bool)]
    assert same.mean() > 0.6
    assert different.mean() < 0.15
    assert np.mean(similarity.argmax(axis=1) == np.arange(len(similarity))) >= 0.97
