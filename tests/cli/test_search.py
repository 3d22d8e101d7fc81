"""`setnet search`: copies in the results, videos, and photos taken elsewhere."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from typer.testing import CliRunner

from setnet.cli.search import app, copy_photos, print_csv, print_paths
from setnet.errors import StorageError
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


def test_a_video_is_handed_on_once_with_times_of_shots(search: Callable[..., Any], tmp_path: Path) -> None:
    hits = json.loads(search("P001", "P005", "--kind", "video", "--json").stdout)["hits"]
    assert len(hits) == 2
    rows = list(csv.DictReader(search("P001", "P005", "--kind", "video", "--csv").stdout.splitlines()))
    assert [(row["from"], row["to"]) for row in rows] == [(str(hit["from"]), str(hit["to"])) for hit in hits]
    done = search("P001", "P005", "--kind", "video", "--copy-to", str(tmp_path))
    assert done.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["party.webm"]


def hits(*photos: Path) -> Any:
    return [SimpleNamespace(path=photo) for photo in photos]


@pytest.fixture
def photos(tmp_path: Path) -> tuple[Path, Path]:
    """Two photos with the same name in two folders."""
    for year in ("2019", "2020"):
        (tmp_path / year).mkdir()
        (tmp_path / year / "both.jpg").write_text(year)
    return tmp_path / "2019" / "both.jpg", tmp_path / "2020" / "both.jpg"


def test_photos_of_one_name_are_numbered_and_a_second_time_changes_nothing(
    photos: tuple[Path, Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "both.jpg").write_text("somebody else's")
    for _ in range(2):
        assert copy_photos(hits(*photos), out)
        texts = {path.name: path.read_text() for path in out.iterdir()}
        assert texts == {"both.jpg": "somebody else's", "both (2).jpg": "2019", "both (3).jpg": "2020"}


def test_a_photo_that_is_gone_does_not_stop_the_others(photos: tuple[Path, Path], tmp_path: Path) -> None:
    photos[0].unlink()
    out = tmp_path / "out"
    out.mkdir()
    assert not copy_photos(hits(*photos), out)
    assert [path.read_text() for path in out.iterdir()] == ["2020"]


@pytest.mark.parametrize("step", ["copy2", "replace"])
def test_a_full_disk_leaves_no_half_of_a_copy(
    step: str, photos: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*{"copy2": (shutil, "copy2"), "replace": (Path, "replace")}[step], full)
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(StorageError, match=r"cannot write .*both\.jpg: No space left on device"):
        copy_photos(hits(*photos), out)
    assert not list(out.iterdir())


@pytest.mark.parametrize("is_terminal", [False, True])
def test_control_characters_go_to_programs_but_not_to_a_terminal(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    path = Path("/photos/a\x1b[31m\nb.jpg")
    photo = SimpleNamespace(stored_path=os.fsencode(path))
    facts: dict[str, Any] = {"faces": [{}], "taken": None}
    hit: Any = SimpleNamespace(photo=photo, path=path, score=1.0, matches=(), to_dict=lambda: facts)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    print_paths([hit])
    sys.stdout.flush()
    assert capfdbinary.readouterr().out == (
        b"/photos/a\\x1b[31m\\nb.jpg\n" if is_terminal else os.fsencode(path) + b"\n"
    )
    print_csv([hit])
    sys.stdout.flush()
    assert (b"\x1b" in capfdbinary.readouterr().out) is not is_terminal
