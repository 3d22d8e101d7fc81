"""Requests of other sites, guessed tokens, and servers behind a proxy."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from setnet.errors import InvalidInputError
from setnet.web import WebSettings
from setnet.web.guard import COOKIE, SESSION_SECONDS, Access, Sessions

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"
TOKEN = "a-token-of-some-length"
RIGHT = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def library(made: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place: Path = tmp_path_factory.mktemp("guard") / "library"
    shutil.copytree(made.library, place)
    return place


@pytest.fixture
def proxied(library: Path, tmp_path: Path, open_client: Callable[..., Any]) -> Iterator[TestClient]:
    with open_client(library, WebSettings(token=TOKEN, behind_proxy=True)) as client:
        yield client


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:3000", "http://["])
@pytest.mark.parametrize("path", [f"{API}/status", f"{API}/photos", f"{API}/people/x"])
def test_other_sites_cannot_read(shared: TestClient, origin: str, path: str) -> None:
    assert shared.get(path, headers={"Origin": origin}).status_code == 403


def test_the_own_page_and_links_to_it_stay_possible(shared: TestClient) -> None:
    photo = shared.get(f"{API}/photos").json()["photos"][0]["id"]
    picture = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors"}
    assert shared.get(f"{API}/photos/{photo}/file", headers=picture).status_code == 200
    assert shared.get(f"{API}/status", headers={"Origin": "http://localhost"}).status_code == 200
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert shared.get("/", headers=link).status_code == 200
    assert shared.get(f"{API}/photos/{photo}/file", headers=link).status_code == 403
    typed = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
    assert shared.get(f"{API}/photos/{photo}/file", headers=typed).status_code == 200


def test_an_address_that_guesses_tokens_is_blocked_and_no_other(proxied: TestClient) -> None:
    guesser, other = {"X-Forwarded-For": "10.0.0.9, 192.0.2.1"}, {"X-Forwarded-For": "192.0.2.2"}
    for number in range(5):
        assert (
            proxied.get(f"{API}/status", headers=guesser | {"X-Setnet-Token": f"{number}"}).status_code == 401
        )
        wrong = proxied.post(f"{API}/session", json={"token": f"guess {number}"}, headers=guesser)
        assert wrong.status_code == 401
    for answer in (
        proxied.get(f"{API}/status", headers=guesser | RIGHT),
        proxied.post(f"{API}/session", json={"token": TOKEN}, headers=guesser),
    ):
        assert answer.status_code == 429
        assert 0 < int(answer.headers["retry-after"]) <= 60
    assert proxied.get("/", headers=guesser).status_code == 200
    assert proxied.get(f"{API}/status", headers=other | RIGHT).status_code == 200
    assert proxied.post(f"{API}/session", json={"token": TOKEN}, headers=other).status_code == 204


def test_a_browser_with_an_outdated_cookie_can_still_sign_in(proxied: TestClient) -> None:
    for _ in range(40):
        assert proxied.get(f"{API}/photos", headers={"Cookie": f"{COOKIE}=of-yesterday"}).status_code == 401
        assert proxied.get(f"{API}/photos").status_code == 401
    assert proxied.post(f"{API}/session", json={"token": TOKEN}).status_code == 204


def test_a_session_ends_with_its_time_and_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    sessions = Sessions(lambda: now[0])
    first = sessions.begin()
    assert sessions.access(first) is Access.ALL
    assert sessions.access(f"{first}x") is sessions.access("") is None
    now[0] += SESSION_SECONDS
    assert sessions.access(first) is None
    monkeypatch.setattr("setnet.web.guard._MOST_SESSIONS", 2)
    begun = [sessions.begin() for _ in range(3)]
    assert [sessions.access(session) for session in begun] == [None, Access.ALL, Access.ALL]
    assert Sessions().access(begun[2]) is None  # after a restart


def test_signing_out_ends_the_session_wherever_it_is_used(proxied: TestClient) -> None:
    def begin() -> dict[str, str]:
        cookie = proxied.post(f"{API}/session", json={"token": TOKEN}).cookies[COOKIE]
        proxied.cookies.clear()
        return {"Cookie": f"{COOKIE}={cookie}"}

    one, another = begin(), begin()
    assert proxied.get(f"{API}/status", headers=one).status_code == 200
    assert proxied.delete(f"{API}/session", headers=one).status_code == 204
    assert proxied.get(f"{API}/status", headers=one).status_code == 401
    assert proxied.get(f"{API}/status", headers=another).status_code == 200
    assert proxied.delete(f"{API}/session").status_code == 204  # without one


@pytest.mark.parametrize(
    ("trusted", "scheme", "secure"),
    [(True, "https", True), (True, "http", False), (True, "https, http", False), (False, "https", False)],
)
def test_the_cookie_is_secure_when_a_trusted_proxy_has_tls(
    library: Path, tmp_path: Path, open_client: Callable[..., Any], trusted: bool, scheme: str, secure: bool
) -> None:
    settings = WebSettings(host="0.0.0.0", token=TOKEN, behind_proxy=trusted)
    with open_client(library, settings) as client:
        answer = client.post(f"{API}/session", json={"token": TOKEN}, headers={"X-Forwarded-Proto": scheme})
    assert ("Secure" in answer.headers["set-cookie"]) is secure


def test_a_server_behind_a_proxy_needs_a_token() -> None:
    with pytest.raises(InvalidInputError, match="token"):
        WebSettings(behind_proxy=True)


READ = "a-token-that-only-reads"


def test_a_token_for_reading_looks_and_searches_and_neither_changes_nor_exports(
    library: Path, tmp_path: Path, open_client: Callable[..., Any]
) -> None:
    settings = WebSettings(token=TOKEN, read_token=READ)
    with open_client(library, settings) as client:
        document = client.get(f"{API}/openapi.json", headers=RIGHT).json()
        client.headers["Authorization"] = f"Bearer {READ}"
        changing = {
            (verb, path)
            for path, operations in document["paths"].items()
            for verb in operations
            if verb != "get"
            and path not in (f"{API}/search", f"{API}/faces", f"{API}/faces/groups", f"{API}/session")
        }
        assert len(changing) > 20
        for verb, path in sorted(changing):
            answer = client.request(verb, path.replace("{", "").replace("}", ""), json={})
            assert (answer.status_code, answer.json()["code"]) == (403, "read_only"), path
        assert client.get(f"{API}/photos").json()["photos"]
        assert client.get(f"{API}/status").json()["access"] == "read"
        assert client.get(f"{API}/status", headers=RIGHT).json()["access"] == "all"
        assert client.post(f"{API}/search", json={"people": [{"group": "g1"}]}).status_code == 200
        del client.headers["Authorization"]
        assert client.post(f"{API}/session", json={"token": READ}).status_code == 204  # the page
        assert client.get(f"{API}/photos").status_code == 200
        assert client.post(f"{API}/index", json={}).json()["code"] == "read_only"
        assert client.post(f"{API}/changes/undo", json={}, headers=RIGHT).status_code != 403


@pytest.mark.parametrize("token", [None, READ])
def test_a_token_for_reading_needs_another_one_beside_it(token: str | None) -> None:
    with pytest.raises(InvalidInputError, match="another one"):
        WebSettings(token=token, read_token=READ)
