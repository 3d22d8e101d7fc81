"""Searching photos and videos together, apart, and whole videos, on the command line."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from setnet.cli.search import app


@pytest.fixture
def search(filmed: Path, portrait_file: Callable[[str], Path]) -> Callable[..., Any]:
    """Return a call of `setnet search` for people by their portraits."""

    def call(*words: str) -> Any:
        given = [str(portrait_file(word)) if word.startswith("P0") else word for word in words]
        return CliRunner().invoke(app, [*given, "--library", str(filmed)])

    return call


def test_shots_and_photos_are_one_answer_or_kept_apart(search: Callable[..., Any], filmed: Path) -> None:
    video = str(filmed.parent / "photos" / "party.webm")
    both = json.loads(search("P001", "P003", "--json").stdout)["hits"]
    assert (both[0]["photo"], both[0]["kind"]) == (video, "video")
    assert both[0]["from"] == pytest.approx(3.0, abs=0.5)
    assert both[0]["to"] == pytest.approx(6.0, abs=0.5)
    assert {hit["kind"] for hit in both} == {"video", "photo"}
    for kind in ("video", "photo"):
        hits = json.loads(search("P001", "P003", "--kind", kind, "--json").stdout)["hits"]
        assert hits == [hit for hit in both if hit["kind"] == kind]
    assert "party.webm 00:0" in search("P001", "P003", "--kind", "video").stdout


def test_whole_videos_are_ranked_by_who_is_anywhere_in_them(search: Callable[..., Any], filmed: Path) -> None:
    (video,) = json.loads(search("P001", "P005", "--in-video", "--json").stdout)["videos"]
    assert video["photo"] == str(filmed.parent / "photos" / "party.webm")
    assert "party.webm" in search("P001", "P005", "--in-video").stdout


def test_a_video_is_handed_on_once_with_times_of_shots(search: Callable[..., Any], tmp_path: Path) -> None:
    hits = json.loads(search("P001", "P005", "--kind", "video", "--json").stdout)["hits"]
    assert len(hits) == 2
    rows = list(csv.DictReader(search("P001", "P005", "--kind", "video", "--csv").stdout.splitlines()))
    assert [(row["from"], row["to"]) for row in rows] == [(str(hit["from"]), str(hit["to"])) for hit in hits]
    done = search("P001", "P005", "--kind", "video", "--copy-to", str(tmp_path))
    assert done.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["party.webm"]


def test_what_does_not_go_with_whole_videos_is_refused(search: Callable[..., Any]) -> None:
    done = search("P001", "--in-video", "--csv")
    assert done.exit_code != 0
    assert "--in-video lists videos" in str(done.exception)
