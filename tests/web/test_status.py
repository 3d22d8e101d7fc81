"""What the server says of itself: status, which costs the same for ten photos and ten million."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from setnet.library import Library
from tests.support.invented_photos import store

pytestmark = pytest.mark.xdist_group("web-api")
LARGE = "photos|faces|items|attributes|tags|row_sums|examples"
API = "/api/v1"


class Traced:
    """Statements of all connections made while it is in place, each with its connection."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.seen: list[tuple[sqlite3.Connection, str]] = []
        connect = sqlite3.connect

        def traced(*args: Any, **options: Any) -> sqlite3.Connection:
            db: sqlite3.Connection = connect(*args, **options)
            db.set_trace_callback(lambda text: self.seen.append((db, text)))
            return db

        patch.setattr(sqlite3, "connect", traced)

    def scans(self) -> list[str]:
        """Return the plans that read a whole large table."""
        selects = [(db, text) for db, text in self.seen if text.lstrip().upper().startswith("SELECT")]
        assert selects
        plans = [
            row[3] for db, text in selects for row in db.execute(f"EXPLAIN QUERY PLAN {text}").fetchall()
        ]
        return [plan for plan in plans if re.search(rf"SCAN ({LARGE})\b(?!.*photos_not_ready)", plan)]


def test_status_reads_no_large_table_again(
    tmp_path: Path, open_client: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Library.create(tmp_path / "library") as library:
        store(library, {f"{i}.jpg": [1, 2] for i in range(12)})
    traced = Traced(monkeypatch)
    with open_client(tmp_path / "library") as client:
        client.get(f"{API}/status")  # connections are opened, and photos counted
        traced.seen.clear()
        assert client.get(f"{API}/status").json()["photos"] == 12
        assert traced.scans() == []
        db = traced.seen[0][0]
        traced.seen = [(db, "SELECT count(*) FROM faces")]  # such a one would be noticed
        assert len(traced.scans()) == 1


def test_the_numbers_are_those_of_this_moment(tmp_path: Path, open_client: Callable[..., Any]) -> None:
    def numbers(client: Any) -> tuple[int, int, int]:
        status = client.get("/api/v1/status").json()
        return status["photos"], status["faces"], status["people"]

    with Library.create(tmp_path / "library") as library:
        with open_client(tmp_path / "library") as client:
            assert numbers(client) == (0, 0, 0)
            store(library, {"a.jpg": [1, 2], "b.jpg": [], "c.jpg": [3]})
            assert numbers(client) == (3, 3, 0)
            client.post("/api/v1/people", json={"name": "Ann", "descriptors": [[1.0] * 128]})
            store(library, {"a.jpg": [1]})
            assert numbers(client) == (3, 2, 1)
            client.post("/api/v1/forget/folder", json={"folder": "/invented"})
            assert numbers(client) == (0, 0, 1)
        with open_client(tmp_path / "library") as client:
            assert numbers(client) == (0, 0, 1)


def test_status_and_description(shared: TestClient) -> None:
    status = shared.get(f"{API}/status").json()
    assert (status["photos"], status["failed"]) == (5, 1)
    assert status["modes"][0] == "exact"
    failure = shared.get(f"{API}/failures").json()["failures"][0]
    assert failure["photo"].endswith("broken.jpg")
    assert failure["reason"]
    assert shared.get("/healthz").json() == {"status": "ok"}
    assert f"{API}/search" in shared.get(f"{API}/openapi.json").json()["paths"]
    assert "<main" in shared.get("/docs").text
