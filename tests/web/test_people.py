"""Saved people over REST: names, examples, labels, the journal, and people as files."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter

from setnet.client import SavedPerson
from setnet.library import Change, Person
from setnet.web.people import Changes, ExampleFaces
from setnet.web.problems import ProblemDetails

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


@pytest.fixture(scope="module")
def ann(
    made: Any, tmp_path_factory: pytest.TempPathFactory, open_client: Callable[..., Any]
) -> Iterator[TestClient]:
    """A server on which Ann is saved with two examples; tests leave it so."""
    path = shutil.copytree(made.library, tmp_path_factory.mktemp("ann") / "library")
    with open_client(path) as client:
        saved(client, "Ann", vector(1), vector(1, 2))
        yield client


def unit_vector(client: TestClient, number: int) -> list[float]:
    dim = client.get(f"{API}/status").json()["dim"]
    return [1.0 if i == number else 0.0 for i in range(dim)]


@pytest.mark.parametrize(
    "name",
    [
        "Anna",
        "Zoë Ünïcødé 山田 🙂",
        "a/b",
        "A/picture",
        "picture",
        "A/merge",
        "100 % sure?",
        "x#y&z=1",
        'O\'Neil "Bo"',
    ],
)
def test_a_person_of_any_name_is_saved_found_renamed_and_removed(ann: TestClient, name: str) -> None:
    made = ann.post(f"{API}/people", json={"name": name, "descriptors": [unit_vector(ann, 50)]})
    assert made.status_code == 201
    assert made.json()["name"] == name
    at = f"{API}/people/{quote(name, safe='')}"
    assert ann.get(at).json()["examples"] == 1
    assert ann.get(f"{at}/picture").status_code == 404  # known by a descriptor only
    assert ann.post(f"{API}/search", json={"people": [{"saved": name}]}).status_code == 200
    assert ann.patch(at, json={"name": f"{name} II"}).json()["name"] == f"{name} II"
    assert ann.get(at).status_code == 404
    assert ann.delete(f"{API}/people/{quote(name + ' II', safe='')}").status_code == 200
    assert [person["name"] for person in ann.get(f"{API}/people").json()["people"]] == ["Ann"]


def test_a_face_of_an_upload_becomes_a_person_with_a_picture(
    own: TestClient, portrait: Callable[[str], bytes]
) -> None:
    answer = own.post(f"{API}/faces", content=portrait("P001"), headers={"Content-Type": "image/jpeg"}).json()
    own.post(f"{API}/people", json={"name": "Ann", "faces": [answer["faces"][0]["id"]]})
    assert own.get(f"{API}/people/Ann/picture").content[:2] == b"\xff\xd8"
    hits = own.post(f"{API}/search", json={"people": [{"saved": "ann"}]}).json()["hits"]
    assert hits[0]["matches"][0]["person"] == "Ann"
    photo = own.get(f"{API}/photos/{hits[0]['id']}").json()
    assert "Ann" in [face["person"] for face in photo["faces"]]


def test_merging_two_people_adds_up_their_examples(own: TestClient) -> None:
    for number, name in enumerate(("Ann", "Anna"), 1):
        own.post(f"{API}/people", json={"name": name, "descriptors": [unit_vector(own, number)]})
    asked = own.post(f"{API}/people/Ann/merge", json={"others": ["Anna"]})
    assert (asked.status_code, asked.json()["person"]["name"]) == (409, "Ann")
    merge = {"others": ["Anna"], "if_unlike": "merge"}
    assert own.post(f"{API}/people/Ann/merge", json=merge).json()["examples"] == 2
    assert own.get(f"{API}/people/Anna").status_code == 404
    assert own.post(f"{API}/people/Ann/merge", json={"others": ["Ann"]}).status_code == 422


def test_a_slash_in_a_name_is_no_route(own: TestClient) -> None:
    for number, name in enumerate(("A", "A/merge", "A/picture", "B", "%2F"), 1):
        own.post(f"{API}/people", json={"name": name, "descriptors": [unit_vector(own, number)]})
    assert own.post(f"{API}/people/A%2Fmerge", json={"others": ["B"]}).status_code == 405
    assert own.get(f"{API}/people/B").status_code == 200
    merge = {"others": ["B"], "if_unlike": "merge"}
    merged = own.post(f"{API}/people/A%2Fmerge/merge", json=merge).json()
    assert (merged["name"], merged["examples"]) == ("A/merge", 2)
    assert own.get(f"{API}/people/A%2Fpicture").json()["name"] == "A/picture"
    assert own.get(f"{API}/people/%252F").json()["name"] == "%2F"  # decoded once, not twice
    assert own.get(f"{API}/people/A").json()["examples"] == 1


@pytest.mark.parametrize(
    "body", [{"name": "X"}, {"name": " ", "descriptors": [[1.0] * 128]}, {"name": "..", "descriptors": []}]
)
def test_a_person_without_face_or_name_is_refused(ann: TestClient, body: dict[str, Any]) -> None:
    assert ann.post(f"{API}/people", json=body).status_code == 422


def vector(*places: int) -> list[float]:
    """Return a descriptor; two that share a place look alike."""
    return [1.0 if number in places else 0.0 for number in range(128)]


def saved(client: TestClient, name: str, *vectors: list[float], code: int = 201, **more: Any) -> Any:
    answer = client.post(f"{API}/people", json={"name": name, "descriptors": list(vectors), **more})
    assert answer.status_code == code, answer.text
    return answer.json()


def at(name: str, *rest: object) -> str:
    return "/".join([f"{API}/people/{quote(name, safe='')}", *map(str, rest)])


def photo_of(client: TestClient, name: str) -> dict[str, Any]:
    photos = client.get(f"{API}/photos").json()["photos"]
    found: dict[str, Any] = next(photo for photo in photos if photo["name"] == name)
    return found


def test_people_are_found_and_changed_by_id(own: TestClient) -> None:
    made = TypeAdapter(SavedPerson).validate_python(saved(own, "Anna/Äö", vector(1)))
    assert own.get(at(made.id)).json()["name"] == "Anna/Äö"
    change = {"name": "Anne", "aliases": ["Annie", "A/B"], "note": "floor 4"}
    changed = TypeAdapter(Person).validate_python(own.patch(at(made.id), json=change).json())
    assert (changed.id, changed.name, changed.aliases, changed.note) == (
        made.id,
        "Anne",
        ("A/B", "Annie"),
        "floor 4",
    )
    assert own.get(at("a/b")).json()["id"] == made.id
    back = own.patch(at(made.id), json={"name": "Anna", "aliases": ["Anne"]}).json()  # the old name as alias
    assert (back["name"], back["aliases"]) == ("Anna", ["Anne"])
    own.patch(at(made.id), json=change)
    assert own.post(f"{API}/search", json={"people": [{"saved": made.id}]}).json()["people"] == ["Anne"]
    assert own.patch(at(made.id), json={}).status_code == 422
    removed = TypeAdapter(Change).validate_python(own.delete(at(made.id)).json())
    assert own.get(at("Annie")).status_code == 404
    own.post(f"{API}/changes/undo", json={"change": removed.id})
    assert own.get(at("Annie")).json()["id"] == made.id
    own.delete(at(made.id))
    assert own.delete(f"{at('Anne')}?for_good=true").json()["kind"] == "erase"  # who was removed before, too
    assert own.post(f"{API}/changes/undo", json={}).status_code == 422
    assert own.delete(f"{at('Anne')}?for_good=true").status_code == 404


def test_saving_under_a_name_that_is_taken_asks(own: TestClient) -> None:
    anna = saved(own, "Anna", vector(1, 2))
    assert saved(own, "Anna", vector(1, 2, 3))["examples"] == 2  # spelt alike, looks alike
    for name, face in (("anna", vector(1, 2, 4)), ("Anna", vector(9))):
        problem = ProblemDetails.model_validate(saved(own, name, face, code=409))
        assert problem.person is not None
        assert (problem.person.id, problem.person.examples) == (anna["id"], 2)
    assert "does not look like them" in problem.detail
    assert saved(own, "Anna", vector(1, 2, 4), code=409, if_exists="refuse")["status"] == 409
    mixed = saved(own, "anna", vector(9), if_exists="add")
    assert (mixed["name"], mixed["examples"]) == ("Anna", 3)
    assert mixed["notes"][0].startswith("1 of these 3 do not look like the same person")
    assert own.post(f"{API}/people", json={"name": "X", "if_exists": "perhaps"}).status_code == 422


def test_examples_are_listed_shown_removed_moved_and_split_off(
    own: TestClient, portrait: Callable[[str], bytes]
) -> None:
    upload = own.post(f"{API}/faces", content=portrait("P001"), headers={"Content-Type": "image/jpeg"})
    own.post(f"{API}/people", json={"name": "Ann", "faces": [upload.json()["faces"][0]["id"]]})
    saved(own, "Ann", vector(5), vector(6), if_exists="add")
    examples = ExampleFaces.model_validate(own.get(at("Ann", "examples")).json()).examples
    assert [e.number for e in examples] == [1, 2, 3]
    assert (examples[0].origin, examples[0].has_picture, len(examples[0].content or "")) == (
        "portrait",
        True,
        32,
    )
    picture = own.get(at("Ann", "examples", 1, "picture"))
    assert picture.content[:2] == b"\xff\xd8"
    assert picture.headers["content-type"] == "image/jpeg"
    assert own.get(at("Ann", "examples", 2, "picture")).status_code == 404
    assert own.patch(at("Ann"), json={"cover": 1}).json()["cover"] == 1
    split = TypeAdapter(Person).validate_python(
        own.post(at("Ann", "split"), json={"name": "Bea", "examples": [2]}).json()
    )
    assert (split.name, split.examples) == ("Bea", 1)
    moved = own.post(at("Ann", "move"), json={"to": split.id, "examples": [3]}).json()
    assert (moved["name"], moved["examples"]) == ("Bea", 2)
    removed = TypeAdapter(Person).validate_python(own.delete(at("Ann", "examples") + "?number=1").json())
    assert (removed.examples, removed.cover) == (0, None)
    undone = own.post(f"{API}/changes/undo", json={"change": removed.change}).json()
    assert TypeAdapter(Change).validate_python(undone).undoes == removed.change
    assert own.get(at("Ann")).json()["cover"] == 1
    assert own.delete(at("Ann", "examples") + "?number=1&for_good=true").json()["examples"] == 0
    assert own.post(f"{API}/changes/undo", json={"change": removed.change}).status_code == 422


def test_several_examples_leave_in_one_change(own: TestClient) -> None:
    saved(own, "Ann", vector(5), vector(6), vector(7), if_exists="add")
    removed = own.delete(at("Ann", "examples") + "?number=1&number=3").json()
    assert removed["examples"] == 1
    own.post(f"{API}/changes/undo", json={"change": removed["change"]})
    assert own.get(at("Ann")).json()["examples"] == 3
    assert own.delete(at("Ann", "examples") + "?number=1&number=99").status_code == 404
    assert own.get(at("Ann")).json()["examples"] == 3


@pytest.mark.parametrize(
    ("verb", "path", "body", "code"),
    [
        ("get", "Eve/examples", None, 404),
        ("delete", "Ann/examples", None, 422),
        ("delete", "Ann/examples?number=0", None, 422),
        ("delete", "Eve/examples?number=1", None, 404),
        ("get", "Ann/examples/99/picture", None, 404),
        ("get", "Ann/examples/x/picture", None, 422),
        ("delete", "Ann/examples?number=99", None, 404),
        ("post", "Ann/split", {"name": "Bea", "examples": [99]}, 422),
        ("post", "Ann/split", {"name": "ann", "examples": [1]}, 422),
        ("post", "Ann/split", {"name": "Bea", "examples": []}, 422),
        ("post", "Ann/move", {"to": "Eve", "examples": [1]}, 404),
        ("post", "Eve/move", {"to": "Ann", "examples": [1]}, 404),
        ("post", "Eve/confirm", {"photo": "1", "face": 0}, 404),
        ("post", "Ann/confirm", {"photo": "99", "face": 0}, 404),
        ("post", "Ann/reject", {"photo": "1", "face": 99}, 404),
        ("post", "Ann/reject", {"photo": "1"}, 422),
        ("patch", "Ann", {"cover": 99}, 422),
        ("patch", "Ann", {"aliases": [""]}, 422),
        ("patch", "Ann", {"note": "x" * 10_001}, 422),
    ],
)
def test_what_does_not_fit_is_answered_with_a_problem(
    ann: TestClient, verb: str, path: str, body: Any, code: int
) -> None:
    answer = ann.request(verb, f"{API}/people/{path}", json=body)
    assert answer.status_code == code, answer.text
    ProblemDetails.model_validate(answer.json())
    assert ann.get(at("Ann")).json()["examples"] == 2


def test_names_that_look_like_addresses_are_names(own: TestClient) -> None:
    for number, name in enumerate(("A", "A/examples", "examples", "A/examples/1/picture", "changes"), 1):
        saved(own, name, vector(number))
        assert own.get(at(name)).json()["name"] == name
        listed = own.get(at(name, "examples")).json()["examples"]
        assert [example["number"] for example in listed] == [number]


def test_matches_are_confirmed_refused_and_undone(own: TestClient, portrait: Callable[[str], bytes]) -> None:
    upload = own.post(f"{API}/faces", content=portrait("P001"), headers={"Content-Type": "image/jpeg"})
    own.post(f"{API}/people", json={"name": "Ann", "faces": [upload.json()["faces"][0]["id"]]})
    pair = photo_of(own, "pair.jpg")["id"]
    confirmed = TypeAdapter(Person).validate_python(
        own.post(at("Ann", "confirm"), json={"photo": pair, "face": 0}).json()
    )
    assert confirmed.examples == 2
    last = own.get(at("Ann", "examples")).json()["examples"][-1]
    assert (last["origin"], last["has_picture"]) == ("confirmed", True)
    own.post(at("Ann", "reject"), json={"photo": pair, "face": 1})
    assert own.post(f"{API}/changes/undo", json={}).json()["kind"] == "undo"
    changes = Changes.model_validate(own.get(f"{API}/changes?limit=2").json()).changes
    assert [change.summary for change in changes] == [
        "undid: rejected a face for Ann",
        "rejected a face for Ann",
    ]


def test_who_is_together_is_listed_of_a_person(ann: TestClient) -> None:
    assert ann.get(f"{API}/people/ann/together").json() == {"together": [], "total": 0}
    assert ann.get(f"{API}/people/nobody/together").status_code == 404
    assert ann.get(f"{API}/people/Ann/together", params={"min_people": 1}).status_code == 422
