"""Collecting as an experiment: some of LFW's people, in composed photos with captions."""

from __future__ import annotations

from pathlib import Path

import pytest

from setnet.evaluate.people import read_split
from setnet.evaluate.record import mean_and_error
from studies.collecting import DROPPED, ERRS, KNOWS, RULES, Settings, run
from tests.support.lfw_sample import LFW, needs_lfw


@pytest.fixture
def some_people(tmp_path: Path) -> Path:
    """A folder like LFW's with people of the test half: 25 of four or five pictures, and 20 of one."""
    test = read_split().test
    folders = [folder for folder in sorted((LFW / "images").iterdir()) if folder.name in test]
    pictures = {folder: len(list(folder.iterdir())) for folder in folders}
    listed = [folder for folder in folders if pictures[folder] in (4, 5)][:25]
    for folder in (*listed, *[folder for folder in folders if pictures[folder] == 1][:20]):
        (tmp_path / "lfw").mkdir(exist_ok=True)
        (tmp_path / "lfw" / folder.name).symlink_to(folder)
    return tmp_path / "lfw"


@needs_lfw
def test_pairs_copies_and_labels_are_right(some_people: Path, tmp_path: Path) -> None:
    lists, work = LFW / "lists" / "multi_person_photos.json", tmp_path / "work"
    record = run(
        Settings(lfw=some_people, lists=lists, work=work, count=24, detector="yunet", seed=1, workers=0)
    )
    at = {
        row.name: {name: mean_and_error(values)[0] for name, values in row.values.items()}
        for row in record.rows
    }
    assert set(at) == {RULES, DROPPED, KNOWS, ERRS}
    assert min(at[name]["precision"] for name in (RULES, DROPPED, KNOWS)) >= 95
    assert at[KNOWS]["accuracy"] >= max(at[RULES]["accuracy"], at[ERRS]["accuracy"])
    assert record.extra["pairs_precision"] >= 80
    assert record.extra["pairs_recall"] >= 40
    assert record.extra["dropped_wrongly"] == 0
    assert record.extra["copies_found"] >= record.extra["copies"] - 1
