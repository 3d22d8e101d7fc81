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
from tests.support.lfw_sample import LFW, lfw_sample, needs_lfw

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


@pytest.fixture
def similarity(lfw_file: Path) -> np.ndarray:
    """Similarities of the first described photo of each person of several with the second of each."""
    with np.load(lfw_file, allow_pickle=False) as file:
        descriptors, labels = file["descriptors"], file["labels"]
    photos = len(lfw_sample(test=False)) + len(lfw_sample(test=True))
    assert len(descriptors) >= 0.98 * photos
    several = [rows[:2] for name in np.unique(labels) if len(rows := np.flatnonzero(labels == name)) > 1]
    first, second = np.transpose(several)
    return np.asarray(descriptors[first] @ descriptors[second].T)


def test_real_photos_yield_faces_that_tell_people_apart(similarity: np.ndarray) -> None:
    same, different = np.diag(similarity), similarity[~np.eye(len(similarity), dtype=bool)]
    assert same.mean() > 0.6
    assert different.mean() < 0.15
    assert np.mean(similarity.argmax(axis=1) == np.arange(len(similarity))) >= 0.97
    assert_threshold_divides(similarity, "sface")


def assert_threshold_divides(similarity: np.ndarray, model: str) -> None:
    threshold = model_entry(model, "descriptor").calibration["threshold"]
    assert np.mean(similarity[~np.eye(len(similarity), dtype=bool)] >= threshold) < 2e-3
    assert np.mean(np.diag(similarity) >= threshold) > 0.9


@pytest.mark.parametrize("model", ["edgeface-s", "w600k-mbf"])
def test_the_threshold_of_each_other_model_divides_people(model: str) -> None:
    try:
        model_paths(model_entry(model, "descriptor"))
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
    assert_threshold_divides(first @ second.T, model)
