"""Copies in the results of `setnet search`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from setnet.cli.search.command import app
from setnet.library import Library


def test_copies_are_one_row_and_nothing_is_lost_to_other_programs(made: Any, tmp_path: Path) -> None:
    shutil.copytree(made.photos, tmp_path / "photos")
    shutil.copy(tmp_path / "photos" / "2016" / "pair.jpg", tmp_path / "photos" / "again.jpg")
    with Library.create(tmp_path / "library") as library:
        library.index([tmp_path / "photos"], workers=0)

    def said(*options: str) -> str:
        place = ["--library", str(tmp_path / "library")]
        done = CliRunner().invoke(app, [str(tmp_path / "photos" / "2016" / "pair.jpg#1"), *place, *options])
        assert done.exit_code == 0, done.output
        return done.output

    table = said()
    assert "(and 1 copy)" in table
    rows = [line for line in table.splitlines() if ".jpg" in line]
    every = json.loads(said("--json"))["hits"]
    assert len(every) == len(rows) + 1
    assert all(hit["copies"] == hit["others"] == [] for hit in every)
    few = json.loads(said("--json", "--collapse"))
    assert len(few["hits"]) == len(rows)
    assert sum(1 + len(hit["copies"]) for hit in few["hits"]) == len(every)
    assert len(said("--paths").splitlines()) == len(every)
    assert "copy" not in said("--no-collapse")
