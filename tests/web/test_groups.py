"""Groups of unknown faces over REST: listed, named, hidden, refused, suggested, searched for."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from setnet.client import GroupMembers, Groups, People, PersonPhotos, SavedPerson, Suggestions
from setnet.library import Group
from setnet.web.problems import ProblemDetails

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


def listed(client: TestClient, **query: Any) -> Groups:
    answer = client.get(f"{API}/groups", params=query)
    assert answer.status_code == 200, answer.text
    return Groups.model_validate(answer.json())


def named(client: TestClient, group: str, name: str, code: int = 201, **more: Any) -> Any:
    answer = client.post(f"{API}/groups/{group}/name", json={"name": name, **more})
    assert answer.status_code == code, answer.text
    return answer.json()


def files_of(client: TestClient, name: str) -> list[str]:
    answer = PersonPhotos.model_validate(client.get(f"{API}/people/{name}/photos").json())
    assert answer.total == len(answer.photos)
    return [photo.name for photo in answer.photos]


def test_the_people_of_an_album_are_groups_after_it_was_indexed(shared: TestClient) -> None:
    found = listed(shared)
    assert [group.faces for group in found.groups] == [3, 2, 2, 1]
    assert (found.totals.unnamed, found.totals.named, found.totals.hidden) == (4, 0, 0)
    assert found.grouped_at is not None
    assert found.ungrouped_faces == 0
    largest = found.groups[0]
    assert (largest.id, largest.photos, largest.first, largest.last) == (
        "g1",
        3,
        date(2016, 7, 14),
        date(2019, 1, 2),
    )
    assert listed(shared, min_faces=2).totals.unnamed == 3


def test_groups_and_their_faces_come_in_pages(shared: TestClient) -> None:
    everything = [group.id for group in listed(shared).groups]
    pages, cursor = list[str](), None
    while True:
        page = listed(shared, limit=1, **({} if cursor is None else {"cursor": cursor}))
        pages += [group.id for group in page.groups]
        cursor = page.cursor
        if cursor is None:
            break
    assert pages == everything
    few = listed(shared, max_faces=2, limit=2)
    rest = listed(shared, max_faces=2, cursor=few.cursor)
    assert [group.id for group in (*few.groups, *rest.groups)] == everything[1:]
    first = TypeAdapter(GroupMembers).validate_python(shared.get(f"{API}/groups/g1?limit=2").json())
    last = TypeAdapter(GroupMembers).validate_python(
        shared.get(f"{API}/groups/g1", params={"limit": 2, "cursor": first.cursor}).json()
    )
    faces = [*first.members, *last.members]
    assert [face.path.rpartition("/")[2] for face in faces] == ["three.jpg", "alone.jpg", "pair.jpg"]
    assert last.cursor is None


def test_naming_three_groups_leads_to_the_photos_of_two_without_the_third(own: TestClient) -> None:
    groups = listed(own).groups
    by_files = {}
    for group in groups:
        members = own.get(f"{API}/groups/{group.id}").json()["members"]
        by_files[tuple(sorted(face["path"].rpartition("/")[2] for face in members))] = group
    assert set(by_files) == {
        ("alone.jpg", "pair.jpg", "three.jpg"), ("pair.jpg", "three.jpg"),
        ("others.jpg", "three.jpg"), ("others.jpg",),
    }  # fmt: skip
    names = {"Cleo": ("alone.jpg", "pair.jpg", "three.jpg"), "Anna": ("pair.jpg", "three.jpg")}
    names["Eva"] = ("others.jpg", "three.jpg")
    for name, files in names.items():
        person = TypeAdapter(SavedPerson).validate_python(named(own, by_files[files].id, name))
        assert (person.name, person.has_picture) == (name, True)
        assert 1 <= person.examples <= len(files)  # the same cut-out at two places counts once
    query = {"people": [{"saved": "Anna"}, {"saved": "Cleo"}], "without": [{"saved": "Eva"}], "at_least": 2}
    hits = own.post(f"{API}/search", json=query).json()["hits"]
    assert [hit["name"] for hit in hits] == ["pair.jpg"]
    assert files_of(own, "Cleo") == ["three.jpg", "alone.jpg", "pair.jpg"]
    assert {group.name for group in listed(own, state="named").groups} == {"Anna", "Cleo", "Eva"}
    people = People.model_validate(own.get(f"{API}/people").json()).people
    assert {person.name: person.photos for person in people} == {"Anna": 2, "Cleo": 3, "Eva": 2}


def test_a_name_that_is_taken_is_asked_about_and_everything_can_be_undone(own: TestClient) -> None:
    made = named(own, "g1", "Anna")
    problem = ProblemDetails.model_validate(named(own, "g2", "Anna", 409))
    assert problem.person is not None
    assert problem.person.name == "Anna"
    again = named(own, "g2", "Anna", if_exists="add")
    assert again["id"] == made["id"]
    assert len(listed(own, state="named").groups) == 2
    assert own.get(f"{API}/people").json()["people"][0]["photos"] == 4  # with both, counted once
    for change in (again["change"], made["change"]):
        assert own.post(f"{API}/changes/undo", json={"change": change}).status_code == 200
    assert len(listed(own).groups) == 4
    assert own.get(f"{API}/people").json() == {"people": []}


def test_faces_left_out_when_naming_are_not_the_person(own: TestClient) -> None:
    (left, *_) = own.get(f"{API}/groups/g1").json()["members"]
    face = {"photo": left["photo"], "face": left["face"]}
    made = named(own, "g1", "Cleo", without=[face])
    assert own.get(f"{API}/groups/g1").json()["faces"] == 2
    assert left["path"].rpartition("/")[2] not in files_of(own, "Cleo")
    own.post(f"{API}/changes/undo", json={"change": made["change"]})
    assert own.get(f"{API}/groups/g1").json()["faces"] == 3
    assert named(own, "g1", "Cleo", 422, without=[{"photo": "999", "face": 0}])


def test_a_group_is_hidden_and_shown_again(own: TestClient) -> None:
    hidden = TypeAdapter(Group).validate_python(own.patch(f"{API}/groups/g1", json={"hidden": True}).json())
    assert (hidden.hidden, hidden.change) == (True, 1)
    assert "g1" not in [group.id for group in listed(own).groups]
    assert [group.id for group in listed(own, state="hidden").groups] == ["g1"]
    own.post(f"{API}/changes/undo", json={})
    assert own.get(f"{API}/groups/g1").json()["hidden"] is False


def test_suggestions_are_confirmed_or_refused(own: TestClient, portrait: Callable[[str], bytes]) -> None:
    answer = own.get(f"{API}/suggestions")
    assert Suggestions.model_validate(answer.json()).suggestions == []
    (left, *_) = own.get(f"{API}/groups/g1").json()["members"]
    photo_face = {"photo": left["photo"], "face": left["face"]}
    own.post(f"{API}/people", json={"name": "Cleo", "photo_faces": [photo_face]})
    first = Suggestions.model_validate(own.get(f"{API}/suggestions?person=Cleo").json()).suggestions[0]
    assert (first.person, first.group.id) == ("Cleo", "g1")
    refused = own.post(f"{API}/groups/g1/reject", json={"person": "Cleo"})
    assert TypeAdapter(Group).validate_python(refused.json()).change is not None
    assert own.get(f"{API}/suggestions").json()["suggestions"] == []
    assert own.get(f"{API}/suggestions?person=nobody").status_code == 404


def test_a_group_can_be_searched_for(shared: TestClient) -> None:
    answer = shared.post(f"{API}/search", json={"people": [{"group": "g1"}]}).json()
    assert answer["people"] == ["g1"]
    assert {hit["name"] for hit in answer["hits"]} == {"alone.jpg", "pair.jpg", "three.jpg"}
    assert all(hit["matches"][0]["sure"] for hit in answer["hits"])


def test_a_face_has_a_picture_that_is_kept(own: TestClient) -> None:
    cover = listed(own).groups[0].cover
    assert cover is not None
    place = f"{API}/photos/{cover.photo}/faces/{cover.face}/picture"
    picture = own.get(place)
    assert picture.headers["content-type"] == "image/jpeg"
    assert picture.content == own.get(f"{place}?size=160").content
    tag = {"If-None-Match": picture.headers["etag"]}
    assert own.get(place, headers=tag).status_code == 304
    assert own.get(f"{place}?size=17").status_code == 422
    assert own.get(f"{API}/photos/{cover.photo}/faces/99/picture").status_code == 404


def test_grouping_runs_in_the_background(own: TestClient) -> None:
    started = own.post(f"{API}/groups/discover", json={"again": True})
    assert started.status_code == 202
    assert own.get(f"{API}/index/events?once=true").status_code == 200  # ends with the run
    state = own.get(f"{API}/index").json()
    assert (state["state"], state["report"], state["grouping"]["faces"]) == ("done", None, 8)
    assert [group.id for group in listed(own).groups] == ["g1", "g2", "g3", "g4"]


def test_groups_that_are_not_there_are_not_found(shared: TestClient) -> None:
    for path in ("groups/g99", "people/nobody/photos"):
        assert shared.get(f"{API}/{path}").status_code == 404
    assert "g99" in ProblemDetails.model_validate(named(shared, "g99", "Anna", 404)).detail
    assert shared.patch(f"{API}/groups/g99", json={"hidden": True}).status_code == 404
    assert shared.post(f"{API}/groups/g99/reject", json={"person": "Anna"}).status_code == 404
    assert shared.post(f"{API}/search", json={"people": [{"group": "g99"}]}).status_code == 404
    for cursor in ("x", "1", "1-", "9" * 30):
        assert shared.get(f"{API}/groups?cursor={cursor}").status_code == 422
