from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from PIL import Image

from setnet.library import DuplicateGroup, find_duplicates


def names(groups: Sequence[DuplicateGroup]) -> list[list[str]]:
    return [[path.name for path in group.photos] for group in groups]


def test_copies_are_found_and_different_photos_are_not(planted: Path) -> None:
    before = sorted(planted.rglob("*"))
    failed: list[tuple[Path, str]] = []
    stages: list[str] = []
    groups = find_duplicates(
        [planted],
        workers=0,
        on_failure=lambda path, reason: failed.append((path, reason)),
        progress=lambda stage, done, total: stages.append(stage),
    )
    assert names(groups) == [["P001.jpg", "cropped.png", "small.jpg"], ["P003.jpg", "mirrored.jpg"]]
    assert [path.name for path, _ in failed] == ["broken.jpg"]
    assert list(dict.fromkeys(stages)) == ["reading", "comparing", "verifying"]
    assert sorted(planted.rglob("*")) == before, "nothing is written beside the photos"


def test_worker_processes_find_the_same_in_any_order(planted: Path) -> None:
    photos = [path for path in sorted(planted.rglob("*")) if path.is_file()]
    alone = find_duplicates(photos, workers=0)
    assert find_duplicates(photos[::-1], workers=2) == alone
    assert find_duplicates([*photos, *photos, planted], workers=0) == alone


def test_the_same_bytes_are_copies_also_of_a_flat_photo_and_links_are_not(tmp_path: Path) -> None:
    Image.new("RGB", (60, 40), "gray").save(tmp_path / "b.png")
    Image.new("RGB", (50, 40), "white").save(tmp_path / "c.png")
    shutil.copy(tmp_path / "b.png", tmp_path / "d.png")
    os.symlink(tmp_path / "b.png", tmp_path / "a.png")
    assert names(find_duplicates([tmp_path], workers=0)) == [["b.png", "d.png"]]


def test_no_photos_and_missing_ones_are_no_error(tmp_path: Path) -> None:
    failed: list[Path] = []
    assert find_duplicates([], workers=0) == []
    gone = tmp_path / "gone.jpg"
    assert find_duplicates([gone], workers=0, on_failure=lambda path, _: failed.append(path)) == []
    assert failed == [gone]
