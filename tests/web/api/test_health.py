"""What the server says of itself costs the same for ten photos and for ten million."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from invented_photos import store
from setnet.library import Library

pytestmark = pytest.mark.xdist_group("web-api")
LARGE = "photos|faces|items|attributes|tags|row_sums|examples"


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
