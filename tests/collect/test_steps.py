from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from setnet.collect import (
    AnnotationQueue,
    Answer,
    CollectedSet,
    CollectRun,
    run_all,
    run_status,
    run_step,
    write_result,
)
from setnet.evaluate.worlds import CollectedWorld
from tests.collect.conftest import NAMES, PHOTOS, Archive, new_run


def names_in(row: dict[str, Any]) -> list[str | None]:
    """Return the names of a photo's faces from left to right."""
    return [face["name"] for face in sorted(row["faces"], key=lambda face: face["box"][0])]


def test_every_photo_has_a_row_that_says_why_it_was_kept_or_dropped(finished: CollectRun) -> None:
    fate = {}
    for step in ("photos", "faces", "duplicates", "labels"):
        for row in finished.manifest(step).rows():
            fate[Path(row["photo"]).name] = "kept" if row["kept"] else f"{step}: {row['reason']}"
    assert fate == {
        "one.jpg": "kept",
        "two.jpg": "kept",
        "three.jpg": "kept",
        "four.jpg": "kept",
        "alone.jpg": "faces: too few faces",
        "five.jpg": "kept",
        "six.jpg": "kept",
        "seven.jpg": "kept",
        "others.jpg": "photos: found by no pair",
        "single.jpg": "photos: found by no pair",
    }


def test_a_portrait_without_a_face_is_named_and_left_out(finished: CollectRun) -> None:
    dropped = [row for row in finished.manifest("portraits").rows() if not row["kept"]]
    assert [(Path(row["portrait"]).name, row["reason"]) for row in dropped] == [("landscape.jpg", "no face")]


def test_labels_are_true(finished: CollectRun) -> None:
    truth = {Path(photo).name: [NAMES.get(p) for p in people] for photo, people, _ in PHOTOS}
    for row in finished.manifest("labels").kept_rows():
        assert names_in(row) == truth[Path(row["photo"]).name], row["photo"]


def test_with_few_names_unknown_people_are_no_questions(finished: CollectRun) -> None:
    others = [
        face for row in finished.manifest("labels").kept_rows() for face in row["faces"] if not face["name"]
    ]
    assert len(others) == 2
    assert AnnotationQueue(finished).questions == []


def test_a_second_run_does_nothing_again(finished: CollectRun) -> None:
    reports = list(run_all(finished, workers=0))
    assert [report.name for report in reports if not report.was_done] == ["names"]


def test_an_interrupted_search_for_faces_goes_on_where_it_stopped(
    own_run: CollectRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    from setnet.collect import faces

    whole = list(own_run.manifest("faces").rows())
    seen: list[str] = []
    original = faces.face_row

    def cut_short(photo: str, *rest: Any) -> Any:
        if len(seen) == 3:
            raise KeyboardInterrupt
        seen.append(photo)
        return original(photo, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(faces, "face_row", cut_short)
        with pytest.raises(KeyboardInterrupt):
            run_step(own_run, "faces", again=True, workers=0)
    assert {s.name: s.state for s in run_status(own_run).steps}["faces"] == "cut short"
    resumed: list[str] = []

    def noted(photo: str, *rest: Any) -> Any:
        resumed.append(photo)
        return original(photo, *rest)

    monkeypatch.setattr(faces, "face_row", noted)
    run_step(own_run, "faces", workers=0)
    assert list(own_run.manifest("faces").rows()) == whole
    assert not set(seen) & set(resumed)


def test_copies_and_portraits_among_the_photos_are_dropped(archive: Archive, tmp_path: Path) -> None:
    from PIL import Image

    photos = tmp_path / "photos"
    shutil.copytree(archive.photos / "gala", photos)
    with Image.open(photos / "one.jpg") as image:
        image.resize((432, 240)).save(photos / "small copy of one.jpg", quality=70)
    with (photos / "captions.csv").open("a", encoding="utf-8") as table:
        table.write("small copy of one.jpg,Ann Cole and Zoë Ray\n")
    shutil.copytree(archive.portraits, tmp_path / "portraits")
    shutil.copyfile(photos / "four.jpg", tmp_path / "portraits" / "Ann_Cole" / "four.jpg")
    run = new_run(tmp_path / "run", Archive(tmp_path / "portraits", photos))
    for step in ("names", "portraits", "captions", "pairs", "photos", "faces", "duplicates"):
        run_step(run, step, workers=0)
    rows = {Path(row["photo"]).name: row for row in run.manifest("duplicates").rows()}
    dropped = {
        name: (row["reason"], Path(row["detail"]).name) for name, row in rows.items() if not row["kept"]
    }
    assert dropped == {
        "small copy of one.jpg": ("near-duplicate", "one.jpg"),
        "four.jpg": ("in another collection", "four.jpg"),
    }


def test_the_data_set_is_complete_and_training_and_evaluation_read_it(
    own_run: CollectRun, tmp_path: Path
) -> None:
    queue = AnnotationQueue(own_run)
    while (number := queue.next()) is not None:
        queue.answer(number, Answer("unknown"))
    own_run = CollectRun.begin(own_run.path, split=(0.5, 0.0, 0.5), seed=1)
    write_result(own_run, tmp_path / "set")
    made = CollectedSet(tmp_path / "set")
    assert {Path(row["photo"]).name for row in made.rows()} <= {Path(photo).name for photo, _, _ in PHOTOS}
    assert all(made.photo_file(row).is_file() for row in made.rows())
    with_library = pytest.importorskip("setnet.library")
    with with_library.Library.create(tmp_path / "library") as library:
        report = library.index([tmp_path / "set"], workers=0)
    assert report.added == sum(1 for _ in made.rows())
    assert CollectedWorld(made).size == sum(1 for _ in made.rows("test"))
    learn = pytest.importorskip("setnet.train")
    pytest.importorskip("torch", reason="training needs the extra 'train'")
    source = learn.DescriptorSource.open(tmp_path / "set")
    assert source.people == len(made.splits["train"])
