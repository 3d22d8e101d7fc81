"""Shots of videos by the REST API: among the photos, with their times, pictures and files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from setnet.client import Hits, Photos
from setnet.web.photos import Shots

API = "/api/v1"


@pytest.fixture(scope="module")
def client(filmed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    from setnet.web import create_app

    app = create_app(filmed)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as opened:
        yield opened


@pytest.fixture(scope="module")
def shots(client: TestClient) -> list[dict[str, Any]]:
    """The shots of the clip, in order."""
    photos = client.get(f"{API}/photos").json()
    Photos.model_validate(photos)
    found = [photo for photo in photos["photos"] if photo["kind"] == "video"]
    return sorted(found, key=lambda shot: float(shot["from"]))


def test_a_search_finds_two_people_in_a_shot(
    client: TestClient, shots: list[dict[str, Any]], portrait: Callable[[str], bytes]
) -> None:
    people = []
    for name in ("P001", "P003"):
        headers = {"Content-Type": "image/jpeg"}
        found = client.post(f"{API}/faces", content=portrait(name), headers=headers).json()
        people.append({"faces": [found["faces"][0]["id"]]})
    answer = client.post(f"{API}/search", json={"people": people}).json()
    Hits.model_validate(answer)
    best = answer["hits"][0]
    assert (best["kind"], best["id"], round(best["from"])) == ("video", shots[1]["id"], 3)
    only = client.post(f"{API}/search", json={"people": people, "kind": "photo"}).json()
    assert {hit["kind"] for hit in only["hits"]} == {"photo"}
    assert client.post(f"{API}/search", json={"people": people, "kind": "film"}).status_code == 422


def test_a_shot_says_who_is_where_when(client: TestClient, shots: list[dict[str, Any]]) -> None:
    details = client.get(f"{API}/photos/{shots[1]['id']}").json()
    assert len(details["faces"]) == 2
    track = details["faces"][0]["track"]
    assert all(len(look) == 5 and 2.9 <= look[0] <= 6 for look in track)
    strip = client.get(f"{API}/photos/{shots[0]['id']}/shots").json()
    Shots.model_validate(strip)
    assert [shot["id"] for shot in strip["shots"]] == [shot["id"] for shot in shots]
    assert round(strip["seconds"]) == 6


def test_pictures_of_a_shot_are_drawn_from_the_video(client: TestClient, shots: list[dict[str, Any]]) -> None:
    for path in ("thumbnail?size=160", "faces/0/picture?size=96", "sprite"):
        answer = client.get(f"{API}/photos/{shots[1]['id']}/{path}")
        assert (answer.status_code, answer.headers["content-type"]) == (200, "image/jpeg"), path
        tag = answer.headers["etag"]
        again = client.get(f"{API}/photos/{shots[1]['id']}/{path}", headers={"If-None-Match": tag})
        assert again.status_code == 304
    photo = next(p for p in client.get(f"{API}/photos").json()["photos"] if p["kind"] == "photo")
    for path in ("sprite", "shots"):
        assert client.get(f"{API}/photos/{photo['id']}/{path}").status_code == 404


def test_parts_of_a_file_can_be_asked_for(
    client: TestClient, shots: list[dict[str, Any]], filmed: Path
) -> None:
    url, content = f"{API}/photos/{shots[0]['id']}/file", (filmed.parent / "photos/party.webm").read_bytes()
    whole = client.get(url)
    assert (whole.status_code, whole.content == content) == (200, True)
    assert (whole.headers["content-type"], whole.headers["accept-ranges"]) == ("video/webm", "bytes")
    part = client.get(url, headers={"Range": "bytes=10-19"})
    assert (part.status_code, part.content) == (206, content[10:20])
    assert part.headers["content-range"] == f"bytes 10-19/{len(content)}"
    assert client.get(url, headers={"Range": "bytes=-7"}).content == content[-7:]
    assert client.get(url, headers={"Range": f"bytes={len(content)}-"}).status_code == 416
    for nonsense in ("bytes=5-2", "bytes=-", "lines=1-2", "bytes=0-1,4-5"):
        assert client.get(url, headers={"Range": nonsense}).content == content
