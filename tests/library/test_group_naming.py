"""Naming a group, and suggestions: examples, labels, faces left out, and undo of all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from setnet.errors import InvalidInputError, TakenError
from setnet.library import Example, Library
from tests.support import invented_photos
from tests.support.invented_photos import face_of

GroupsIn = Callable[[Library], dict[str, tuple[str | None, set[str]]]]


def rows(library: Library) -> dict[str, Any]:
    """Return all that is known of people and groups, but what the journal and its counters say."""
    with library._database.reading() as db:
        return {
            table: sorted(db.execute(f"SELECT {columns} FROM {table}"), key=repr)
            for table, columns in {
                "people": "name",
                "examples": "person, descriptor",
                "labels": "person, content, is_match",
                "face_groups": "id, person, hidden, faces, photos, cover, stale",
                "group_members": "id, grp",
            }.items()
        }


def test_a_group_becomes_a_person_with_examples_that_find_all_its_faces(grouped: Library) -> None:
    person, notes = grouped.groups.name("g1", "Anna")
    assert (person.name, person.examples, notes) == ("Anna", 6, [])
    assert person.change == 1
    assert {e.origin for e in grouped.people.examples("Anna")} == {"group"}
    found = grouped.search(["Anna"], k=99, at_least=1, sure=True)
    assert {hit.path.name for hit in found} == {f"a{n}" for n in range(6)}
    group = grouped.groups.get("g1")
    assert (group.name, group.person, group.state) == ("Anna", person.id, "named")


def test_a_new_name_that_may_be_another_spelling_is_hinted(grouped: Library) -> None:
    grouped.people.add("Serena Williams", [Example(face_of(99))])
    _, notes = grouped.groups.name("g1", "Wiliams Serena")
    assert ["may be another spelling of 'Serena Williams'" in note for note in notes] == [True]
    assert grouped.groups.name("g1", "Wiliams Serena", if_exists="add")[1] == []


def test_a_large_group_gives_a_dozen_examples(grouped: Library) -> None:
    invented_photos.store(grouped, {f"m{n}": [7] for n in range(40)})
    grouped.groups.update()
    largest = grouped.groups.page()[0]
    assert largest.faces == 40
    assert grouped.groups.name(largest.id, "Mia")[0].examples == 12


def test_faces_that_the_examples_would_not_find_are_kept_as_confirmed(grouped: Library) -> None:
    stranger = grouped.photos.photo_at(b"/invented/c0").id
    with grouped._database.writing() as db:  # a face that looks like nobody of its group
        db.execute("UPDATE group_members SET grp = 1 WHERE id = ?", (int(stranger) * 65536,))
    grouped.groups.name("g1", "Anna")
    (said,) = grouped.people.labels("Anna")
    assert (said.is_match, said.photo_id, said.face) == (True, stranger, 0)
    assert "c0" in {hit.path.name for hit in grouped.search(["Anna"], k=99, at_least=1, sure=True)}


def test_faces_left_out_are_refused_and_leave_the_group(grouped: Library, groups_in: GroupsIn) -> None:
    left = (grouped.groups.members("g1")[0].photo_id, 0)
    before = rows(grouped)
    person, _ = grouped.groups.name("g1", "Anna", [left])
    assert [(v.is_match, v.photo_id, v.face) for v in grouped.people.labels("Anna")] == [(False, *left)]
    assert groups_in(grouped)["g5"][1] == {"a0 1"}
    assert grouped.groups.get("g1").faces == 5
    assert left[0] not in {h.photo.id for h in grouped.search(["Anna"], k=99, at_least=1)}
    grouped.people.undo(person.change)
    assert rows(grouped) == before
    assert grouped.check() == []


@pytest.mark.parametrize("again", [None, False, True])
def test_everything_can_be_undone_and_redone_also_after_a_grouping(
    grouped: Library, groups_in: GroupsIn, again: bool | None
) -> None:
    before, faces = rows(grouped), groups_in(grouped)
    left = (grouped.groups.members("g1")[0].photo_id, 0)
    grouped.groups.name("g1", "Anna", [left])
    grouped.groups.name("g2", "Ben")
    grouped.groups.hide(["g3"])
    grouped.groups.reject("g4", "Anna")
    named = groups_in(grouped)
    for _ in range(4):
        if again is not None:
            grouped.groups.update(again=again)
        grouped.people.undo()
    assert (groups_in(grouped), rows(grouped)) == (faces, before)
    for change in (8, 7, 6, 5):
        grouped.people.undo(change)
    after = groups_in(grouped)
    assert {g: n for g, (n, _) in after.items()} == {g: n for g, (n, _) in named.items()}
    assert grouped.groups.get("g3").hidden
    assert grouped.check() == []


def test_a_second_group_of_a_person_is_asked_about(grouped: Library) -> None:
    grouped.groups.name("g1", "Anna")
    with pytest.raises(TakenError, match="do not look like them"):
        grouped.groups.name("g3", "Anna")
    with pytest.raises(TakenError, match="spelt differently"):
        grouped.groups.name("g1", "anna")
    with pytest.raises(TakenError):
        grouped.groups.name("g3", "Anna", if_exists="refuse")
    assert grouped.groups.get("g3").name is None
    assert grouped.groups.name("g3", "anna", if_exists="add")[0].name == "Anna"
    assert {g.id for g in grouped.groups.page("named") if g.name == "Anna"} == {"g1", "g3"}


def test_a_group_that_gets_another_name_is_that_person_and_no_other(grouped: Library) -> None:
    grouped.groups.name("g1", "Ann")
    person, _ = grouped.groups.name("g1", "Beth", if_exists="add")
    assert grouped.groups.get("g1").name == "Beth"
    assert grouped.people.get("Ann").examples == 0
    grouped.people.undo(person.change)
    assert (grouped.groups.get("g1").name, grouped.people.get("Ann").examples) == ("Ann", 6)
    assert "Beth" not in grouped.people


def test_faces_refused_before_are_left_out_of_the_name(grouped: Library, groups_in: GroupsIn) -> None:
    grouped.groups.name("g3", "Carl")
    refused = (grouped.groups.members("g1")[0].photo_id, 0)
    grouped.people.reject("Carl", *refused)
    grouped.groups.name("g1", "Carl", if_exists="add")
    assert grouped.groups.get("g1").faces == 5
    assert (False, *refused) in [(v.is_match, v.photo_id, v.face) for v in grouped.people.labels("Carl")]


def test_who_changes_their_mind_about_a_whole_group_may(grouped: Library) -> None:
    grouped.groups.name("g1", "Anna")
    refused = grouped.groups.reject("g3", "Anna")
    assert refused.change is not None
    grouped.groups.name("g3", "Anna", if_exists="add")
    assert not [v for v in grouped.people.labels("Anna") if not v.is_match]
    assert grouped.groups.get("g3").name == "Anna"


def test_refusing_a_named_group_takes_its_name(grouped: Library) -> None:
    grouped.groups.name("g3", "Carl")
    grouped.groups.reject("g3", "Carl")
    assert grouped.groups.get("g3").name is None
    assert len([v for v in grouped.people.labels("Carl") if not v.is_match]) == 4
    grouped.people.undo()
    assert grouped.groups.get("g3").name == "Carl"


def test_naming_shows_a_hidden_group_again(grouped: Library) -> None:
    grouped.groups.hide(["g3"])
    grouped.groups.name("g3", "Carl")
    assert grouped.groups.get("g3").state == "named"
    grouped.people.undo()
    assert grouped.groups.get("g3").state == "hidden"


def test_what_cannot_be_named_is_refused(grouped: Library) -> None:
    faces = [(face.photo_id, face.face) for face in grouped.groups.members("g3")]
    for group, name, without, words in (
        ("g99", "Anna", [], "no group 'g99'"),
        ("x", "Anna", [], "no group 'x'"),
        ("g3", "", [], "printable"),
        ("g3", "Anna", [("1", 5)], "no face 5 of photo 1"),
        ("g3", "Anna", faces, "nobody is left"),
    ):
        with pytest.raises(InvalidInputError, match=words):
            grouped.groups.name(group, name, without)
    with pytest.raises(InvalidInputError, match="no person 'nobody'"):
        grouped.groups.reject("g3", "nobody")
    assert len(grouped.people) == 0
    assert grouped.people.history() == []


def test_examples_have_pictures_where_photos_can_be_read(library: Library) -> None:
    person, _ = library.groups.name("g1", "Cleo")
    pictures = [example.picture for example in library.people.examples("Cleo")]
    assert person.has_picture
    assert all(picture is not None and picture.startswith(b"\xff\xd8\xff") for picture in pictures)


def test_a_group_is_a_person_of_a_query(grouped: Library) -> None:
    person = grouped.person("g3")
    assert person.name == "g3"
    assert len(person.confirmed) == 4
    hits = grouped.search(["g1", "G2"], k=9, at_least=2, sure=True)
    assert {hit.path.name for hit in hits} == {f"a{n}" for n in range(6)}
    assert grouped.search(["g1"], without=["g2"], at_least=1).hits == ()


def test_the_photos_of_a_person_come_by_date(grouped: Library, tmp_path: Path) -> None:
    invented_photos.store(grouped, {"late": [1]}, taken=1.7e9)
    grouped.groups.update()
    grouped.groups.name("g1", "Anna")
    found = grouped.people.photos("anna")
    assert (found.total, found.photos[0].photo.path.name) == (7, "late")
    assert all(photo.sure for photo in found.photos)
    page = grouped.people.photos("Anna", offset=5, limit=5)
    assert [p.photo.id for p in page.photos] == [p.photo.id for p in found.photos[5:]]
    refused = found.photos[2].photo
    grouped.people.reject("Anna", refused.id, 0)
    assert refused.id not in {p.photo.id for p in grouped.people.photos("Anna").photos}


def test_a_face_that_only_its_group_says_is_theirs_is_not_sure(grouped: Library) -> None:
    grouped.groups.name("g1", "Anna")
    stranger = grouped.photos.photo_at(b"/invented/c0").id
    with grouped._database.writing() as db:
        db.execute("UPDATE group_members SET grp = 1 WHERE id = ?", (int(stranger) * 65536,))
    assert {p.photo.path.name for p in grouped.people.photos("Anna").photos if not p.sure} == {"c0"}


def test_example_faces_are_good_and_spread() -> None:
    from setnet.library.examples import example_faces

    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(50, 16)) * 0.3 + np.eye(16)[0]
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    vectors[7] = -vectors[7]  # somebody else
    quality = np.ones(50)
    quality[:5] = 0.2
    chosen = example_faces(vectors, quality)
    assert len(set(chosen)) == 12
    assert not set(chosen) & {0, 1, 2, 3, 4, 7}


def between(one: int, other: int, share: float) -> Example:
    """Return an example face that looks in part like another person."""
    vector = share * face_of(one, 99) + (1 - share) * face_of(other, 99)
    return Example((vector / np.linalg.norm(vector)).astype(np.float32))


@pytest.fixture
def asked(grouped: Library) -> Library:
    """The library with Nina, of no photo, who looks somewhat like person 3."""
    grouped.people.add("Nina", [between(50, 3, 0.4)])
    return grouped


def test_a_group_that_may_be_a_person_is_suggested(asked: Library) -> None:
    (found,) = asked.groups.suggestions()
    assert (found.person, found.id, found.group.id) == ("Nina", asked.people.get("Nina").id, "g3")
    assert 0 < found.probability <= 1
    assert asked.groups.suggestions("nina") == [found]


def test_each_group_is_suggested_once_for_whom_it_fits_best(asked: Library) -> None:
    asked.people.add("Nora", [between(51, 3, 0.3)])
    (found,) = asked.groups.suggestions()
    assert found.person == "Nora"
    assert {s.person for s in asked.groups.suggestions("Nina")} == {"Nina"}


def test_what_is_refused_named_or_hidden_is_not_suggested(asked: Library) -> None:
    asked.groups.reject("g3", "Nina")
    assert asked.groups.suggestions() == []
    asked.people.undo()
    assert len(asked.groups.suggestions()) == 1
    asked.groups.hide(["g3"])
    assert asked.groups.suggestions() == []
    asked.people.undo()
    asked.groups.name("g3", "Nina", if_exists="add")
    assert asked.groups.suggestions() == []
    asked.people.undo()
    assert len(asked.groups.suggestions()) == 1


def test_nobody_saved_and_nobody_alike_give_no_suggestion(grouped: Library) -> None:
    assert grouped.groups.suggestions() == []
    grouped.people.add("Otto", [Example(face_of(60))])
    assert grouped.groups.suggestions() == []
    with pytest.raises(InvalidInputError, match="no person"):
        grouped.groups.suggestions("nobody")
