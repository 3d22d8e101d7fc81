"""Faces in, photos out: what the page and a program see."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


def names(answer: dict[str, Any]) -> list[str]:
    return [hit["name"] for hit in answer["hits"]]


def ask(client: TestClient, *people: dict[str, Any], **more: Any) -> dict[str, Any]:
    answer = client.post(f"{API}/search", json={"people": list(people), **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_faces_of_an_upload_are_boxed_and_live_for_a_while(
    shared: TestClient, portrait: Callable[[str], bytes]
) -> None:
    answer = shared.post(f"{API}/faces?preview=true", files={"image": ("p.jpg", portrait("P001"))}).json()
    (face,) = answer["faces"]
    x0, y0, x1, y1 = face["box"]
    assert (answer["width"], answer["height"]) == (480, 480)
    assert 100 < x0 < 240 < x1 < 380
    assert 60 < y0 < y1 < 420
    assert face["quality"]["size"] > 40
    assert base64.b64decode(answer["preview"])[:2] == b"\xff\xd8"
    assert shared.get(f"{API}/faces/{face['id']}/picture").content[:2] == b"\xff\xd8"
    assert answer["expires_in"] > 60


def test_all_people_first_then_all_but_one(shared: TestClient, faces: dict[str, str]) -> None:
    answer = ask(shared, {"faces": [faces["P001"]], "name": "Ann"}, {"faces": [faces["P003"]], "name": "Bea"})
    assert set(names(answer)[:2]) == {"pair.jpg", "three.jpg"}
    assert names(answer)[2] == "alone.jpg"
    assert "nobody.jpg" not in names(answer)
    both = next(hit for hit in answer["hits"] if hit["name"] == "pair.jpg")
    left, right = sorted(both["matches"], key=lambda match: match["box"][0])
    assert (left["person"], right["person"]) == ("Ann", "Bea")  # P001 was composed on the left
    assert left["box"] == both["faces"][left["face"]]["box"]
    assert answer["searched"] == 5


def test_every_match_has_a_probability_and_guesses_can_be_left_out(
    shared: TestClient, faces: dict[str, str], portrait: Callable[[str], bytes]
) -> None:
    person = {"faces": [faces["P003"]], "name": "Cleo"}
    answer = ask(shared, person, totals=True)
    matches = [match for hit in answer["hits"] for match in hit["matches"]]
    assert all(match["sure"] and match["probability"] > 0.9 for match in matches)
    assert answer["totals"] == [{"matched": 1, "photos": 3, "sure": 3}]
    assert (answer["unsure"], answer["faces_searched"]) == ([], 8)
    strict, loose = ask(shared, person, min_similarity=0.99), ask(shared, person, min_similarity=-1)
    assert strict["hits"] == []
    assert len(loose["hits"]) > 3
    assert not loose["hits"][-1]["matches"][0]["sure"]
    assert names(ask(shared, person, min_similarity=-1, sure=True)) == names(answer)
    absent = shared.post(
        f"{API}/faces", content=portrait("P008"), headers={"Content-Type": "image/jpeg"}
    ).json()["faces"][0]["id"]
    nobody = ask(shared, {"faces": [absent], "name": "Zoe"})
    assert nobody["unsure"] == ["Zoe"]
    assert nobody["warnings"] == ["no sure match of Zoe among 8 faces"]
    refused = shared.post(f"{API}/search", json={"people": [person], "min_similarity": 2})
    assert refused.status_code == 422


def test_pages_follow_each_other_without_gap_or_repeat(shared: TestClient, faces: dict[str, str]) -> None:
    person = {"faces": [faces["P003"]]}
    whole = names(ask(shared, person, limit=50))
    first = ask(shared, person, limit=2)
    second = ask(shared, person, limit=2, cursor=first["cursor"])
    assert names(first) + names(second) == whole[:4]
    other = shared.post(
        f"{API}/search", json={"people": [{"faces": [faces["P001"]]}], "cursor": first["cursor"]}
    )
    assert other.status_code == 422
    assert "cursor" in other.json()["detail"]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"at_least": 2}, {"pair.jpg", "three.jpg"}),
        ({"only": True}, {"pair.jpg", "alone.jpg"}),
        ({"after": "2019"}, {"three.jpg"}),
        ({"before": "2017-01-01"}, {"pair.jpg", "alone.jpg"}),
        ({"min_faces": 3}, {"three.jpg"}),
        ({"max_faces": 1}, {"alone.jpg"}),
    ],
)
def test_each_condition_narrows_the_answer(
    shared: TestClient, faces: dict[str, str], conditions: dict[str, Any], expected: set[str]
) -> None:
    people = [{"faces": [faces["P001"]]}, {"faces": [faces["P003"]]}]
    assert set(names(ask(shared, *people, **conditions))) == expected


def test_folder_and_without(shared: TestClient, faces: dict[str, str], made: Any) -> None:
    person = {"faces": [faces["P003"]]}
    assert "three.jpg" not in names(ask(shared, person, folder=str(made.photos / "2016")))
    assert "three.jpg" not in names(ask(shared, person, without=[{"faces": [faces["P005"]]}]))
    assert "three.jpg" in names(ask(shared, person))


@pytest.mark.parametrize("mode", ["exact", "fast", "set"])
def test_every_mode_finds_the_photo_with_everybody_first(
    shared: TestClient, faces: dict[str, str], mode: str
) -> None:
    people = [{"faces": [faces[p]]} for p in ("P001", "P003", "P005")]
    answer = ask(shared, *people, mode=mode)
    assert names(answer)[0] == "three.jpg"
    assert len(answer["hits"][0]["matches"]) == 3
    assert answer["seconds"]["search"] > 0


def test_people_come_as_images_descriptors_or_faces_of_photos(
    shared: TestClient, faces: dict[str, str], portrait: Callable[[str], bytes]
) -> None:
    image = base64.b64encode(portrait("P005")).decode()
    assert names(ask(shared, {"images": [image]}))[0] in ("three.jpg", "others.jpg")
    alone = next(h for h in ask(shared, {"faces": [faces["P003"]]})["hits"] if h["name"] == "alone.jpg")
    same = ask(shared, {"photo_faces": [{"photo": alone["id"], "face": 0}]})
    assert names(same)[0] == "alone.jpg"
    assert same["hits"][0]["matches"][0]["similarity"] > 0.99
    dim = shared.get(f"{API}/status").json()["dim"]
    assert ask(shared, {"descriptors": [[1.0] + [0.0] * (dim - 1)]}, at_least=0)["searched"] == 5


def test_similarity_puts_uploads_of_one_person_together(
    shared: TestClient, faces: dict[str, str], portrait: Callable[[str], bytes]
) -> None:
    again = shared.post(
        f"{API}/faces", content=portrait("P001"), headers={"Content-Type": "image/jpeg"}
    ).json()
    twin = again["faces"][0]["id"]
    groups = shared.post(f"{API}/faces/groups", json={"faces": [faces["P001"], faces["P003"], twin]}).json()[
        "groups"
    ]
    assert sorted(map(sorted, groups)) == sorted([sorted([faces["P001"], twin]), [faces["P003"]]])


def test_a_search_is_saved_listed_and_removed(shared: TestClient) -> None:
    vector = [1.0] + [0.0] * (shared.get(f"{API}/status").json()["dim"] - 1)
    shared.post(f"{API}/people", json={"name": "Ida", "descriptors": [vector]})
    at = f"{API}/searches/Ida%2Falone"
    body = {"people": ["ida"], "only": True, "min_faces": 1}
    made = shared.put(at, json=body)
    assert made.status_code == 200
    assert made.json()["people"] == ["Ida"]
    assert shared.get(f"{API}/searches").json() == {"searches": [made.json()]}
    assert shared.put(at, json=body | {"only": False}).json()["only"] is False
    assert shared.put(at, json={"people": ["nobody"]}).status_code == 404
    assert shared.put(at, json={"people": ["Ida"], "at_least": 2}).status_code == 422
    assert shared.put(at, json=body | {"link_to": "/etc"}).status_code == 422
    assert shared.delete(at).json()["summary"] == "removed the search Ida/alone"
    assert shared.delete(at).status_code == 404
    shared.delete(f"{API}/people/Ida", params={"for_good": True})
