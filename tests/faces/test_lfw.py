"""A sample of Labeled Faces in the Wild, where it is available; `benchmarks/lfw.py` does all of it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import ModelError
from setnet.faces import (
    Face,
    FaceSettings,
    describe_faces,
    extract_faces,
    model_entry,
    model_paths,
    open_photo,
)
from tests.support.lfw_sample import LFW, needs_lfw

pytestmark = [needs_lfw, pytest.mark.xdist_group("lfw")]


def central(path: Path) -> Face | None:
    photo = open_photo(path)
    faces = extract_faces(photo)
    return min(
        faces,
        key=lambda f: (f.box.x0 + f.box.x1 - photo.width) ** 2 + (f.box.y0 + f.box.y1 - photo.height) ** 2,
        default=None,
    )


@cache
def pairs() -> list[tuple[tuple[Path, Face | None], tuple[Path, Face | None]]]:
    """Return two photos of each of some people, with their faces."""
    people = [folder for folder in sorted((LFW / "images").iterdir()) if len(list(folder.iterdir())) >= 2]
    photos = [sorted(folder.iterdir())[:2] for folder in people[::28]]
    return [((first, central(first)), (second, central(second))) for first, second in photos]


def test_real_photos_yield_faces_that_tell_people_apart() -> None:
    found = [face is not None for pair in pairs() for _, face in pair]
    assert np.mean(found) >= 0.98
    known = [(a.descriptor, b.descriptor) for (_, a), (_, b) in pairs() if a is not None and b is not None]
    first, second = (np.stack(side) for side in zip(*known, strict=True))
    similarity = first @ second.T
    same, different = np.diag(similarity), similarity[~np.eye(len(similarity), dtype=bool)]
    assert same.mean() > 0.6
    assert different.mean() < 0.15
    assert np.mean(similarity.argmax(axis=1) == np.arange(len(similarity))) >= 0.97


@pytest.mark.parametrize("model", ["sface", "edgeface-s", "w600k-mbf"])
def test_the_threshold_of_each_model_divides_people(model: str) -> None:
    entry = model_entry(model, "descriptor")
    try:
        model_paths(entry)
    except ModelError as error:
        pytest.skip(str(error))
    settings = FaceSettings(descriptor=model)

    def described(path: Path, face: Face) -> np.ndarray:
        return describe_faces(path, [face.box], [face.landmarks], settings).ravel()

    known = [
        (described(path, face), described(other, second))
        for (path, face), (other, second) in pairs()
        if face is not None and second is not None
    ]
    first, second = (np.stack(side) for side in zip(*known, strict=True))
    similarity = first @ second.T
    non_matches = similarity[~np.eye(len(similarity), dtype=bool)]
    assert np.mean(non_matches >= entry.calibration["threshold"]) < 2e-3
    assert np.mean(np.diag(similarity) >= entry.calibration["threshold"]) > 0.9
