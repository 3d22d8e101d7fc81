"""Labelled faces with quality, copies and corrected labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.people import read_split
from studies.matching_faces import corrected, photo_key, read_matching_faces


def test_lfws_wrong_labels_are_known_and_lie_within_one_half() -> None:
    labels = np.array(["Nan_Wang", "Wang_Nan", "Michael_Schumacher", "Michael_Schumacher"])
    paths = [f"/x/{name}/{name}_{i:04}.jpg" for name, i in zip(labels, (1, 1, 8, 9), strict=True)]
    right, keep = corrected(labels, paths)
    assert right[0] == right[1] == "Nan_Wang"
    assert keep.tolist() == [True, True, False, True]
    assert corrected(labels, None)[1].all()
    split = read_split()
    assert all((name in split.train) == (right[0] in split.train) for name in ("Nan_Wang", "Wang_Nan"))


def made(path: Path, names: list[str], folder: str, **more: Any) -> Path:
    rng = np.random.default_rng(len(folder))
    paths = [f"/{folder}/{name}/{name}_{i:04}.jpg" for i, name in enumerate(names)]
    np.savez(
        path,
        descriptors=rng.normal(size=(len(names), 8)).astype(np.float32),
        labels=np.array(names),
        paths=np.array(paths),
        **more,
    )
    return path


def test_copies_are_the_same_faces_of_the_same_people(tmp_path: Path) -> None:
    names = [f"p{i // 4:02}" for i in range(80)]
    plain = made(tmp_path / "plain.npz", names, "a", quality=np.ones((80, 6), np.float32))
    copy = made(tmp_path / "copy.npz", names, "copies")
    train, test, words = read_matching_faces(plain, [copy])
    assert "random split" in words
    for half in (train, test):
        worse = half.degraded["copy"]
        assert worse.shown is not None
        assert worse.quality is not None
        assert half.faces.quality is not None
        assert len(half.faces.people(2)) == 10
        assert np.array_equal(half.faces.owner, worse.owner)
        assert np.array_equal(half.faces.descriptors, worse.shown)
        assert np.isnan(worse.quality).all()
        assert (half.faces.quality == 1).all()
    assert photo_key("/a/p00/p00_0000.jpg") == photo_key("/copies/p00/p00_0000.jpg")
    other = made(tmp_path / "other.npz", [f"q{i // 4}" for i in range(40)], "b")
    with pytest.raises(InvalidInputError, match="other: no photo of it is a copy"):
        read_matching_faces(plain, [other])
    wrong = made(tmp_path / "wrong.npz", names, "c", quality=np.ones((3, 6)))
    with pytest.raises(InvalidInputError, match="does not fit its 80 descriptors"):
        read_matching_faces(wrong)
