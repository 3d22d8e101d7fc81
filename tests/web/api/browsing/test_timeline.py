"""Photos by date: months are counted, and any part of the list is read by its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from invented_photos import remove, store
from setnet.library import Library

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


def _at(year: int, month: int) -> float:
    return datetime(year, month, 14, 12, tzinfo=UTC).timestamp()


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.create(tmp_path / "library") as library:
        store(library, {"unknown.jpg": [1]})
        store(library, {f"july-{i}.jpg": [1] for i in range(3)}, _at(2019, 7))
        store(library, {"old.jpg": [2]}, _at(1968, 1))
        store(library, {f"may-{i}.jpg": [] for i in range(2)}, _at(2021, 5))
        yield library


@pytest.fixture
def client(library: Library, tmp_path: Path, open_client: Callable[..., Any]) -> Iterator[TestClient]:
    with open_client(library.path) as client:
        yield client


def _names(client: TestClient, **place: int) -> list[str]:
    answer = client.get(f"{API}/timeline/photos", params=place)
    assert answer.status_code == 200, answer.text
    return [photo["name"] for photo in answer.json()["photos"]]


def test_months_are_counted_latest_first_and_unknown_times_last(client: TestClient) -> None:
    answer = client.get(f"{API}/timeline").json()
    assert answer["total"] == 7
    assert [(each["month"], each["photos"]) for each in answer["months"]] == [
        ("2021-05", 2),
        ("2019-07", 3),
        ("1968-01", 1),
        (None, 1),
    ]


def test_any_part_of_the_list_is_read_by_its_place(client: TestClient) -> None:
    everything = _names(client)
    assert everything == [
        "may-1.jpg",
        "may-0.jpg",
        *(f"july-{i}.jpg" for i in (2, 1, 0)),
        "old.jpg",
        "unknown.jpg",
    ]
    assert _names(client, offset=2, limit=3) == everything[2:5]
    assert _names(client, offset=7) == []
    assert client.get(f"{API}/timeline/photos", params={"limit": 5}).json()["cursor"] == "5"


def test_the_list_follows_the_library(client: TestClient, library: Library) -> None:
    (latest, *_) = client.get(f"{API}/timeline/photos").json()["photos"]
    remove(library, [latest["id"]])
    assert client.get(f"{API}/timeline").json()["total"] == 6
    assert _names(client, limit=1) == ["may-0.jpg"]
