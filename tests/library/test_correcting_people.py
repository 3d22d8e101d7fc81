"""Correcting people does no harm: what a merge did is undone, and what would surprise is asked or said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from setnet.errors import InvalidInputError, TakenError
from setnet.library import Example, FaceName, Library
from tests.support import invented_photos
from tests.support.invented_photos import face_of


def ids(library: Library) -> dict[str, str]:
    return {photo.path.name: photo.id for photo in library.photos.all_photos()}


def photos_of(library: Library, name: str) -> set[str]:
    return {found.photo.path.name for found in library.people.photos(name).photos}


def state_of(library: Library, name: str) -> tuple[set[str], set[str], set[tuple[str | None, bool]]]:
    """Return a person's photos, groups and labels."""
    groups = {group.id for group in library.groups.page("named") if group.name == name}
    labels = {(label.photo_id, label.is_match) for label in library.people.labels(name)}
    return photos_of(library, name), groups, labels


@pytest.fixture
def two(grouped: Library) -> Library:
    """Anna is person 1 in a0 to a5, Carl is person 3 in b0 to b3; both have a named group."""
    for name, photo, person in (("Anna", "a0", 1), ("Carl", "b0", 3)):
        grouped.groups.name(group_with(grouped, photo, person), name)
    return grouped


def group_with(library: Library, photo: str, person: int) -> str:
    return next(
        group.id
        for group in library.groups.page()
        for face in library.groups.members(group.id)
        if face.path.endswith(f"/{photo}".encode()) and round(face.box.x0 / 100) == person
    )


def test_a_split_takes_back_all_that_a_merge_gave(two: Library) -> None:
    two.people.reject("Carl", ids(two)["a1"], 0)
    before = {name: state_of(two, name) for name in ("Anna", "Carl")}
    carls = [example.number or 0 for example in two.people.examples("Carl")]
    two.people.merge("Anna", ["Carl"], "merge")
    assert photos_of(two, "Anna") == before["Anna"][0] | before["Carl"][0]
    two.people.split("Anna", carls, "Carl")
    assert {name: state_of(two, name) for name in ("Anna", "Carl")} == before


def test_a_split_knows_nothing_of_a_merge_that_was_undone(two: Library) -> None:
    two.people.edit("Carl", aliases=["Charles"])
    carls = [example.number or 0 for example in two.people.examples("Carl")]
    two.people.merge("Anna", ["Carl"], "merge")
    two.people.undo()
    two.people.add("Carl", [Example(face_of(3, 50))])
    two.people.split("Carl", carls, "Dora")
    assert two.people.get("Carl").aliases == ("Charles",)
    assert two.people.get("Dora").aliases == ()


def test_a_split_leaves_a_confirmed_face_with_its_example(grouped: Library) -> None:
    grouped.people.add("Anna", [Example(face_of(3))])
    grouped.people.confirm("Anna", ids(grouped)["a1"], 0)  # which is person 1, and an example from now on
    grouped.people.add("Anna", [Example(face_of(1))])
    number = grouped.people.examples("Anna")[-1].number
    assert number is not None
    grouped.people.split("Anna", [number], "Carl")
    assert [label.photo_id for label in grouped.people.labels("Anna")] == [ids(grouped)["a1"]]
    assert grouped.people.labels("Carl") == []


def test_a_split_shares_groups_and_confirmed_faces_by_similarity(grouped: Library) -> None:
    places = ids(grouped)
    grouped.people.add("Anna", [Example(face_of(1)), Example(face_of(3))])
    grouped.people.confirm("Anna", places["b0"], 0)
    grouped.groups.name(group_with(grouped, "a0", 1), "Anna", if_exists="add")
    grouped.groups.name(group_with(grouped, "b0", 3), "Anna", if_exists="add")
    carls = [e.number or 0 for e in grouped.people.examples("Anna") if e.descriptor @ face_of(3) > 0.5]
    grouped.people.split("Anna", carls, "Carl")
    assert photos_of(grouped, "Anna") == {f"a{n}" for n in range(6)}
    assert photos_of(grouped, "Carl") == {f"b{n}" for n in range(4)}


def test_people_who_look_different_are_merged_only_when_that_is_meant(two: Library) -> None:
    with pytest.raises(TakenError, match=r"of Carl do not look like Anna"):
        two.people.merge("Anna", ["Carl"])
    assert "Carl" in two.people
    two.people.add("Annie", [Example(face_of(1, 7))])
    assert two.people.merge("Anna", ["Annie"]).name == "Anna"
    with pytest.raises(InvalidInputError, match="if_unlike"):
        two.people.merge("Anna", ["Carl"], "perhaps")


def test_an_example_is_always_sure(two: Library) -> None:
    two.people.merge("Anna", ["Carl"], "merge")  # their mean is like neither
    places = {
        (photo_id, face)
        for photo_id, face in two.people.known_faces("Anna").confirmed
        if two.photos.get(photo_id).path.name.startswith("b")
    }
    assert len(places) == 4
    sure = {(p.photo.id, p.face) for p in two.people.photos("Anna").photos if p.sure}
    assert places <= sure


@pytest.fixture
def seventeen(empty: Library) -> Library:
    """Anna is known by a portrait, and surely in 17 photos that are more or less like it."""
    chance = np.random.default_rng(5)
    mine = face_of(1) + chance.uniform(0.03, 0.09, (17, 1)) * chance.normal(size=(17, 128))
    mine /= np.linalg.norm(mine, axis=1, keepdims=True)
    photos = {f"{n}": vector[None].astype(np.float32) for n, vector in enumerate(mine)}
    invented_photos.store_vectors(empty, photos | {f"x{n}": face_of(2 + n)[None] for n in range(40)})
    empty.people.add("Anna", [Example(face_of(1))])
    return empty


def test_one_rejected_face_costs_few_sure_photos_and_says_so(seventeen: Library) -> None:
    found = seventeen.people.photos("Anna")
    assert found.sure >= 12
    hits = seventeen.search(["Anna"], k=50)
    best = hits[0]
    _, notes = seventeen.people.reject("Anna", best.photo.id, best.matches[0].face or 0)
    left = seventeen.people.photos("Anna").sure
    assert left >= 0.7 * (found.sure - 1)
    lost = found.sure - 1 - left
    assert bool(notes) == bool(lost)
    if lost:
        verb = "is" if lost == 1 else "are"
        assert notes[0].startswith(f"{lost} of {found.sure} photos {verb} no longer sure")
    seventeen.people.undo()
    assert seventeen.people.photos("Anna").sure == found.sure


def test_show_photos_and_search_count_the_same(two: Library) -> None:
    invented_photos.store(two, {"c9": [3]})
    two.groups.update()
    for name in ("Anna", "Carl"):
        hits = two.search([name], k=100)
        person, photos = two.people.get(name), two.people.photos(name)
        sure = sum(hit.matches[0].sure for hit in hits)
        assert len(hits) == photos.total == two.people.photo_counts()[person.id]
        assert sure == photos.sure
        assert {hit.photo.id for hit in hits} == {found.photo.id for found in photos.photos}


@pytest.mark.parametrize("name", ["g1", "G17", " g3 "])
def test_nobody_is_called_like_a_group(two: Library, name: str) -> None:
    for give in (
        lambda: two.people.add(name, [Example(face_of(4))]),
        lambda: two.people.rename("Anna", name),
        lambda: two.people.edit("Anna", aliases=[name]),
        lambda: two.groups.name(group_with(two, "c0", 4), name),
    ):
        with pytest.raises(InvalidInputError, match="a group of faces is called so"):
            give()


def test_a_named_group_is_given_away_only_when_that_is_meant(two: Library) -> None:
    group = group_with(two, "a0", 1)
    for name in ("Carl", "Somebody"):
        with pytest.raises(TakenError, match=f"{group} is Anna's already"):
            two.groups.name(group, name)
    assert two.groups.get(group).name == "Anna"
    two.groups.name(group, "anna", if_exists="add")
    two.groups.name(group, "Somebody", if_exists="add")
    assert two.groups.get(group).name == "Somebody"


def test_a_new_spelling_of_a_name_is_hinted_at(invented: Library, tmp_path: Path) -> None:
    invented.people.add("José García", [Example(face_of(1))])
    invented.people.add("Ben", [Example(face_of(3))])
    invented.people.export(tmp_path / "people.json")
    with Library.create(tmp_path / "other") as other:
        other.people.add("Garcia, Jose", [Example(face_of(1))])
        other.people.add("Benno", [Example(face_of(3))])
        (hint,) = other.people.import_file(tmp_path / "people.json").notes
        assert hint.startswith("'José García' may be another spelling of 'Garcia, Jose'")
    (hint,) = invented.people.name_faces([FaceName("Jose Garcia", "2", 0)]).hints
    assert "'José García'" in hint
    assert not invented.people.name_faces([FaceName("Dora", "2", 1)]).hints


def anywhere(folder: Path, data: bytes) -> bool:
    return any(data in file.read_bytes() for file in folder.rglob("*") if file.is_file())


def test_a_forgotten_person_leaves_a_photo_in_which_they_are_twice(invented: Library) -> None:
    invented.people.add("Anna", [Example(face_of(1))])
    faces = np.stack([face_of(1, 7), face_of(2), face_of(1, 8)])
    invented_photos.store_vectors(invented, {"mirror": faces})
    photo = ids(invented)["mirror"]
    invented.people.forget("Anna")
    np.testing.assert_array_equal(invented.photos.descriptors(photo), faces[1:2])


def test_a_forgotten_person_is_in_no_file_and_does_not_come_back(two: Library, tmp_path: Path) -> None:
    photos = ids(two)
    two.people.reject("Carl", photos["a2"], 0)  # a descriptor of Anna's
    two.people.add("Anna", [Example(face_of(1, 99), "/portrait.jpg", picture=b"a picture of Anna")])
    theirs = [two.photos.descriptors(photos[f"a{n}"])[0].tobytes() for n in range(6)]
    others = [two.photos.descriptors(photos[f"a{n}"])[1] for n in range(6)]
    theirs += [face_of(1, 99).tobytes(), b"a picture of Anna", b"Anna", b"/portrait.jpg"]
    assert all(anywhere(two.path, trace) for trace in theirs)
    carls = photos_of(two, "Carl")
    assert two.people.forget("anna") == 6
    assert not [trace for trace in theirs if anywhere(two.path, trace)]
    assert two.check() == []
    assert ("Anna" in two.people, photos_of(two, "Carl")) == (False, carls)
    for number, descriptor in enumerate(others):  # who was beside Anna stays, in their group too
        photo = two.photos.get(photos[f"a{number}"])
        assert [round(face.box.x0 / 100) for face in photo.faces] == [2]
        np.testing.assert_array_equal(two.photos.descriptors(photo.id)[0], descriptor)
    assert two.groups.get(group_with(two, "a0", 2)).faces == 6
    invented_photos.store(two, {f"a{n}": [1, 2] for n in range(6)}, taken=1.5e9)  # read again
    two.groups.update()
    assert len(two.photos.get(photos["a0"]).faces) == 1
    assert not [trace for trace in theirs if anywhere(two.path, trace)]
    assert Library.repair(two.path).lost == ()
