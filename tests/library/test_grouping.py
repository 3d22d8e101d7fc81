"""Groups keep their ids, what users said holds in any of them, and laws of assigning clusters to groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from setnet.errors import LockedError
from setnet.library import Example, Library
from setnet.library.clustering import group_faces
from setnet.library.grouping import GroupAssignment, KnownLabels
from tests.support import invented_photos
from tests.support.invented_photos import face_of

GroupsIn = Callable[[Library], dict[str, tuple[str | None, set[str]]]]


def place(library: Library, name: str, face: int = 0) -> tuple[str, int]:
    """Return a face of an invented photo, as its photo's id and its number."""
    return library.photos.photo_at(f"/invented/{name}".encode()).id, face


def test_each_person_is_a_group_the_largest_first(grouped: Library, groups_in: GroupsIn) -> None:
    assert groups_in(grouped) == {
        "g1": (None, {f"a{n} 1" for n in range(6)}),
        "g2": (None, {f"a{n} 2" for n in range(6)}),
        "g3": (None, {f"b{n} 3" for n in range(4)}),
        "g4": (None, {"c0 4"}),
    }
    first = grouped.groups.get("g1")
    assert (first.faces, first.photos, first.first is not None) == (6, 6, True)
    assert grouped.check() == []


def test_one_face_is_a_group(empty: Library) -> None:
    invented_photos.store(empty, {"a": [1]})
    assert empty.groups.update().groups == 1
    invented_photos.store(empty, {"b": [1]})
    assert empty.groups.update().groups == 1
    assert empty.groups.update(again=True).groups == 1


def test_an_empty_library_has_no_groups(empty: Library) -> None:
    assert empty.groups.update().groups == 0
    assert empty.groups.update(again=True).faces == 0
    assert empty.groups.page() == []


@pytest.mark.parametrize("again", [False, True])
def test_the_same_library_gives_the_same_groups(grouped: Library, groups_in: GroupsIn, again: bool) -> None:
    before = groups_in(grouped)
    done = grouped.groups.update(again=again)
    assert (done.moved, done.new_groups) == (0, 0)
    assert groups_in(grouped) == before


@pytest.mark.parametrize("again", [False, True])
def test_new_faces_join_and_form_groups(grouped: Library, groups_in: GroupsIn, again: bool) -> None:
    invented_photos.store(grouped, {"d0": [3, 5], "d1": [5]})
    assert grouped.groups.ungrouped_faces == 3
    done = grouped.groups.update(again=again)
    assert (done.again, done.moved) == (again, 3)
    found = groups_in(grouped)
    assert found["g3"][1] == {*(f"b{n} 3" for n in range(4)), "d0 3"}
    assert found["g5"] == (None, {"d0 5", "d1 5"})
    assert grouped.groups.ungrouped_faces == 0


def test_a_library_that_has_grown_much_is_grouped_again(grouped: Library) -> None:
    invented_photos.store(grouped, {f"d{n}": [5] for n in range(8)})
    assert not grouped.groups.update().again  # 25 of 17
    invented_photos.store(grouped, {"e": [6]})
    assert grouped.groups.update().again


def test_numbers_of_groups_are_never_used_again(grouped: Library) -> None:
    invented_photos.remove(grouped, [place(grouped, "c0")[0]])
    assert "g4" not in grouped.groups
    invented_photos.store(grouped, {"e0": [7]})
    grouped.groups.update()
    assert [group.id for group in grouped.groups.page()] == ["g1", "g2", "g3", "g5"]


@pytest.mark.parametrize("again", [False, True])
def test_a_saved_person_gives_their_name_to_their_group(
    grouped: Library, groups_in: GroupsIn, again: bool
) -> None:
    grouped.people.add("Carl", [Example(face_of(3, 99))])  # a portrait, of no photo in the library
    grouped.groups.update(again=again)
    assert groups_in(grouped)["g3"] == ("Carl", {f"b{n} 3" for n in range(4)})
    invented_photos.store(grouped, {"d0": [3]})
    grouped.groups.update(again=again)
    assert "d0 3" in groups_in(grouped)["g3"][1]


def test_undoing_that_somebody_was_saved_takes_the_name_from_their_group(grouped: Library) -> None:
    grouped.people.add("Carl", [Example(face_of(3, 99))])
    grouped.groups.update()
    grouped.people.undo()
    assert grouped.groups.get("g3").name is None
    grouped.people.undo(2)
    assert grouped.groups.get("g3").name == "Carl"


@pytest.mark.parametrize("again", [False, True])
def test_faces_of_a_named_group_stay_together_unless_refused(
    grouped: Library, groups_in: GroupsIn, again: bool
) -> None:
    # named although they look like two people, as a child and the adult it became
    invented_photos.store(grouped, {"d0": [8], "d1": [9]})
    grouped.groups.update()
    eight, nine = (g for g, (_, faces) in groups_in(grouped).items() if faces & {"d0 8", "d1 9"})
    grouped.groups.name(eight, "Dora")
    grouped.groups.name(nine, "Dora", if_exists="add")
    grouped.groups.update(again=again)
    found = groups_in(grouped)
    assert {found[eight][0], found[nine][0]} == {"Dora"}
    grouped.people.reject("Dora", *place(grouped, "d1"))
    grouped.groups.update(again=again)
    assert [(name, faces) for name, faces in groups_in(grouped).values() if "d1 9" in faces] == [
        (None, {"d1 9"})
    ]


@pytest.mark.parametrize("again", [False, True])
def test_a_rejected_face_never_joins_the_person_again(
    grouped: Library, groups_in: GroupsIn, again: bool
) -> None:
    grouped.groups.name("g1", "Anna")
    grouped.people.reject("Anna", *place(grouped, "a0"))
    for _ in range(2):
        grouped.groups.update(again=again)
        found = groups_in(grouped)
        assert found["g1"] == ("Anna", {f"a{n} 1" for n in range(1, 6)})
        assert [name for name, faces in found.values() if "a0 1" in faces] == [None]


@pytest.mark.parametrize("again", [False, True])
def test_a_confirmed_face_comes_to_the_persons_group(
    grouped: Library, groups_in: GroupsIn, again: bool
) -> None:
    grouped.groups.name("g1", "Anna")
    grouped.people.confirm("Anna", *place(grouped, "c0"))
    grouped.groups.update(again=again)
    found = groups_in(grouped)
    assert [name for name, faces in found.values() if "c0 4" in faces] == ["Anna"]
    assert "g4" not in found or found["g4"][0] == "Anna"


@pytest.mark.parametrize("again", [False, True])
def test_a_hidden_group_stays_hidden_and_takes_new_faces(
    grouped: Library, groups_in: GroupsIn, again: bool
) -> None:
    grouped.groups.hide(["g3", "g4"])
    invented_photos.store(grouped, {"d0": [3], "d1": [4]})
    grouped.groups.update(again=again)
    assert [(g.id, g.faces) for g in grouped.groups.page("hidden")] == [("g3", 5), ("g4", 2)]


def test_merged_people_have_the_groups_of_both(grouped: Library) -> None:
    grouped.groups.name("g1", "Anna")
    grouped.groups.name("g3", "Ann")
    grouped.people.merge("Anna", ["Ann"], "merge")
    assert {g.name for g in (grouped.groups.get("g1"), grouped.groups.get("g3"))} == {"Anna"}
    grouped.groups.update(again=True)
    assert [g.id for g in grouped.groups.page("named")] == ["g1", "g3"]
    grouped.people.undo()
    assert grouped.groups.get("g3").name == "Ann"


def test_what_is_said_while_faces_are_grouped_counts(
    grouped: Library, groups_in: GroupsIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    from setnet.library import grouping

    def meanwhile(*given: Any) -> Any:
        found = group_faces(*given)
        grouped.groups.name("g1", "Anna", [place(grouped, "a0")])
        grouped.groups.hide(["g3"])
        return found

    monkeypatch.setattr(grouping, "group_faces", meanwhile)
    grouped.groups.update(again=True)
    found = groups_in(grouped)
    assert found["g1"] == ("Anna", {f"a{n} 1" for n in range(1, 6)})
    assert grouped.groups.get("g3").hidden
    assert grouped.check() == []


def test_a_run_that_is_stopped_leaves_the_groups_as_they_were(grouped: Library, groups_in: GroupsIn) -> None:
    before = groups_in(grouped)
    invented_photos.store(grouped, {"d0": [3]})
    assert grouped.groups.update(should_stop=lambda: True).interrupted
    assert groups_in(grouped) == before
    assert grouped.groups.ungrouped_faces == 1
    assert not grouped.groups.update().interrupted
    assert grouped.groups.ungrouped_faces == 0


def test_two_runs_at_a_time_are_refused(grouped: Library) -> None:
    with grouped._lock_writing(), pytest.raises(LockedError, match="being written"):
        grouped.groups.update()


def test_the_groups_of_a_person_have_a_mean_that_suggestions_compare(grouped: Library) -> None:
    from setnet.library.groups import _GroupMeans

    means = _GroupMeans.of(grouped, None)
    assert means.groups.tolist() == [1, 2, 3, 4]
    expected = np.mean([grouped.photos.descriptors(place(grouped, f"b{n}")[0])[0] for n in range(4)], axis=0)
    assert np.allclose(means.means[2], expected, atol=1e-5)
    assert _GroupMeans.of(grouped, means) is means


FACES, PEOPLE = 12, 3
NUMBERS = st.integers(0, 4)


@st.composite
def identities(draw: st.DrawFn) -> KnownLabels:
    """Return what may be known of a dozen faces, in groups 1 to 4 of which some are named or hidden."""
    group = np.array(draw(st.lists(NUMBERS, min_size=FACES, max_size=FACES)))
    person_of = np.array([0, *draw(st.lists(st.integers(0, PEOPLE), min_size=4, max_size=4))])
    hidden_of = np.array([False, *draw(st.lists(st.booleans(), min_size=4, max_size=4))])
    label = np.array(draw(st.lists(st.integers(0, PEOPLE), min_size=FACES, max_size=FACES)))
    pairs = st.tuples(st.integers(0, FACES - 1), st.integers(1, PEOPLE))
    refused = [pair for pair in draw(st.sets(pairs, max_size=6)) if label[pair[0]] != pair[1]]
    return KnownLabels(
        group, person_of[group], hidden_of[group], label,
        np.array([face for face, _ in refused], np.int64), np.array([who for _, who in refused], np.int64),
        np.zeros(0, np.int64), np.zeros((0, 4), np.float32),
    )  # fmt: skip


CLUSTERS = st.lists(st.integers(0, 5), min_size=FACES, max_size=FACES).map(np.array)
CLAIMS = st.dictionaries(st.integers(0, 5), st.integers(1, PEOPLE), max_size=3)


def owners(known: KnownLabels, named: dict[int, int]) -> dict[int, int]:
    before = dict(zip(known.group.tolist(), known.person.tolist(), strict=True))
    return {group: who for group, who in before.items() if who} | named


@given(CLUSTERS, CLAIMS, identities())
def test_what_users_said_holds(clusters: np.ndarray, claims: dict[int, int], known: KnownLabels) -> None:
    assigned = GroupAssignment(clusters, claims, known)
    person = owners(known, assigned.person)
    assert (assigned.group != 0).all()  # every face is in a group
    fixed = known.fixed
    assert (assigned.group[fixed > 0] == fixed[fixed > 0]).all()  # named and hidden groups keep their faces
    for face, who in zip(known.rejected_face.tolist(), known.rejected_person.tolist(), strict=True):
        assert person.get(int(assigned.group[face]), 0) != who
    for face in np.flatnonzero(known.label).tolist():
        refused = (known.rejected_face == face) & (known.rejected_person == known.label[face])
        assert refused.any() or person.get(int(assigned.group[face])) == known.label[face]
    for group, who in assigned.person.items():  # nobody is renamed
        assert group < 0 or who == person[group]
        assert not ((known.group == group) & (known.person != 0) & (known.person != who)).any()


@given(CLUSTERS)
def test_clusters_of_unknown_faces_become_groups_and_stay_so(clusters: np.ndarray) -> None:
    none = np.zeros(FACES, np.int64)
    nothing = np.zeros(0, np.int64)
    unknown = KnownLabels(
        none, none, none.astype(bool), none, nothing, nothing, nothing, np.zeros((0, 4), np.float32)
    )
    first = GroupAssignment(clusters, {}, unknown).group
    assert len(set(zip(first.tolist(), clusters.tolist(), strict=True))) == len(set(clusters.tolist()))
    stored = KnownLabels(
        -first, none, none.astype(bool), none, nothing, nothing, nothing, np.zeros((0, 4), np.float32)
    )
    assert (GroupAssignment(clusters, {}, stored).group == -first).all()


def test_an_id_goes_where_most_of_its_faces_are() -> None:
    none, nothing = np.zeros(7, np.int64), np.zeros(0, np.int64)
    known = KnownLabels(
        np.array([5, 5, 5, 6, 6, 7, 0]), none, none.astype(bool), none, nothing, nothing, nothing,
        np.zeros((0, 4), np.float32),
    )  # fmt: skip
    clusters = np.array([0, 0, 1, 1, 1, 1, 2])
    assert GroupAssignment(clusters, {}, known).group.tolist() == [5, 5, 6, 6, 6, 6, -1]
