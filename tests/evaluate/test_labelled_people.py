"""Descriptor files and the split of their people."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.people import LabelledPeople, read_people, read_split, train_test_split

RNG = np.random.default_rng(0)


def written(path: Path, descriptors: object, labels: object) -> Path:
    np.savez(path, descriptors=np.asarray(descriptors, np.float32), labels=np.asarray(labels))
    return path


@pytest.mark.parametrize(
    ("labels", "broken", "words"),
    [
        ([""] * 40, None, "no row has a label"),
        ([f"p{i}" for i in range(40)], None, "0 people have two faces or more, 40 are known"),
        ([f"p{i // 4}" for i in range(40)], np.nan, "row 3 holds NaN or infinity"),
        ([f"p{i // 4}" for i in range(40)], 0.0, "row 3 is the zero vector"),
    ],
)
def test_bad_descriptor_files(tmp_path: Path, labels: list[str], broken: float | None, words: str) -> None:
    rows = RNG.standard_normal((40, 16))
    if broken is not None:
        rows[3] = broken
    with pytest.raises(InvalidInputError, match=words):
        read_people(written(tmp_path / "d.npz", rows, labels))


def test_people_are_divided_and_nobody_is_in_both_halves() -> None:
    labels = np.array([f"p{i // 3}" for i in range(90)])
    split = train_test_split(LabelledPeople(np.ones((90, 4), np.float32), labels), "x")
    assert not set(split.train.labels) & set(split.test.labels)
    assert len(split.train.labels) + len(split.test.labels) == 90


def test_either_half_gets_people_of_several_faces_however_many_have_one() -> None:
    labels = np.array([f"p{i // 2}" for i in range(12)] + [f"q{i}" for i in range(500)])
    for seed in range(20):
        split = train_test_split(LabelledPeople(np.ones((512, 4), np.float32), labels), "x", seed)
        assert (len(split.train.groups(2)), len(split.test.groups(2))) == (3, 3)


def test_one_half_of_lfw_cannot_be_divided() -> None:
    labels = np.repeat(sorted(read_split().train)[:20], 3)
    with pytest.raises(InvalidInputError, match="0 people to test on"):
        train_test_split(LabelledPeople(np.ones((60, 4), np.float32), labels), "x")
