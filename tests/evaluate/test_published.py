"""Lists as VGGFace2 publishes them, on small copies."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate import identify
from setnet.evaluate.published import import_places, read_templates, split_photos
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


@pytest.mark.usefixtures("toy_people")
def test_templates_of_a_benchmark_are_the_faces_under_their_boxes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    people = rng.standard_normal((3, 128)).astype(np.float32)
    rows = np.repeat(people, 3, axis=0) + 0.1 * rng.standard_normal((9, 128)).astype(np.float32)
    paths = [f"/data/IJB-A/img/{person}{photo}.jpg" for person in range(3) for photo in range(3)]
    boxes = np.tile(np.array([10, 10, 30, 40], np.float32), (9, 1))
    described = tmp_path / "ijb.npz"
    np.savez(described, descriptors=rows, labels=np.array([""] * 9), paths=np.array(paths), boxes=boxes)
    head = "TEMPLATE_ID,SUBJECT_ID,FILE,MEDIA_ID,SIGHTING_ID,FRAME,FACE_X,FACE_Y,FACE_WIDTH,FACE_HEIGHT"
    first = [f"{p},{p},img/{p}{n}.jpg,1,1,,12,10,20,30" for p in range(3) for n in range(2)]
    (tmp_path / "gallery.csv").write_text("\n".join([head, *first]))
    second = [f"{10 + p},{p},img/{p}2.jpg,9,11,20,30" for p in range(3)]
    second += [
        "13,0,img/02.jpg,9,80,80,20,20",
        "14,7,img/02.jpg,9,11,20,30",
    ]  # beside the face; not in the gallery
    head = "TEMPLATE_ID,SUBJECT_ID,FILENAME,FACE_X,FACE_Y,FACE_WIDTH,FACE_HEIGHT"  # as IJB-B calls it
    (tmp_path / "probes.csv").write_text("\n".join([head, *second]))
    gallery = read_templates(tmp_path / "gallery.csv", described)
    assert [(one.subject, one.rows, one.missed) for one in gallery] == [
        ("0", (0, 1), 0), ("1", (3, 4), 0), ("2", (6, 7), 0),
    ]  # fmt: skip
    settings = identify.Settings(
        methods=["mean"],
        benchmark=described,
        gallery=tmp_path / "gallery.csv",
        probes=tmp_path / "probes.csv",
    )
    record = identify.run(settings)
    assert "75" in identify.tables(record)[0].markdown()
    assert record.row("descriptor").values["tpir1"] == [75.0], "three of four, since one face was not found"
    assert record.extra["faces_not_found"] == 1
    with pytest.raises(InvalidInputError, match="belong together"):
        identify.Settings(benchmark=described)
