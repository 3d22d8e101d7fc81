"""Large and hostile JSON bodies: what they may weigh, and where they are parsed."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"
JSON = {"Content-Type": "application/json"}


def people(*vectors: str) -> bytes:
    return f'{{"name": "x", "descriptors": [{",".join(vectors)}]}}'.encode()


def test_a_session_takes_no_more_than_a_token(shared: TestClient) -> None:
    body = b'{"token": [' + b"1," * 2000 + b"1]}"
    for content in (body, iter([body])):  # with its length announced, and without
        answer = shared.post(f"{API}/session", content=content, headers=JSON)
        assert answer.status_code == 413
        assert "2048 bytes" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/search", "/people"])
def test_numbers_beyond_4_megabytes_are_refused_before_they_are_parsed(
    shared: TestClient, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parsed(*_: object) -> None:
        raise AssertionError("this takes seconds and gigabytes")

    monkeypatch.setattr("setnet.web.requests.from_json", parsed)
    decoy = b'"images": ["' + b"A" * 5_000_000 + b'"], '  # images among them make no difference
    for images in (b"", decoy):
        body = b"{" + images + b'"descriptors": [[' + b"0.123," * 800_000 + b"1]]}"
        answer = shared.post(f"{API}{path}", content=body, headers=JSON)
        assert answer.status_code == 413
        assert "4 MB" in answer.json()["detail"]


def test_images_beyond_4_megabytes_are_welcome(shared: TestClient, portrait: Callable[[str], bytes]) -> None:
    image = base64.b64encode(portrait("P001") + bytes(5_000_000)).decode()
    answer = shared.post(f"{API}/search", json={"people": [{"images": [image]}]})
    assert answer.status_code == 200
    assert answer.json()["hits"]


def test_large_bodies_are_parsed_beside_the_event_loop(
    shared: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []

    def watched(body: bytes) -> Any:
        threads.append(threading.current_thread().name)
        return json.loads(body)

    monkeypatch.setattr("setnet.web.requests.from_json", watched)
    body = json.dumps({"people": [{"descriptors": [[0.5] * 4096] * 10}]})
    assert shared.post(f"{API}/search", content=body, headers=JSON).status_code == 422
    assert [name.startswith("setnet-parsing") for name in threads] == [True]


def test_a_million_faults_are_not_described_one_by_one(shared: TestClient) -> None:
    wrong = "[" + ",".join(['"x"'] * 4096) + "]"
    answer = shared.post(f"{API}/people", content=people(*[wrong] * 100), headers=JSON)
    assert answer.status_code == 422
    assert [fault["at"] for fault in answer.json()["errors"]] == ["body.descriptors.0.0"]
    for unknown, described in ((10_000, 20), (100_000, 0)):
        body = json.dumps(dict.fromkeys(map(str, range(unknown)), 1))
        answer = shared.post(f"{API}/people", content=body, headers=JSON)
        assert answer.status_code == 422
        assert len(answer.json().get("errors", [])) == described
    assert "20000 fields" in answer.json()["detail"]


def test_every_error_has_a_code_for_programs(own: TestClient) -> None:
    documented = own.get("/api/v1/openapi.json").json()["components"]["schemas"]["ProblemDetails"]
    assert "code" in documented["required"]
    answers = {
        "not_found": own.get(f"{API}/people/Nobody"),
        "method_not_allowed": own.put(f"{API}/people"),
        "bad_request": own.post(f"{API}/search", content=b"{", headers={"Content-Type": "application/json"}),
        "wrong_media_type": own.post(f"{API}/search", content=b"{}"),
        "invalid_input": own.post(f"{API}/search", json={"people": []}),
        "not_a_photo": own.post(f"{API}/faces", content=b"none", headers={"Content-Type": "image/jpeg"}),
        "wrong_host": own.get(f"{API}/people", headers={"Host": "example.org"}),
    }
    for code, answer in answers.items():
        assert (answer.json()["code"], answer.json()["status"]) == (code, answer.status_code)
        assert f"`{code}`" in documented["properties"]["code"]["description"]


def test_times_are_iso_8601_and_in_utc(own: TestClient, portrait: Callable[[str], bytes]) -> None:
    upload = own.post(f"{API}/faces", content=portrait("P001"), headers={"Content-Type": "image/jpeg"})
    query = {"name": "Ann", "faces": [upload.json()["faces"][0]["id"]]}
    saved = own.post(f"{API}/people", json=query).json()
    run = own.post(f"{API}/index", json={}).json()
    example = own.get(f"{API}/people/Ann/examples").json()["examples"][0]
    change = own.get(f"{API}/changes").json()["changes"][0]
    for text in (saved["added"], run["started"], example["added"], change["at"]):
        assert datetime.now(UTC) - datetime.fromisoformat(text) < timedelta(minutes=5)
