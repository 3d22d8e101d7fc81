from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from setnet.collect import CollectRun, duplicates
from setnet.collect.run import Work
from setnet.library import DuplicateGroup
from tests.support.invented_collect import invented_run, name_of, write


def copies(paths: Sequence[bytes], **_: Any) -> Any:
    """Group photos whose names begin alike, as if they were copies."""
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
) -> dict[str, str]:
    faces = [
        {"photo": f"/archive/{name}.jpg", "kept": True, "query": [name_of(person) for person in query]}
        for name, query in photos.items()
    ]
    write(run, "faces", faces)
    monkeypatch.setattr(duplicates, "group_duplicates", copies)
    rows = duplicates.duplicate_rows(run, Work(set(), 0))
    return {Path(row["photo"]).stem: row.get("reason", "kept") for row in rows}


def test_the_largest_of_a_group_is_kept(run: CollectRun, monkeypatch: pytest.MonkeyPatch) -> None:
    found = rows_of(run, {"x-1": (1,), "x-22": (1, 2), "x-333": (2,)}, monkeypatch)
    assert found == {"x-1": "kept", "x-22": "near-duplicate", "x-333": "near-duplicate"}


def test_a_photo_that_is_a_portrait_or_excluded_is_dropped_with_its_copies(
    run: CollectRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "test-set.jpg").touch()
    run = CollectRun.begin(run.path, exclude=[tmp_path / "other"])
    found = rows_of(run, {"seen-1": (0,), "seen-2": (0,), "test-1": (3,), "free": (0, 3)}, monkeypatch)
    dropped = "in another collection"
    assert found == {"seen-1": dropped, "seen-2": dropped, "test-1": dropped, "free": "kept"}
