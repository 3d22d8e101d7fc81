"""People whom the user tagged in photos: found with certainty, compared with nothing, forgotten with both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import setnet.cli.people  # noqa: F401  adds its commands
from setnet.cli.groups import app
from setnet.errors import InvalidInputError
from setnet.faces import Box
from setnet.library import Example, Library, SavedSearch
from tests.support import invented_photos
from tests.support.invented_photos import face_of, remove, store

PHOTOS = {"anna.jpg": [1], "ben.jpg": [2], "both.jpg": [1, 2], "lake.jpg": [], "stranger.jpg": [9]}
BEN_AT = Box(200, 50, 280, 150)  # where `store` puts the face of 2


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    """A library in which Anna is 1 and Ben is 2."""
    with Library.create(tmp_path / "library") as library:
        store(library, PHOTOS)
        for number, name in enumerate(("Anna", "Ben"), 1):
            library.people.add(name, [Example(face_of(number))])
        yield library


def ids(library: Library) -> dict[str, str]:
    return {photo.path.name: photo.id for photo in library.photos.all_photos()}


def found(library: Library, *people: str, **options: Any) -> list[str]:
    return [hit.path.name for hit in library.search(people, k=20, **options)]


@pytest.mark.parametrize("mode", ["exact", "fast"])
def test_a_tagged_photo_is_found_before_ranking_with_or_without_faces(library: Library, mode: str) -> None:
    photo = ids(library)
    library.people.tag("Anna", photo["lake.jpg"])
    library.people.tag("Anna", photo["ben.jpg"], Box(900, 0, 1000, 200))
    hits = {hit.path.name: hit for hit in library.search(["Anna"], k=20, mode=mode)}
    assert set(hits) == {"anna.jpg", "both.jpg", "lake.jpg", "ben.jpg"}
    (anywhere,), (there,) = hits["lake.jpg"].matches, hits["ben.jpg"].matches
    assert (anywhere.face, anywhere.box, anywhere.probability, anywhere.sure) == (None, None, 1.0, True)
    assert (there.face, there.box) == (None, Box(900, 0, 1000, 200))
    assert hits["lake.jpg"].score == hits["ben.jpg"].score == 1.0
    answer = library.search(["Anna", "Ben"], mode=mode, k=20, totals=True)
    both = [hit for hit in answer.hits if len(hit.matches) == 2]
    assert {hit.path.name for hit in both} == {"both.jpg", "ben.jpg"}
    assert answer.totals is not None
    assert [(total.matched, total.photos, total.sure) for total in answer.totals] == [(2, 2, 2), (1, 2, 2)]
    assert found(library, "Anna", "Ben", at_least=2, mode=mode)[0] == "ben.jpg"
    assert set(found(library, "Ben", without=["Anna"], mode=mode)) == set()
    assert set(found(library, "Anna", only=True, mode=mode)) == {"anna.jpg", "lake.jpg"}
    library.people.tag("Ben", photo["anna.jpg"])
    assert set(found(library, "Anna", only=True, mode=mode)) == {"lake.jpg"}
    assert set(found(library, "Anna", "Ben", only=True, at_least=2, mode=mode)) == {
        "anna.jpg",
        "ben.jpg",
        "both.jpg",
    }
    counts = library.people.photo_counts()
    assert [counts[person.id] for person in library.people] == [4, 3]


def test_conditions_and_pages_hold_for_tagged_photos(library: Library) -> None:
    from setnet.library import Conditions

    library.people.tag("Anna", ids(library)["lake.jpg"])
    assert found(library, "Anna", conditions=Conditions.parse(faces="0")) == ["lake.jpg"]
    assert "lake.jpg" not in found(library, "Anna", conditions=Conditions.parse(faces="1+"))
    pages = [library.search(["Anna"], k=1, offset=offset)[0].path.name for offset in range(3)]
    assert sorted(pages) == ["anna.jpg", "both.jpg", "lake.jpg"]
    assert library.people.photos("Anna").total == 3


def test_a_tag_at_a_face_is_a_confirmed_face_without_an_example(library: Library) -> None:
    photo = ids(library)["stranger.jpg"]
    before = library.people.descriptors("Anna")
    library.people.tag("Anna", photo, Box(900, 50, 980, 150))
    (match,) = next(hit for hit in library.search(["Anna"], k=20) if hit.photo.id == photo).matches
    assert (match.face, match.probability, match.sure) == (0, 1.0, True)
    assert library.people.get("Anna").examples == 1
    assert np.array_equal(library.people.descriptors("Anna"), before)
    with pytest.raises(InvalidInputError, match="is Anna already"):
        library.people.tag("Ben", photo, Box(900, 50, 980, 150))
    library.people.confirm("Ben", photo, 0, None)
    assert library.people.tags(photo) == []
    library.people.undo()
    assert [tag.person for tag in library.people.tags(photo)] == ["Anna"]
    library.people.reject("Anna", photo, 0)
    assert library.people.tags(photo) == []


def test_wrong_tags_are_clear_errors(library: Library) -> None:
    photo = ids(library)
    for box, message in {
        Box(1500, 0, 1700, 100): r"not in /invented/lake.jpg, which has 1600 x 1200 pixels",
        Box(10, 10, 10, 20): "the box is empty or",
        Box(float("nan"), 0, 10, 10): "the box is empty or",
    }.items():
        with pytest.raises(InvalidInputError, match=message):
            library.people.tag("Anna", photo["lake.jpg"], box)
    with pytest.raises(InvalidInputError, match="no person 'Nobody'"):
        library.people.tag("Nobody", photo["lake.jpg"])
    with pytest.raises(InvalidInputError, match="no photo '99'"):
        library.people.tag("Anna", "99")
    library.people.tag("Anna", photo["lake.jpg"])
    with pytest.raises(InvalidInputError, match=r"Anna is tagged in /invented/lake\.jpg already"):
        library.people.tag("Anna", photo["lake.jpg"], Box(1, 1, 9, 9))
    with pytest.raises(InvalidInputError, match="Ben is not tagged"):
        library.people.untag("Ben", photo["lake.jpg"])


def test_tags_follow_merges_splits_copies_and_undo(library: Library) -> None:
    photo = ids(library)
    library.people.tag("Anna", photo["lake.jpg"])
    library.people.tag("Ben", photo["lake.jpg"])
    library.people.tag("Ben", photo["stranger.jpg"])
    library.people.merge("Anna", ["Ben"], if_unlike="merge")
    assert {"lake.jpg", "stranger.jpg"} <= set(found(library, "Anna"))
    assert [tag.person for tag in library.people.tags(photo["lake.jpg"])] == ["Anna"]
    library.people.undo()
    assert [tag.person for tag in library.people.tags(photo["lake.jpg"])] == ["Anna", "Ben"]
    library.people.remove("Anna")
    assert [tag.person for tag in library.people.tags(photo["lake.jpg"])] == ["Ben"]
    library.people.undo()
    remove(library, [photo["lake.jpg"]])
    assert "lake.jpg" not in found(library, "Anna")
    store(library, {"lake.jpg": []})  # the same content again, under another number
    assert "lake.jpg" in found(library, "Anna")


def test_tags_survive_a_lost_database_and_leave_with_photo_or_person(library: Library) -> None:
    photo = ids(library)
    library.people.tag("Anna", photo["lake.jpg"])
    library.people.tag("Ben", photo["lake.jpg"])
    library.people.tag("Ben", photo["stranger.jpg"], Box(1, 2, 3, 4))
    library.people.untag("Ben", photo["stranger.jpg"])
    place = library.path
    contents = {name: invented_photos.content_of(name) for name in PHOTOS}
    library.close()
    (place / "library.db").unlink()
    Library.repair(place)
    with Library.open(place) as repaired:
        with repaired._database.reading() as db:
            assert db.execute("SELECT count(*) FROM tags").fetchone() == (2,)
        repaired.people.remove("Ben", for_good=True)
        with repaired._database.reading() as db:
            stored = db.execute("SELECT content FROM tags").fetchall()
        assert stored == [(contents["lake.jpg"],)]
        assert repaired.check() == []


def test_forgetting_a_photo_leaves_no_trace_of_its_tags(library: Library) -> None:
    photo = ids(library)
    library.people.tag("Anna", photo["lake.jpg"])
    library.people.untag("Anna", photo["lake.jpg"])
    library.people.tag("Ben", photo["lake.jpg"])
    library.forget(["/invented/lake.jpg"])
    content = invented_photos.content_of("lake.jpg")
    for file in library.path.rglob("*"):
        if file.is_file():
            assert content not in file.read_bytes(), file
            assert content.hex().upper().encode() not in file.read_bytes().upper(), file
    with library._database.reading() as db:
        assert db.execute("SELECT count(*) FROM changed_rows WHERE tbl = 'tags'").fetchone() == (0,)


def test_a_forgotten_person_leaves_no_tag_and_no_search(library: Library) -> None:
    photo = ids(library)["lake.jpg"]
    library.people.tag("Ben", photo, Box(10, 10, 20, 20))
    library.people.tag("Anna", photo)
    library.searches.save(SavedSearch("Sailing with B.", ("Anna", "Ben")))
    library.people.forget("Ben")
    assert [tag.person for tag in library.people.tags(photo)] == ["Anna"]
    assert list(library.searches) == []
    with library._database.reading() as db:
        assert db.execute("SELECT count(*) FROM changed_rows WHERE tbl = 'searches'").fetchone() == (0,)
    files = [file for file in library.path.rglob("*") if file.is_file()]
    assert [file for file in files if b"Sailing with B." in file.read_bytes()] == []


def test_the_command_line_tags_and_takes_back(library: Library) -> None:
    def said(*words: str) -> str:
        return CliRunner().invoke(app, ["tag", *words, "--library", str(library.path)]).output

    assert "Anna is in /invented/lake.jpg" in said("/invented/lake.jpg", "anna", "--box", "10,20,30,40")
    (tag,) = library.people.tags(ids(library)["lake.jpg"])
    assert tag.box == Box(10, 20, 40, 60)
    assert "not tagged in /invented/lake.jpg any more" in said("/invented/lake.jpg", "Anna", "--remove")
    done = CliRunner().invoke(
        app, ["tag", "/invented/lake.jpg", "Anna", "--box", "10,20", "--library", str(library.path)]
    )
    assert isinstance(done.exception, InvalidInputError)
