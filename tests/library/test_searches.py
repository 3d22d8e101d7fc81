"""Saved searches: kept twice, undone, forgotten, and folders of links that follow them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from setnet.errors import InvalidInputError
from setnet.library import Example, Library, SavedSearch
from tests.support import invented_photos
from tests.support.invented_photos import face_of


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """A library of three photos, in which Anna, Ben and Cleo are saved."""
    with Library.create(tmp_path / "library") as library:
        invented_photos.store(library, {"both.jpg": [1, 2], "anna.jpg": [1], "cleo.jpg": [3]})
        for number, name in enumerate(("Anna", "Ben", "Cleo"), 1):
            library.people.add(name, [Example(face_of(number))])
        yield library


def test_a_saved_search_finds_what_its_query_finds(library: Library) -> None:
    saved = library.searches.save(SavedSearch("Us", ("anna", "Ben"), at_least=2, only=True))
    assert saved.people == ("Anna", "Ben")
    assert [hit.path.name for hit in library.search(library.searches.get("US").query()).hits] == ["both.jpg"]
    assert list(library.searches) == [saved]
    library.searches.save(SavedSearch("us", ("Cleo",), min_faces=1))
    assert [search.people for search in library.searches] == [("Cleo",)]
    with pytest.raises(InvalidInputError, match="no saved search 'usa': there are us; did you mean us"):
        library.searches.get("usa")
    with pytest.raises(InvalidInputError, match="no person 'Dora'"):
        library.searches.save(SavedSearch("Us", ("Dora",)))
    with pytest.raises(InvalidInputError, match="at least 2 of 1 people"):
        library.searches.save(SavedSearch("Us", ("Anna",), at_least=2))


def test_searches_follow_names_and_merges_and_are_undone(library: Library) -> None:
    library.searches.save(SavedSearch("Us", ("Anna", "Ben"), at_least=2))
    library.people.rename("Anna", "Anne")
    library.people.merge("Cleo", ["Ben"], if_unlike="merge")
    assert [search.people for search in library.searches] == [("Anne", "Cleo")]
    library.people.undo()
    assert [search.people for search in library.searches] == [("Anne", "Ben")]
    library.people.undo(library.searches.remove("Us").id)
    assert [search.name for search in library.searches] == ["Us"]
    library.people.remove("Ben")
    (search,) = library.searches
    with pytest.raises(InvalidInputError, match="'somebody removed' is neither a saved person"):
        library.search(search.query())


def test_searches_survive_the_loss_of_the_database_and_leave_with_their_people(library: Library) -> None:
    library.searches.save(SavedSearch("Quite us", ("Anna", "Ben")))
    library.searches.save(SavedSearch("Cleo alone", ("Cleo",), only=True))
    place = library.path
    library.close()
    (place / "library.db").unlink()
    Library.repair(place)
    with Library.open(place) as repaired:
        assert [search.name for search in repaired.searches] == ["Cleo alone", "Quite us"]
        repaired.people.remove("Ben", for_good=True)
        assert [search.name for search in repaired.searches] == ["Cleo alone"]
        assert not repaired.check()
    left = [file for file in place.rglob("*") if file.is_file() and b"Quite us" in file.read_bytes()]
    assert left == []


def test_links_follow_a_search_and_nothing_else_is_touched(photos_folder: Path, tmp_path: Path) -> None:
    folder, photos = tmp_path / "us", photos_folder
    with Library.create(tmp_path / "library") as library:
        for name, people in {"a.jpg": [1, 2], "b.jpg": [1], "c.jpg": [2, 1]}.items():
            invented_photos.store_file(library, photos / name, people)
        with library._database.writing() as db:
            db.execute("INSERT INTO folders VALUES (?, 0)", (bytes(photos),))
        for number, name in enumerate(("Anna", "Ben"), 1):
            library.people.add(name, [Example(face_of(number))])
        search = library.searches.save(SavedSearch("Us", ("Anna", "Ben"), at_least=2, link_to=str(folder)))
        assert library.searches.update_all_links() == []
        (folder / "mine.txt").write_text("stays")
        (folder / "elsewhere.jpg").symlink_to("/nowhere/elsewhere.jpg")
        mine = {"mine.txt", "elsewhere.jpg"}
        assert {link.name for link in folder.iterdir()} == mine | {"a.jpg", "c.jpg"}
        assert (folder / "a.jpg").readlink() == photos / "a.jpg"
        invented_photos.store_file(library, photos / "more" / "a.jpg", [2, 1])
        (gone,) = [photo.id for photo in library.photos.all_photos() if photo.path.name == "c.jpg"]
        invented_photos.remove(library, [gone])
        assert library.searches.update_links(search) == library.searches.update_links(search) == []
        assert {link.name for link in folder.iterdir()} == mine | {"a.jpg", "a (2).jpg"}
        (blocked,) = library.searches.update_links(
            library.searches.save(SavedSearch("Us", ("Anna",), link_to=str(folder / "mine.txt")))
        )
        assert "are not up to date" in blocked


def test_an_index_run_that_finds_a_change_brings_links_up_to_date(
    photos_folder: Path, tmp_path: Path
) -> None:
    with Library.create(tmp_path / "library") as library:
        for name in ("kept/a.jpg", "gone/b.jpg"):
            invented_photos.store_file(library, photos_folder / name, [1])
        with library._database.writing() as db:
            db.execute("INSERT INTO folders VALUES (?, 0)", (bytes(photos_folder),))
        library.people.add("Anna", [Example(face_of(1))])
        folder = tmp_path / "anna"
        library.searches.update_links(
            library.searches.save(SavedSearch("Anna", ("Anna",), link_to=str(folder)))
        )
        assert {link.name for link in folder.iterdir()} == {"a.jpg", "b.jpg"}
        (photos_folder / "gone" / "b.jpg").unlink()
        assert library.index([photos_folder / "gone"], workers=0, prune=True).removed == 1
        assert {link.name for link in folder.iterdir()} == {"a.jpg"}


@pytest.fixture
def photos_folder(tmp_path: Path) -> Path:
    """A folder for photos."""
    (tmp_path / "photos").mkdir()
    return tmp_path / "photos"


def test_the_command_line_saves_runs_lists_and_removes_a_search(library: Library, tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from setnet.cli import search, searches

    place = ["--library", str(library.path)]

    def said(app: Any, *words: str) -> str:
        done = CliRunner().invoke(app, [*words, *place])
        assert done.exit_code in (0, 1), done.output
        return done.output

    first = said(search.app, "anna", "ben", "--all", "--save", "Us two", "--link-to", str(tmp_path / "us"))
    assert "saved: setnet search --saved 'Us two'" in first
    assert "both.jpg" in said(search.app, "--saved", "us two")
    assert "Us two" in said(searches.app, "list")
    assert "Anna, Ben" in said(searches.app, "list")
    assert "removed the search Us two" in said(searches.app, "remove", "Us two")
    assert "no search is saved" in said(searches.app, "list")
