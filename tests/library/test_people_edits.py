"""What was confirmed or rejected lasts, and naming many faces never changes what is said already."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError
from setnet.library import Example, FaceName, Library
from tests.support import invented_photos
from tests.support.invented_photos import face_of


def said(library: Library, name: str) -> list[tuple[bool, str | None, int | None]]:
    return [(v.is_match, v.photo_id, v.face) for v in library.people.labels(name)]


@pytest.fixture
def anna(invented: Library) -> Library:
    """A library that knows person 1 as Anna and person 3 as Ben."""
    invented.people.add("Anna", [Example(face_of(1))])
    invented.people.add("Ben", [Example(face_of(3))])
    return invented


def test_a_confirmed_face_becomes_an_example(anna: Library) -> None:
    person = anna.people.confirm("Anna", "2", 0, picture=b"JPEG")
    assert person.examples == 2
    assert said(anna, "Anna") == [(True, "2", 0)]
    example = anna.people.examples("Anna")[1]
    assert (example.origin, example.source, example.picture) == ("confirmed", "/invented/b", b"JPEG")
    assert example.content == anna.photos.get("2").stored_hash
    assert example.box == anna.photos.get("2").faces[0].box
    np.testing.assert_array_equal(example.descriptor, anna.photos.descriptors("2")[0])
    np.testing.assert_array_equal(anna.people.labels("Anna")[0].descriptor, anna.photos.descriptors("2")[0])


def test_a_face_confirmed_twice_counts_once(anna: Library) -> None:
    first = anna.people.confirm("Anna", "2", 0)
    again = anna.people.confirm("Anna", "2", 0)
    assert (first.examples, again.examples, again.change) == (2, 2, None)
    assert len(anna.people.history()) == 3


def test_the_last_word_holds(anna: Library) -> None:
    anna.people.confirm("Anna", "2", 0)
    assert anna.people.reject("Anna", "2", 0)[0].examples == 1
    assert said(anna, "Anna") == [(False, "2", 0)]
    assert anna.people.confirm("Anna", "2", 0).examples == 2
    assert said(anna, "Anna") == [(True, "2", 0)]


def test_a_face_is_one_person(anna: Library) -> None:
    anna.people.confirm("Anna", "3", 0)
    anna.people.reject("Anna", "2", 1)
    assert anna.people.confirm("Ben", "3", 0).examples == 2
    assert anna.people.get("Anna").examples == 1
    assert said(anna, "Anna") == [(False, "2", 1)]
    anna.people.undo()
    assert said(anna, "Anna") == [(True, "3", 0), (False, "2", 1)]
    assert [anna.people.get(name).examples for name in ("Anna", "Ben")] == [2, 1]


@pytest.mark.parametrize("place", [("2", 2), ("9", 0), ("x", 0), ("9" * 30, 0), ("2", -1)])
def test_only_a_face_of_the_library_can_be_judged(anna: Library, place: tuple[str, int]) -> None:
    for judge in (anna.people.confirm, anna.people.reject):
        with pytest.raises(InvalidInputError, match=r"no (face|photo)"):
            judge("Anna", *place)
    with pytest.raises(InvalidInputError, match="no person"):
        anna.people.confirm("Cleo", "1", 0)


def test_what_was_said_follows_examples_that_are_moved_split_off_or_merged(anna: Library) -> None:
    anna.people.confirm("Anna", "3", 0)
    anna.people.reject("Anna", "2", 1)
    wrong = anna.people.examples("Anna")[1]
    assert wrong.number is not None
    anna.people.move("Anna", [wrong.number], "Ben")
    assert said(anna, "Ben") == [(True, "3", 0)]
    anna.people.split("Ben", [wrong.number], "Cleo")
    assert (said(anna, "Ben"), said(anna, "Cleo")) == ([], [(True, "3", 0)])
    anna.people.reject("Cleo", "1", 1)
    anna.people.reject("Ben", "1", 1)
    anna.people.reject("Ben", "3", 0)
    anna.people.merge("Cleo", ["Ben", "Anna"], "merge")
    assert sorted(said(anna, "Cleo"), key=repr) == [(False, "1", 1), (False, "2", 1), (True, "3", 0)]


@pytest.fixture
def judged(library: Library, portrait: Callable[[str], str]) -> Library:
    """A library of real photos in which a face of `pair.jpg` is confirmed and one of `three.jpg` refused."""
    library.people.add_photos("Anna", [portrait("P001")])
    library.people.confirm("Anna", _id(library, "pair"), 0)
    library.people.reject("Anna", _id(library, "three"), 2)
    return library


def _id(library: Library, stem: str) -> str:
    return next(photo.id for photo in library.photos.all_photos() if photo.path.stem == stem)


def places(library: Library) -> list[tuple[bool, str, int | None]]:
    found = []
    for label in library.people.labels("Anna"):
        assert label.photo_id is not None
        found.append((label.is_match, library.photos.get(label.photo_id).path.name, label.face))
    return found


def test_labels_survive_moved_copied_and_touched_files(judged: Library, photos: Path) -> None:
    (photos / "new").mkdir()
    (photos / "2016" / "pair.jpg").rename(photos / "new" / "renamed.jpg")
    shutil.copy(photos / "2019" / "three.jpg", photos / "new" / "copy.jpg")
    (photos / "2019" / "three.jpg").touch()
    assert judged.index([photos], workers=0).moved == 1
    assert places(judged) == [(True, "renamed.jpg", 0), (False, "three.jpg", 2), (False, "copy.jpg", 2)]
    assert len({label.id for label in judged.people.labels("Anna")}) == 2


def test_labels_survive_photos_that_are_removed_and_indexed_again(judged: Library, photos: Path) -> None:
    before = places(judged)
    (photos / "2016").rename(photos.parent / "away")
    judged.index([photos], workers=0, prune=True)
    assert [v.photo_id is None for v in judged.people.labels("Anna")] == [True, False]
    (photos.parent / "away").rename(photos / "back")
    judged.index([photos], workers=0)
    assert places(judged) == before


def test_labels_follow_a_file_into_which_something_was_written(judged: Library, photos: Path) -> None:
    for file in ("2016/pair.jpg", "2019/three.jpg"):
        with open(photos / file, "ab") as opened:
            opened.write(b"a tag")  # other bytes, the same picture
    assert judged.index([photos], workers=0).changed == 2
    assert places(judged) == [(True, "pair.jpg", 0), (False, "three.jpg", 2)]
    assert judged.people.examples("Anna")[1].content == judged.photos.get(_id(judged, "pair")).stored_hash
    shutil.copy(photos / "2019" / "others.jpg", photos / "2016" / "pair.jpg")  # another photo in its place
    judged.index([photos], workers=0)
    assert [v.photo_id is None for v in judged.people.labels("Anna")] == [True, False]


def test_a_photo_that_is_forgotten_takes_its_labels_along(judged: Library, photos: Path) -> None:
    secrets = [v.descriptor.tobytes() for v in judged.people.labels("Anna")]
    judged.forget([photos / "2019" / "three.jpg"])
    assert places(judged) == [(True, "pair.jpg", 0)]
    with pytest.raises(InvalidInputError, match=r"\(forgot 1 face of people with the photos"):
        judged.people.undo()
    (confirmed,) = [change.id for change in judged.people.history() if change.kind == "confirm"]
    judged.people.undo(confirmed)  # nothing of the refusal is left
    assert judged.people.labels("Anna") == []
    judged.people.undo(judged.people.history()[0].id)
    judged.forget([photos / "2016" / "pair.jpg"])
    assert judged.people.labels("Anna") == []
    assert judged.people.get("Anna").examples == 1
    files = [file.read_bytes() for file in judged.path.rglob("*") if file.is_file()]
    assert not [secret for secret in secrets if any(secret in data for data in files)]


def test_a_copy_that_stays_keeps_what_was_said_of_it(judged: Library, photos: Path) -> None:
    shutil.copy(photos / "2016" / "pair.jpg", photos / "copy.jpg")
    judged.index([photos], workers=0)
    judged.forget([photos / "2016" / "pair.jpg"])
    assert places(judged)[0] == (True, "copy.jpg", 0)
    assert judged.people.examples("Anna")[1].source == str(photos / "copy.jpg")


def test_faces_get_names_in_one_change_and_lose_them_with_undo(invented: Library) -> None:
    said = [FaceName("Anna", "1", 0), FaceName("ANNA", "2", 0), FaceName("Ben", "1", 1)]
    done = invented.people.name_faces(said)
    assert (done.people, done.new, len(done.named)) == (["Anna", "Ben"], 2, 3)
    assert invented.people.get("anna").examples == 2
    assert [change.summary for change in invented.people.history()] == ["named 3 faces of 2 people by tags"]
    assert invented.people.name_faces(said).known == 3
    invented.people.undo(done.change)
    assert len(invented.people) == 0
    assert invented.people.name_faces(said, dry_run=True).new == 2
    assert len(invented.people) == 0


def test_of_two_names_in_one_call_the_first_counts(invented: Library) -> None:
    done = invented.people.name_faces([FaceName("Anna", "1", 0), FaceName("Ben", "1", 0)])
    assert [(conflict.said.name, conflict.owner) for conflict in done.conflicts] == [("Ben", "Anna")]
    assert "Ben" not in invented.people


def test_the_faces_of_a_named_group_are_somebody_s(invented: Library) -> None:
    invented_photos.store(invented, {f"photo {number}": [5] for number in range(16)})
    invented.groups.update()
    (group,) = [group for group in invented.groups.page() if group.faces == 16]
    invented.groups.name(group.id, "Eva")
    members = [(face.photo_id, face.face) for face in invented.groups.members(group.id)]
    done = invented.people.name_faces([FaceName("Ben", *place) for place in members])
    assert len(done.conflicts) == 16  # twelve are examples, the others are in the group alone
    assert {conflict.owner for conflict in done.conflicts} == {"Eva"}
    done = invented.people.name_faces([FaceName("Eva", *place) for place in members])
    assert (done.known, len(done.named)) == (12, 4)


def test_what_can_be_no_name_or_face_is_an_error(invented: Library) -> None:
    for said in (
        FaceName("\0", "1", 0),
        FaceName("Anna", "1", 7),
        FaceName("Anna", "99", 0),
        FaceName("Anna", "x", 0),
    ):
        with pytest.raises(InvalidInputError):
            invented.people.name_faces([said])
    assert len(invented.people) == 0
