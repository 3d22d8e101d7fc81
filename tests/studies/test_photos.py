"""End-to-end search in a few composed photos of LFW pictures."""

from __future__ import annotations

from pathlib import Path

import pytest

from setnet.errors import InvalidInputError
from setnet.evaluate.record import mean_and_error
from studies import photos
from studies.album import compose_album
from studies.photos import DETECTED
from tests.support.lfw_sample import LFW, needs_lfw


def test_a_folder_that_is_not_lfw_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="LFW's folders"):
        compose_album(tmp_path, tmp_path / "none.json", tmp_path / "out", 3)


@needs_lfw
def test_photos_are_composed_searched_and_shown(tmp_path: Path) -> None:
    lists = LFW / "lists" / "multi_person_photos.json"
    sheets = tmp_path / "sheets"
    record = photos.run(
        photos.Settings(
            lfw=LFW / "images", lists=lists, work=tmp_path, count=14, queries=5, repeats=1, sheets=sheets
        )
    )
    at = {row.name: mean_and_error(row.values["ndcg10"])[0] for row in record.rows}
    assert set(at) == {DETECTED, "exact", "fast", "set"}
    assert at["exact"] > 80
    assert record.extra["losses"]["detector: faces not found"] == pytest.approx(100 - at[DETECTED])
    assert record.extra["faces_found"] > 0.8 * record.extra["faces_placed"]
    assert all(sheet.stat().st_size > 20_000 for sheet in sheets.glob("*.html"))
    assert len([*sheets.iterdir()]) == photos.SHEETS
    with pytest.raises(InvalidInputError, match="choose another folder"):
        compose_album(LFW / "images", lists, tmp_path, 15)
