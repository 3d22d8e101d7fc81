"""Index runs that find photos gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


def test_many_photos_that_are_gone_are_removed_only_when_that_is_agreed(
    own: TestClient, made: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "more"
    folder.mkdir()
    for name in ("one.jpg", "two.jpg", "stays.jpg"):
        (folder / name).write_bytes((made.photos / "2016/alone.jpg").read_bytes())
    _run(own, folders=[str(folder)])
    for name in ("one.jpg", "two.jpg"):  # an empty folder would be taken for a disk that is not there
        (folder / name).unlink()

    refused = _run(own, prune=True)
    assert refused["prune_refused"]
    assert (refused["removed"], refused["vanished_count"]) == (0, 2)
    assert own.get(f"{API}/status").json()["photos"] == 8
    assert not _run(own, prune_many=True)["prune_refused"]  # agrees to nothing that was not asked for
    assert own.get(f"{API}/status").json()["photos"] == 8

    agreed = _run(own, prune=True, prune_many=True)
    assert not agreed["prune_refused"]
    assert (agreed["removed"], agreed["vanished_count"]) == (2, 0)
    assert own.get(f"{API}/status").json()["photos"] == 6


def _run(client: TestClient, **asked: Any) -> dict[str, Any]:
    """Return the report of an index run."""
    assert client.post(f"{API}/index", json=asked).status_code == 202
    client.get(f"{API}/index/events?once=true")
    report: dict[str, Any] = client.get(f"{API}/index").json()["report"]
    return report
