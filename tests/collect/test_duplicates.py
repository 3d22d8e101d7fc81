from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from setnet.collect import CollectRun, duplicates
from setnet.collect.run import Work
from setnet.library import DuplicateGroup
from setnet.library.duplicates import DescribedPhoto
from tests.support.invented_collect import invented_run, name_of, write


class Copies:
    """Groups photos whose names begin alike, as if they were copies; remembers what was read."""

    def __init__(self) -> None:
        self.read: list[str] = []
        self.together: list[set[str]] = []

    def __call__(self, paths: Sequence[bytes], *, known: Any, on_described: Any, **_: Any) -> Any:
        self.together.append({Path(os.fsdecode(path)).stem for path in paths})
        fresh = [DescribedPhoto(path, b"", 1, None) for path in paths if path not in known]  # type: ignore[arg-type]
        self.read += [Path(os.fsdecode(photo.path)).stem for photo in fresh]
        on_described(fresh)
        alike: dict[str, dict[Path, int]] = {}
        for path in map(Path, map(os.fsdecode, paths)):
            alike.setdefault(path.stem.split("-")[0], {})[path] = 100 - len(path.stem)
        return [DuplicateGroup.of(group) for group in alike.values() if len(group) > 1]


@pytest.fixture
def run(tmp_path: Path) -> CollectRun:
    made: CollectRun = invented_run(tmp_path, 4, [(0, 1)])
    portraits = [{"portrait": str(tmp_path / "seen-portrait.jpg"), "name": name_of(0), "kept": True}]
    write(made, "portraits", portraits)
    return made


def rows_of(
    run: CollectRun, photos: dict[str, tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, str], Copies]:
    faces = [
        {"photo": f"/archive/{name}.jpg", "kept": True, "query": [name_of(person) for person in query]}
        for name, query in photos.items()
    ]
    write(run, "faces", faces)
    copies = Copies()
    monkeypatch.setattr(duplicates, "group_duplicates", copies)
    rows = duplicates.duplicate_rows(run, Work(set(), 0))
    return {Path(row["photo"]).stem: row.get("reason", "kept") for row in rows}, copies


def test_photos_are_compared_per_person_and_read_once(
    run: CollectRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, copies = rows_of(run, {"a": (0, 1), "b": (1, 2), "c": (3,)}, monkeypatch)
    assert copies.together == [{"a", "seen-portrait"}, {"a", "b"}, {"b"}, {"c"}]
    assert sorted(copies.read) == ["a", "b", "c", "seen-portrait"]


def test_groups_of_two_people_that_share_a_photo_are_one(
    run: CollectRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    # x-1 and x-333 have nobody in common; x-22 is with both
    found, _ = rows_of(run, {"x-1": (1,), "x-22": (1, 2), "x-333": (2,)}, monkeypatch)
    assert found == {"x-1": "kept", "x-22": "near-duplicate", "x-333": "near-duplicate"}


def test_a_photo_that_is_a_portrait_or_excluded_is_dropped_with_its_copies(
    run: CollectRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "test-set.jpg").touch()
    run = CollectRun.begin(run.path, exclude=[tmp_path / "other"])
    found, _ = rows_of(run, {"seen-1": (0,), "seen-2": (0,), "test-1": (3,), "free": (0, 3)}, monkeypatch)
    dropped = "in another collection"
    assert found == {"seen-1": dropped, "seen-2": dropped, "test-1": dropped, "free": "kept"}
