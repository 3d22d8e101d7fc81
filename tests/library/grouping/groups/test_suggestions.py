"""Suggestions: groups that may be a saved person's, confirmed and refused."""

from __future__ import annotations

import numpy as np
import pytest

from invented_photos import face_of
from setnet.errors import InvalidInputError
from setnet.library import Example, Library


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
    (found,) = asked.suggestions()
    assert (found.person, found.id, found.group.id) == ("Nina", asked.people.get("Nina").id, "g3")
    assert 0 < found.probability <= 1
    assert asked.suggestions("nina") == [found]


def test_each_group_is_suggested_once_for_whom_it_fits_best(asked: Library) -> None:
    asked.people.add("Nora", [between(51, 3, 0.3)])
    (found,) = asked.suggestions()
    assert found.person == "Nora"
    assert {s.person for s in asked.suggestions("Nina")} == {"Nina"}


def test_what_is_refused_named_or_hidden_is_not_suggested(asked: Library) -> None:
    asked.refuse_group("g3", "Nina")
    assert asked.suggestions() == []
    asked.people.undo()
    assert len(asked.suggestions()) == 1
    asked.groups.hide(["g3"])
    assert asked.suggestions() == []
    asked.people.undo()
    asked.name_group("g3", "Nina", if_exists="add")
    assert asked.suggestions() == []
    asked.people.undo()
    assert len(asked.suggestions()) == 1


def test_nobody_saved_and_nobody_alike_give_no_suggestion(grouped: Library) -> None:
    assert grouped.suggestions() == []
    grouped.people.add("Otto", [Example(face_of(60))])
    assert grouped.suggestions() == []
    with pytest.raises(InvalidInputError, match="no person"):
        grouped.suggestions("nobody")
