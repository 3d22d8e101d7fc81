"""Saving under a name that is taken asks instead of mixing."""

from __future__ import annotations

import pytest

from invented_photos import face_of
from setnet.errors import InvalidInputError, TakenError
from setnet.library import Example, Library


def views(person: int, *numbers: int) -> list[Example]:
    return [Example(face_of(person, number)) for number in numbers]


@pytest.fixture
def george(invented: Library) -> Library:
    """A library that knows person 1 as George, also called Georgie."""
    invented.save_person("George", views(1, 1, 2))
    invented.people.edit("George", aliases=["Georgie"])
    return invented


def test_more_faces_of_the_same_person_under_the_same_name_are_added(george: Library) -> None:
    names = ("George", " George ", "Georgie", george.people.get("George").id)
    for view, name in enumerate(names, 10):
        person, notes = george.save_person(name, views(1, view))
        assert (person.name, notes) == ("George", [])
    assert george.people.get("George").examples == 6


def test_another_spelling_asks(george: Library) -> None:
    with pytest.raises(
        TakenError, match=r"'George' is saved already, with 2 .*'george' is spelt differently"
    ):
        george.save_person("george", views(1, 3))
    with pytest.raises(TakenError, match="--to-existing") as caught:
        george.save_person("GEORGIE", views(1, 3))
    assert caught.value.person == george.people.get("George").to_dict()
    assert george.people.get("George").examples == 2
    assert george.save_person("george", views(1, 3), "add")[0].examples == 3


def test_faces_of_somebody_else_ask(george: Library) -> None:
    with pytest.raises(TakenError, match="this face does not look like them"):
        george.save_person("George", views(2, 1))
    with pytest.raises(TakenError, match="2 of these 3 example faces do not look like them"):
        george.save_person("George", [*views(2, 1, 2), *views(1, 3)])
    person, notes = george.save_person("George", views(2, 1), "add")
    assert person.examples == 3
    assert notes[0].startswith("1 of these 3 do not look like the same person")


def test_a_program_may_refuse_or_force(george: Library) -> None:
    with pytest.raises(TakenError):
        george.save_person("George", views(1, 3), "refuse")
    assert george.save_person("Anna", views(2, 1), "refuse")[0].examples == 1
    with pytest.raises(InvalidInputError, match="'ask', 'add', 'refuse'"):
        george.save_person("George", views(1, 3), "perhaps")


def test_mixed_examples_of_somebody_new_are_kept_and_said(invented: Library) -> None:
    person, notes = invented.save_person("Anna", [*views(1, 1), *views(2, 1), *views(3, 1)])
    assert person.examples == 3
    assert notes[0].startswith("2 of these 3 do not look like the same person: look at example 2, 3 of Anna")


def test_the_same_face_twice_counts_once(invented: Library) -> None:
    person, notes = invented.save_person("Anna", views(1, 1, 1, 2))
    assert person.examples == 2
    assert notes == ["1 example face Anna had already: the same face counts once"]
    again, notes = invented.save_person("Anna", views(1, 1, 2))
    assert (again.examples, again.change) == (2, None)
    assert notes == ["2 example faces Anna had already: the same face counts once"]


def test_whoever_has_no_example_left_gets_new_ones_without_question(george: Library) -> None:
    george.people.remove_examples("George", [1, 2])
    assert george.save_person("George", views(2, 1))[0].examples == 1
