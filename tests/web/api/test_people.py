"""Saving people, and forgetting."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from fastapi.testclient import TestClient

from setnet.library import IndexProgress, Library
from setnet.web.state.index_job import IndexJob

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


def vector(client: TestClient, number: int) -> list[float]:
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
def test_a_person_of_any_name_is_saved_found_renamed_and_removed(own: TestClient, name: str) -> None:
    made = own.post(f"{API}/people", json={"name": name, "descriptors": [vector(own, 1)]})
    assert made.status_code == 201
    assert made.json()["name"] == name
    at = f"{API}/people/{quote(name, safe='')}"
    assert own.get(at).json()["examples"] == 1
    assert own.get(f"{at}/picture").status_code == 404  # known by a descriptor only
    assert own.post(f"{API}/search", json={"people": [{"saved": name}]}).status_code == 200
    assert own.patch(at, json={"name": f"{name} II"}).json()["name"] == f"{name} II"
    assert own.get(at).status_code == 404
    assert own.delete(f"{API}/people/{quote(name + ' II', safe='')}").status_code == 200
    assert own.get(f"{API}/people").json() == {"people": []}


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
        own.post(f"{API}/people", json={"name": name, "descriptors": [vector(own, number)]})
    assert own.post(f"{API}/people/Ann/merge", json={"others": ["Anna"]}).json()["examples"] == 2
    assert own.get(f"{API}/people/Anna").status_code == 404
    assert own.post(f"{API}/people/Ann/merge", json={"others": ["Ann"]}).status_code == 422


def test_a_slash_in_a_name_is_no_route(own: TestClient) -> None:
    for number, name in enumerate(("A", "A/merge", "A/picture", "B", "%2F"), 1):
        own.post(f"{API}/people", json={"name": name, "descriptors": [vector(own, number)]})
    assert own.post(f"{API}/people/A%2Fmerge", json={"others": ["B"]}).status_code == 405
    assert own.get(f"{API}/people/B").status_code == 200
    merged = own.post(f"{API}/people/A%2Fmerge/merge", json={"others": ["B"]}).json()
    assert (merged["name"], merged["examples"]) == ("A/merge", 2)
    assert own.get(f"{API}/people/A%2Fpicture").json()["name"] == "A/picture"
    assert own.get(f"{API}/people/%252F").json()["name"] == "%2F"  # decoded once, not twice
    assert own.get(f"{API}/people/A").json()["examples"] == 1


@pytest.mark.parametrize(
    "body", [{"name": "X"}, {"name": " ", "descriptors": [[1.0] * 128]}, {"name": "..", "descriptors": []}]
)
def test_a_person_without_face_or_name_is_refused(own: TestClient, body: dict[str, Any]) -> None:
    assert own.post(f"{API}/people", json=body).status_code == 422


def test_index_run_reports_live_and_finds_new_photos(own: TestClient, made: Any, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "new.jpg").write_bytes((made.photos / "2016/alone.jpg").read_bytes())
    started = own.post(f"{API}/index", json={"folders": [str(tmp_path / "more")]})
    assert started.status_code == 202
    events = own.get(f"{API}/index/events?once=true").text
    assert "event: index" in events
    assert '"state": "done"' in events
    assert own.get(f"{API}/index").json()["report"]["copied"] == 1
    assert own.get(f"{API}/status").json()["photos"] == 6
    assert own.post(f"{API}/index", json={"folders": [str(tmp_path / "absent")]}).status_code == 422
    assert own.post(f"{API}/forget/folder", json={"folder": str(tmp_path / "more")}).json() == {"photos": 1}


def test_forgetting_everything_needs_the_words_and_leaves_photos(
    own: TestClient, made: Any, tmp_path: Path
) -> None:
    assert own.post(f"{API}/forget/everything", json={"confirm": "yes"}).status_code == 422
    assert own.post(f"{API}/forget/everything", json={"confirm": "forget everything"}).json() == {"photos": 5}
    assert own.get(f"{API}/status").json()["photos"] == 0
    assert own.get(f"{API}/photos").json()["photos"] == []
    assert (made.photos / "2016/alone.jpg").exists()


def test_forgetting_everything_goes_on_beside_other_files_in_the_folder(
    own: TestClient, tmp_path: Path
) -> None:
    (tmp_path / "library" / "a note of mine.txt").write_text("stays")
    answer = own.post(f"{API}/forget/everything", json={"confirm": "forget everything"})
    assert answer.json() == {"photos": 5}
    assert answer.headers["clear-site-data"] == '"cache"'  # where thumbnails are kept for a year
    assert own.get(f"{API}/photos").json()["photos"] == []
    assert (tmp_path / "library" / "a note of mine.txt").exists()


def test_a_library_forgotten_by_another_program_is_forgotten_here(own: TestClient, tmp_path: Path) -> None:
    photo = own.get(f"{API}/photos").json()["photos"][0]
    search = {"people": [{"descriptors": [vector(own, 0)]}], "at_least": 0}
    with Library.open(tmp_path / "library") as library:
        library.forget_everything()
    assert own.get(f"{API}/photos/{photo['id']}/thumbnail").status_code == 503
    assert own.get(f"{API}/photos").status_code == 503
    assert own.post(f"{API}/search", json=search).status_code == 503
    assert not (tmp_path / "library").exists()


def test_a_run_that_says_it_is_done_is_done(
    own: TestClient, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []
    change = IndexJob._change

    def watched(job: IndexJob, **changes: Any) -> None:
        change(job, **changes)
        if changes.get("state") == "done":
            ended.append(not job.is_running)  # what a client sees that heard of it at once

    monkeypatch.setattr(IndexJob, "_change", watched)
    own.post(f"{API}/index", json={"folders": [str(made.photos)]})
    own.get(f"{API}/index/events?once=true")
    assert ended == [True]


def test_a_stopped_run_keeps_what_it_found_and_can_go_on(
    own: TestClient, made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    data = (made.photos / "2019/three.jpg").read_bytes()
    for number in range(8):  # other content, so faces must be found
        (folder / f"{number}.jpg").write_bytes(data + bytes([number]))
    found = threading.Event()
    report = IndexJob._report

    def reported(job: IndexJob, progress: IndexProgress) -> None:
        report(job, progress)
        if progress.done:
            found.set()
            job._stop.wait()  # the run stays at its first photo until it is stopped

    monkeypatch.setattr(IndexJob, "_report", reported)
    own.post(f"{API}/index", json={"folders": [str(folder)]})
    assert own.post(f"{API}/index", json={}).status_code == 409
    assert own.post(f"{API}/forget/everything", json={"confirm": "forget everything"}).status_code == 409
    found.wait()
    search = {"people": [{"descriptors": [vector(own, 0)]}]}
    assert own.post(f"{API}/search", json=search).status_code == 200
    assert own.delete(f"{API}/index").json()["state"] == "stopping"
    own.get(f"{API}/index/events?once=true")
    state = own.get(f"{API}/index").json()
    assert state["state"] == "stopped"
    assert state["report"]["interrupted"]
    assert state["report"]["added"] == 1
