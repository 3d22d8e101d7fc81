"""People saved, edited, undone, exported and imported on the command line, on real photos."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import setnet


def answered(library: Path, *words: object, code: int = 0) -> Any:
    done = setnet(library, "people", *words, "--json")
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def library(made: Any, tmp_path: Path, portrait_file: Callable[[str], Path]) -> Path:
    """A library of the album in which Anna (P001) is saved by her portrait."""
    shutil.copytree(made.library, tmp_path / "library")
    answered(tmp_path / "library", "add", "Anna", portrait_file("P001"))
    return tmp_path / "library"


@pytest.fixture
def pair(made: Any) -> Path:
    """A photo of P001 on the left and P003 on the right."""
    photo: Path = made.photos / "2016" / "pair.jpg"
    return photo


def test_more_photos_of_the_same_person_are_added_without_question(library: Path, pair: Path) -> None:
    added = answered(library, "add", "Anna", f"{pair}#1")
    assert (added["name"], added["examples"], added["notes"]) == ("Anna", 2, [])
    assert answered(library, "add", "Anna", f"{pair}#1")["notes"] == [
        "1 example face Anna had already: the same face counts once"
    ]


def test_another_spelling_or_another_face_needs_a_yes(library: Path, pair: Path) -> None:
    for words in (("anna", f"{pair}#1"), ("Anna", f"{pair}#2")):
        refused = setnet(library, "people", "add", *words)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "--to-existing" in refused.stderr
        assert "if_exists" not in refused.stderr
        declined = setnet(library, "people", "add", *words, keys="n\n")
        assert declined.returncode == 1
        assert "Go on all the same? [y/N]" in declined.stderr
        assert "nothing was changed" in declined.stderr
    assert len(answered(library, "show", "Anna")["examples"]) == 1
    agreed = setnet(library, "people", "add", "Anna", f"{pair}#2", keys="y\n")
    assert (agreed.returncode, agreed.stdout.strip()) == (0, "Anna: 2 example faces")
    assert "note: these 2 do not look like the same person: look at example 2 of Anna" in agreed.stderr
    assert answered(library, "add", "anna", f"{pair}#1", "--to-existing")["examples"] == 3


def test_a_wrong_example_is_found_and_put_where_it_belongs(library: Path, pair: Path) -> None:
    answered(library, "add", "Anna", f"{pair}#1", f"{pair}#2", "--to-existing")
    shown = setnet(library, "people", "show", "Anna").stdout
    assert "known by 3 example faces" in shown
    assert str(pair) in shown
    examples = answered(library, "examples", "Anna")["examples"]
    assert [(e["number"], e["origin"], e["has_picture"]) for e in examples] == [
        (n, "portrait", True) for n in (1, 2, 3)
    ]
    assert answered(library, "split", "Anna", "Bea", "3")["name"] == "Bea"
    assert answered(library, "move", "Anna", "Bea", "2")["examples"] == 2
    assert answered(library, "undo")["summary"] == "undid: moved 1 example face from Anna to Bea"
    assert answered(library, "examples", "Anna", "--remove", "2")["examples"] == 1
    assert answered(library, "merge", "Anna", "Bea", "--unlike")["examples"] == 2
    changes = answered(library, "history")["changes"]
    assert [change["kind"] for change in changes] == [
        "merge", "remove examples", "undo", "move", "split", "add", "add",
    ]  # fmt: skip
    assert answered(library, "undo", "--change", changes[1]["id"])["undoes"] == changes[1]["id"]
    assert "undone by" in setnet(library, "people", "history").stdout
    missing = setnet(library, "people", "move", "Anna", "Bea", "1")
    assert (missing.returncode, "no person 'Bea'" in missing.stderr) == (2, True)


def test_what_people_are_called_is_edited_and_found(library: Path) -> None:
    edited = answered(library, "edit", "Anna", "--alias", "Annie", "--note", "floor 4", "--cover", "1")
    assert (edited["aliases"], edited["note"], edited["cover"]) == (["Annie"], "floor 4", 1)
    listed = setnet(library, "people", "list").stdout
    assert "Annie" in listed
    assert edited["id"] in listed
    shown = setnet(library, "people", "show", edited["id"]).stdout
    assert "floor 4" in shown
    assert "cover" in shown
    assert json.loads(setnet(library, "search", "annie", "--json").stdout)["hits"]
    assert answered(library, "edit", "Annie", "--no-alias", "annie", "--alias", "A")["aliases"] == ["A"]
    assert setnet(library, "people", "edit", "Anna").returncode == 2


def test_matches_are_confirmed_and_refused_by_their_place_in_a_photo(library: Path, pair: Path) -> None:
    assert answered(library, "confirm", "Anna", f"{pair}#1")["examples"] == 2
    last = answered(library, "show", "Anna")["examples"][-1]
    assert (last["origin"], last["source"], last["has_picture"]) == ("confirmed", str(pair), True)
    assert answered(library, "reject", "Anna", f"{pair}#2")["examples"] == 2
    for place, why in ((pair, "say which"), (f"{pair}#3", "1..2"), (pair.parent / "no.jpg", "index")):
        done = setnet(library, "people", "reject", "Anna", place)
        assert (done.returncode, why in done.stderr) == (2, True), done.stderr


def test_people_start_over_from_a_file(library: Path, pair: Path, made: Any, tmp_path: Path) -> None:
    answered(library, "confirm", "Anna", f"{pair}#1")
    file = tmp_path / "people.json"
    assert answered(library, "export", file, "--without-descriptors")["examples"] == 2
    shutil.copytree(made.library, tmp_path / "other")
    done = setnet(tmp_path / "other", "people", "import", file)
    assert done.returncode == 1  # the portrait is no photo of the library
    assert "1 person in the file, 1 of them new; 1 example face and 1 label added" in done.stdout
    assert "Anna: 1 of 2 example faces" in done.stderr
    answered(library, "export", file)
    assert answered(tmp_path / "other", "import", file)["examples"] == 1
    assert answered(tmp_path / "other", "import", file)["change"] is None


def test_nobody_is_lost_by_a_pipe(library: Path, pair: Path) -> None:
    answered(library, "add", "Ben", f"{pair}#2")
    before = answered(library, "list"), answered(library, "history")
    for words in (["Anna"], ["Anna", "--for-good"]):
        refused = setnet(library, "people", "remove", *words)
        assert refused.returncode == 2
        assert "nobody was removed: without a terminal to ask, --yes says that you mean it" in refused.stderr
    assert (answered(library, "list"), answered(library, "history")) == before
    removed = answered(library, "remove", "Anna", "--yes")
    assert [person["name"] for person in answered(library, "list")["people"]] == ["Ben"]
    assert answered(library, "undo")["undoes"] == removed["changes"][0]
    assert answered(library, "list") == before[0]


def test_removing_asks_at_a_terminal_and_is_undone_until_it_is_for_good(library: Path) -> None:
    kept = setnet(library, "people", "remove", "Anna", keys="n\n")
    assert kept.returncode == 1
    assert "Remove Anna (1 example face)? [y/N]" in kept.stderr
    assert setnet(library, "people", "remove", "Anna", keys="y\n").stdout.strip() == "removed Anna"
    assert setnet(library, "people", "undo").stdout.startswith("undid: removed Anna")
    asked = setnet(library, "people", "remove", "Anna", "--for-good", keys="n\n")
    assert "Delete Anna (1 example face) for good? [y/N]" in asked.stderr
    answered(library, "remove", "Anna", "--yes")
    done = setnet(library, "people", "remove", "anna", "--for-good", keys="y\n")  # who was removed before
    assert done.stdout.strip() == "removed anna for good"
    assert [c["summary"] for c in answered(library, "history")["changes"]] == ["deleted 1 person for good"]
    stopped = setnet(library, "people", "undo")
    assert stopped.returncode == 2
    assert "the last change (deleted 1 person for good) cannot be undone" in stopped.stderr


def test_the_journal_is_erased_when_that_is_confirmed(library: Path) -> None:
    assert setnet(library, "people", "history", "--erase", keys="n\n").returncode == 1
    assert answered(library, "history", "--erase", "--yes") == {"erased": 1}
    assert "no change" in setnet(library, "people", "history").stderr


def test_a_person_is_forgotten_with_their_faces_in_photos(library: Path) -> None:
    photos = answered(library, "photos", "Anna")["sure"]
    asked = setnet(library, "forget", "--person", "anna", keys="n\n")
    assert asked.returncode == 1
    assert f"Delete Anna, and the faces in {photos} photos that are surely theirs, for good?" in asked.stderr
    as_folder = setnet(library, "forget", "Anna", "--yes")
    assert as_folder.returncode == 2
    assert "To forget a person: `setnet forget --person Anna`" in as_folder.stderr
    both = setnet(library, "forget", "--person", "Anna", "--everything", "--yes")
    assert (both.returncode, "say what to forget" in both.stderr) == (2, True)
    done = setnet(library, "forget", "--person", "Anna", "--yes")
    assert done.stdout.strip() == f"forgot Anna, and their faces in {photos} photos"
    assert answered(library, "list")["people"] == []
