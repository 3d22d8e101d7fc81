"""What the server says of itself: status and metrics, which cost the same for ten photos and ten million."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from setnet.library import Library
from setnet.web.metrics import Metrics
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


@pytest.mark.parametrize("path", ["/api/v1/status", "/metrics"])
def test_status_and_metrics_read_no_large_table(
    path: str, tmp_path: Path, open_client: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with Library.create(tmp_path / "library") as library:
        store(library, {f"{i}.jpg": [1, 2] for i in range(12)})
    traced = Traced(monkeypatch)
    with open_client(tmp_path / "library") as client:
        client.get(path)  # connections are opened
        traced.seen.clear()
        answer = client.get(path)
        assert ('"photos":12' in answer.text) or ("setnet_library_photos 12.0" in answer.text)
        assert traced.scans() == []
        db = traced.seen[0][0]
        traced.seen = [(db, "SELECT count(*) FROM faces")]  # such a one would be noticed
        assert len(traced.scans()) == 1


def test_the_numbers_are_those_of_this_moment(tmp_path: Path, open_client: Callable[..., Any]) -> None:
    def numbers(client: Any) -> tuple[int, int, int]:
        status = client.get("/api/v1/status").json()
        metrics = client.get("/metrics").text
        assert f"setnet_library_faces {status['faces']}.0" in metrics
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


def test_requests_are_counted_by_route_and_gauges_show_the_last_value() -> None:
    metrics = Metrics()
    for seconds in (0.02, 3.0):
        metrics.requests.labels("/search", "POST", 200).inc()
        metrics.durations.labels("/search").observe(seconds)
    metrics.text({"library_photos": 4})
    text = metrics.text({"library_photos": 5}).decode()
    assert 'setnet_http_requests_total{method="POST",route="/search",status="200"} 2.0' in text
    assert 'setnet_http_request_duration_seconds_bucket{le="0.025",route="/search"} 1.0' in text
    assert 'setnet_http_request_duration_seconds_bucket{le="+Inf",route="/search"} 2.0' in text
    assert "\nsetnet_library_photos 5.0\n" in text


def test_two_servers_of_one_process_count_apart() -> None:
    first, second = Metrics(), Metrics()
    first.searches.observe(0.1)
    assert "setnet_search_duration_seconds_count 1.0" in first.text({}).decode()
    assert "setnet_search_duration_seconds_count 0.0" in second.text({}).decode()


def test_status_metrics_and_description(shared: TestClient) -> None:
    status = shared.get(f"{API}/status").json()
    assert (status["photos"], status["failed"]) == (5, 1)
    assert status["modes"][0] == "exact"
    failure = shared.get(f"{API}/failures").json()["failures"][0]
    assert failure["photo"].endswith("broken.jpg")
    assert failure["reason"]
    metrics = shared.get("/metrics").text
    assert "setnet_library_photos 5" in metrics
    assert "setnet_http_requests_total" in metrics
    assert shared.get("/healthz").json() == {"status": "ok"}
    assert f"{API}/search" in shared.get(f"{API}/openapi.json").json()["paths"]
    assert "<main" in shared.get("/docs").text
