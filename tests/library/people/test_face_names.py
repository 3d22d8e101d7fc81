"""Many faces named at once: what is said already is never changed."""

from __future__ import annotations

import pytest

import invented_photos
from setnet.errors import InvalidInputError
from setnet.library import FaceName, Library


def test_faces_get_names_in_one_change_and_lose_them_with_undo(invented: Library) -> None:
    said = [FaceName("Anna", "1", 0), FaceName("ANNA", "2", 0), FaceName("Ben", "1", 1)]
    done = invented.name_faces(said)
    assert (done.people, done.new, len(done.named)) == (["Anna", "Ben"], 2, 3)
    assert invented.people.get("anna").examples == 2
    assert [change.summary for change in invented.people.history()] == ["named 3 faces of 2 people by tags"]
    assert invented.name_faces(said).known == 3
    invented.people.undo(done.change)
    assert len(invented.people) == 0
    assert invented.name_faces(said, dry_run=True).new == 2
    assert len(invented.people) == 0


def test_of_two_names_in_one_call_the_first_counts(invented: Library) -> None:
    done = invented.name_faces([FaceName("Anna", "1", 0), FaceName("Ben", "1", 0)])
    assert [(conflict.said.name, conflict.owner) for conflict in done.conflicts] == [("Ben", "Anna")]
    assert "Ben" not in invented.people


def test_the_faces_of_a_named_group_are_somebody_s(invented: Library) -> None:
    invented_photos.store(invented, {f"photo {number}": [5] for number in range(16)})
    invented.discover()
    (group,) = [group for group in invented.groups.page() if group.faces == 16]
    invented.name_group(group.id, "Eva")
    members = [(face.photo_id, face.face) for face in invented.groups.members(group.id)]
    done = invented.name_faces([FaceName("Ben", *place) for place in members])
    assert len(done.conflicts) == 16  # twelve are examples, the others are in the group alone
    assert {conflict.owner for conflict in done.conflicts} == {"Eva"}
    done = invented.name_faces([FaceName("Eva", *place) for place in members])
    assert (done.known, len(done.named)) == (12, 4)


def test_what_can_be_no_name_or_face_is_an_error(invented: Library) -> None:
    for said in (
        FaceName("\0", "1", 0),
        FaceName("Anna", "1", 7),
        FaceName("Anna", "99", 0),
        FaceName("Anna", "x", 0),
    ):
        with pytest.raises(InvalidInputError):
            invented.name_faces([said])
    assert len(invented.people) == 0
