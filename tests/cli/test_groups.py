"""Unknown faces discovered, named, hidden and suggested on the command line, on real photos."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import setnet


def answered(library: Path, *words: object, code: int = 0) -> Any:
    done = setnet(library, *words, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def library(made: Any, tmp_path: Path) -> Path:
    """A library of the album in which nobody is saved."""
    shutil.copytree(made.library, tmp_path / "library")
    return tmp_path / "library"


def group_of(library: Path, *files: str) -> str:
    """Return the group whose faces are in these photos."""
    for group in answered(library, "people", "discover")["groups"]:
        if sorted(Path(face["photo"]).name for face in group["faces"]) == sorted(files):
            return str(group["id"])
    raise AssertionError(f"no group of {files}")


def test_without_portraits_naming_three_groups_leads_to_two_people_without_a_third(library: Path) -> None:
    listed = setnet(library, "people", "discover")
    assert "g1" in listed.stdout
    assert "3 groups without a name" in listed.stderr
    for name, files in {
        "Cleo": ("alone.jpg", "pair.jpg", "three.jpg"),
        "Anna": ("pair.jpg", "three.jpg"),
        "Eva": ("others.jpg", "three.jpg"),
    }.items():
        assert setnet(library, "people", "name", group_of(library, *files), name).returncode == 0
    found = answered(library, "search", "anna", "cleo", "--without", "eva", "--all")
    assert [Path(hit["photo"]).name for hit in found["hits"]] == ["pair.jpg"]
    photos = answered(library, "people", "photos", "cleo")
    assert [photo["name"] for photo in photos["photos"]] == ["three.jpg", "alone.jpg", "pair.jpg"]
    assert "by group" not in setnet(library, "people", "photos", "Cleo").stdout


def test_the_json_has_all_groups_with_faces_numbered_from_the_left(library: Path) -> None:
    setnet(library, "people", "hide", "g1")
    groups = answered(library, "people", "discover", "--min-faces", "3")["groups"]
    assert {group["id"]: len(group["faces"]) for group in groups} == {"g1": 3, "g2": 2, "g3": 2, "g4": 1}
    largest = next(group for group in groups if group["id"] == "g1")
    assert (largest["name"], largest["hidden"]) == (None, True)
    assert {(Path(f["photo"]).name, f["face"]) for f in largest["faces"]} == {
        ("alone.jpg", 1), ("pair.jpg", 2), ("three.jpg", 3),
    }  # fmt: skip
    assert all(len(face["box"]) == 4 for group in groups for face in group["faces"])


def test_groups_are_hidden_listed_again_and_undone(library: Path) -> None:
    assert "g1" not in setnet(library, "people", "hide", "g1", "g2").stderr
    assert "g1" not in setnet(library, "people", "discover").stdout
    assert "(hidden)" in setnet(library, "people", "discover", "--all").stdout
    assert answered(library, "people", "unhide", "g1")["groups"][0]["hidden"] is False
    assert "g1" in setnet(library, "people", "discover").stdout
    setnet(library, "people", "undo")
    setnet(library, "people", "undo")
    assert "g2" in setnet(library, "people", "discover").stdout


def test_faces_are_left_out_by_photo_and_number(library: Path, made: Any) -> None:
    group = group_of(library, "alone.jpg", "pair.jpg", "three.jpg")
    photo = made.photos / "2016" / "pair.jpg"
    assert setnet(library, "people", "name", group, "Cleo", "--without", f"{photo}#1").returncode == 2
    done = setnet(library, "people", "name", group, "Cleo", "--without", f"{photo}#2")
    assert "2 faces" in done.stdout
    assert answered(library, "people", "photos", "Cleo")["total"] == 2


def test_a_name_that_is_taken_needs_consent(library: Path) -> None:
    setnet(library, "people", "name", "g1", "Anna")
    refused = setnet(library, "people", "name", "g2", "Anna")
    assert refused.returncode == 2
    assert "--to-existing" in refused.stderr
    assert "if_exists" not in refused.stderr
    assert setnet(library, "people", "name", "g2", "Anna", "--to-existing").returncode == 0
    assert "Anna" in setnet(library, "people", "discover", "--all").stdout


def test_a_sheet_shows_the_groups(library: Path, tmp_path: Path) -> None:
    assert setnet(library, "people", "discover", "--sheet", tmp_path / "groups.html").returncode == 0
    page = (tmp_path / "groups.html").read_text()
    assert page.count("<h2>") == 3
    assert page.count("data:image/jpeg") == 7
    wrong = setnet(library, "people", "discover", "--sheet", tmp_path / "groups.txt")
    assert (wrong.returncode, "a sheet is an .html file" in wrong.stderr) == (2, True)


def test_suggestions_are_answered_by_one_key(
    library: Path, portrait_file: Callable[[str], Path], made: Any
) -> None:
    listed = setnet(library, "people", "suggest")
    assert "no group without a name" in listed.stderr
    setnet(library, "people", "add", "Cleo", portrait_file("P003"))
    assert answered(library, "people", "suggest")["suggestions"][0]["person"] == "Cleo"
    assert "Cleo" in setnet(library, "people", "suggest", "cleo").stdout
    assert "Is g1 (3 faces) Cleo?" in setnet(library, "people", "suggest", keys="xq").stderr
    assert answered(library, "people", "discover", "--again")["groups"][0]["name"] == "Cleo"
    setnet(library, "people", "undo")
    setnet(library, "people", "add", "Cleo", portrait_file("P003"))
    setnet(library, "people", "suggest", keys="s")
    assert answered(library, "people", "history")["changes"][0]["kind"] == "add"
    setnet(library, "people", "suggest", keys="n")
    assert answered(library, "people", "history")["changes"][0]["kind"] == "reject group"
    setnet(library, "people", "undo")
    setnet(library, "people", "suggest", "Cleo", keys="y")
    assert answered(library, "people", "photos", "Cleo")["total"] == 3


def test_what_is_not_there_is_said(library: Path) -> None:
    for words in (("name", "g99", "Anna"), ("hide", "g1", "anna"), ("photos", "nobody"), ("suggest", "no")):
        done = setnet(library, "people", *words)
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert setnet(library, "search", "g99").returncode == 2
