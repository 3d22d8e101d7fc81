"""Pages of an answer: one search for many of them, the same order throughout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from setnet.library import Library
from setnet.web.state import ServerState
from tests.support.invented_photos import face_of, remove, store

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"
QUERY = {"people": [{"descriptors": [face_of(person, 1).tolist()]} for person in (1, 2)]}


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as library:
        store(library, {f"{i}.jpg": [1 + i % 2] for i in range(60)})
        store(library, {f"both-{i}.jpg": [1, 2, 9] for i in range(5)})
        yield library


@pytest.fixture
def client(library: Library, tmp_path: Path, open_client: Callable[..., Any]) -> Iterator[TestClient]:
    with open_client(library.path) as client:
        yield client


def state_of(client: TestClient) -> ServerState:
    app = client.app
    assert isinstance(app, FastAPI)
    state: ServerState = app.state.server
    return state


def ask(client: TestClient, **more: Any) -> dict[str, Any]:
    answer = client.post(f"{API}/search", json={**QUERY, **more})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["id"] for hit in answer["hits"]]


def follow(client: TestClient, answer: dict[str, Any], **more: Any) -> list[str]:
    """Return the ids of all pages that follow."""
    found = []
    while answer["cursor"] is not None:
        answer = ask(client, cursor=answer["cursor"], **more)
        found += ids(answer)
    return found


def test_all_pages_take_few_searches_and_the_last_ones_none(client: TestClient, searches: list[int]) -> None:
    whole = ask(client, limit=200)
    searches.clear()
    first = ask(client, limit=1)
    assert searches == [2]
    assert ids(first) + follow(client, first, limit=1) == ids(whole)
    assert len(searches) <= 7  # for 65 pages
    last = ask(client, limit=60)["cursor"]
    ask(client, limit=1, cursor=last)
    searches.clear()
    again = ask(client, limit=1, cursor=last)
    assert searches == []
    assert again["seconds"]["search"] == 0.0
    assert ids(again) == ids(whole)[60:61]


def test_later_pages_do_not_need_the_faces_of_the_query_any_more(client: TestClient) -> None:
    state = state_of(client)
    from setnet.library import Example

    face = state.faces.add(Example(face_of(1, 1)))
    query = {"people": [{"faces": [face]}], "limit": 5}
    first = client.post(f"{API}/search", json=query).json()
    state.faces.clear()
    assert client.post(f"{API}/search", json={**query, "cursor": first["cursor"]}).status_code == 200
    assert client.post(f"{API}/search", json=query).status_code == 404


def test_an_answer_that_is_not_kept_is_searched_for_again(client: TestClient, searches: list[int]) -> None:
    whole = ids(ask(client, limit=200))
    first = ask(client, limit=20)
    second = ask(client, limit=20, cursor=first["cursor"])
    state_of(client).rankings.clear()
    searches.clear()
    third = ask(client, limit=20, cursor=second["cursor"])
    assert ids(first) + ids(second) + ids(third) == whole[:60]
    assert 61 in searches  # down to the end of this page, and one more; others are ranked ahead meanwhile


def test_it_is_gone_when_the_library_has_changed_as_well(client: TestClient, library: Library) -> None:
    first = ask(client, limit=20)
    state_of(client).rankings.clear()
    store(library, {"new.jpg": [1, 2]})
    answer = client.post(f"{API}/search", json={**QUERY, "limit": 20, "cursor": first["cursor"]})
    assert answer.status_code == 410
    assert "leave the cursor out" in answer.json()["detail"]


def test_pages_stay_in_order_while_the_library_changes(client: TestClient, library: Library) -> None:
    whole = ids(ask(client, limit=200))
    first = ask(client, limit=7)
    store(library, {f"new-{i}.jpg": [1, 2] for i in range(10)})  # would all come first
    remove(library, whole[10:12])
    rest = follow(client, first, limit=7)
    assert len({*ids(first), *rest}) == 7 + len(rest)
    assert {*whole} - {*whole[10:12]} <= {*ids(first), *rest}
    assert not {*whole[10:12]} & {*rest}


def test_forgetting_lets_go_of_kept_answers(client: TestClient) -> None:
    ask(client, limit=7)
    assert len(state_of(client).rankings) == 1
    assert client.post(f"{API}/forget/folder", json={"folder": "/invented"}).json() == {"photos": 65}
    assert len(state_of(client).rankings) == 0


def test_a_cursor_of_another_query_is_refused(client: TestClient) -> None:
    cursor = ask(client, limit=5)["cursor"]
    changes: list[dict[str, Any]] = [{"at_least": 2}, {"only": True}, {"mode": "fast"}, {"totals": True}]
    for change in changes:
        answer = client.post(f"{API}/search", json={**QUERY, "limit": 5, "cursor": cursor, **change})
        assert answer.status_code == 422
        assert "does not belong to this query" in answer.json()["detail"]
    _, commit, digest = cursor.split("-")
    beyond = ask(client, limit=5, cursor=f"99999-{commit}-{digest}")
    assert (beyond["hits"], beyond["cursor"]) == ([], None)
    for text in ("", "5", f"-1-{commit}-{digest}", f"5-{commit}", f"x-{commit}-{digest}", cursor + "0"):
        answer = client.post(f"{API}/search", json={**QUERY, "limit": 5, "cursor": text})
        assert answer.status_code == 422


def test_totals_come_with_every_page_and_the_first_search(client: TestClient, searches: list[int]) -> None:
    expected = [{"matched": 2, "photos": 5, "sure": 5}, {"matched": 1, "photos": 60, "sure": 60}]
    first = ask(client, limit=10, totals=True)
    assert first["totals"] == expected
    assert len(follow(client, first, limit=10, totals=True)) == 55
    assert len(searches) == 1
    assert ask(client, limit=10)["totals"] is None
    assert ask(client, limit=10, totals=True, mode="set")["totals"] is None
    assert ask(client, limit=10, totals=True, at_least=2)["totals"] == expected[:1]
