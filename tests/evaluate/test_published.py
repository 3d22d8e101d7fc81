"""Lists as VGGFace2 publishes them, on small copies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.published import import_places, split_photos
from setnet.train.faces import face_places
from tests.support.learn_people import photo_folder

POINTS = ",".join(f"P{number}{axis}" for number in range(1, 6) for axis in "XY")


def vggface2(root: Path) -> Path:
    """Write three people in the folders and lists of VGGFace2; one is for testing."""
    photo_folder(root / "train", 2, 2)
    photo_folder(root / "test", 1, 2)
    (root / "test" / "person-000").rename(root / "test" / "person-002")
    lists = root / "bb_landmark"
    lists.mkdir()
    for part, people in (("train", (0, 1)), ("test", (2,))):
        names = [f"person-{person:03d}/{photo}" for person in people for photo in range(2)]
        boxes = [f'"{name}",{n},2,10,20' for n, name in enumerate(names)]
        points = [f'"{name}",{",".join(str(n + p) for p in range(10))}' for n, name in enumerate(names)]
        (lists / f"loose_bb_{part}.csv").write_text("\n".join(["NAME_ID,X,Y,W,H", *boxes]))
        (lists / f"loose_landmark_{part}.csv").write_text("\n".join([f"NAME_ID,{POINTS}", *points]))
    rows = ['person-000, "One, of them", 2, 1, m', "person-001, Two, 2, 1, f", "person-002, Three, 2, 0, f"]
    (root / "identity_meta.csv").write_text("\n".join(["Class_ID, Name, Sample_Num, Flag, Gender", *rows]))
    return root


def test_boxes_and_landmarks_are_taken_instead_of_looking_for_faces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, places = vggface2(tmp_path / "vggface2"), tmp_path / "places.bin"
    assert import_places(data, places) == 6
    monkeypatch.setattr("setnet.train.faces.load_detector", None)
    found = face_places([data / "train" / "person-001" / "0.jpg"], places)
    assert found.tolist() == [[2, 2, 12, 22, *range(2, 12)]]
    assert import_places(data, places) == 0, "a file that is there stays as it is"
    (data / "bb_landmark" / "loose_bb_train.csv").write_text("NAME_ID,X,Y,W\na/b,1,2,3")
    with pytest.raises(InvalidInputError, match="no column H"):
        import_places(data, tmp_path / "other.bin")


def test_the_identity_list_says_who_is_tested_and_a_split_overrules_it(tmp_path: Path) -> None:
    data = vggface2(tmp_path / "vggface2")
    paths, names, train = split_photos(data)
    assert len(paths) == 6
    assert sorted(set(names[train])) == ["person-000", "person-001"]
    assert set(names[~train]) == {"person-002"}
    split = tmp_path / "split.json"
    split.write_text(json.dumps({"train": ["person-002"], "test": ["person-000"]}))
    _, names, train = split_photos(data, split)
    assert list(zip(names.tolist(), train.tolist(), strict=True)) == [
        ("person-000", False), ("person-000", False), ("person-002", True), ("person-002", True),
    ]  # fmt: skip
    for text, message in (
        ('{"train": ["a"]}', "is no split"),
        ('{"train": ["person-000"], "test": ["person-000"]}', "belongs to one part"),
        ('{"train": ["person-000"], "test": []}', "2 photos to train on, 0 to test on"),
    ):
        split.write_text(text)
        with pytest.raises(InvalidInputError, match=message):
            split_photos(data, split)


def test_without_lists_half_of_the_people_are_tested(tmp_path: Path) -> None:
    _, names, train = split_photos(photo_folder(tmp_path / "photos", 6, 2))
    assert len(np.unique(names[train])) == len(np.unique(names[~train])) == 3
    with pytest.raises(InvalidInputError, match="no such folder"):
        split_photos(tmp_path / "nowhere")
