"""A library that disappears under a running server."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from setnet.faces.registry import write_model_entry
from setnet.library import Library
from tests.support.small_models import write_small_model

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/status", None),
        ("GET", "/photos", None),
        ("GET", "/photos/1/thumbnail", None),
        ("POST", "/search", {"people": [{"saved": "Ann"}]}),
        ("POST", "/people", {"name": "Ann", "descriptors": [[1.0]]}),
        ("POST", "/index", {"folders": []}),
        ("POST", "/forget/everything", {"confirm": "forget everything"}),
    ],
)
def test_a_removed_library_is_reported_and_not_created_again(
    own: TestClient, tmp_path: Path, method: str, path: str, body: Any
) -> None:
    shutil.rmtree(tmp_path / "library")
    answer = own.request(method, f"{API}{path}", json=body)
    assert answer.status_code == 503
    assert "is gone" in answer.json()["detail"]
    assert int(answer.headers["retry-after"]) > 0
    assert not (tmp_path / "library").exists()
    assert own.get("/healthz").status_code == 200


def test_a_library_that_was_moved_and_put_back_is_served_again(own: TestClient, tmp_path: Path) -> None:
    for back in (shutil.move, shutil.copytree):
        shutil.move(tmp_path / "library", tmp_path / "elsewhere")
        assert own.get(f"{API}/photos").status_code == 503
        back(tmp_path / "elsewhere", tmp_path / "library")
        assert len(own.get(f"{API}/photos").json()["photos"]) == 5


def test_a_library_described_by_another_model_needs_a_new_server(own: TestClient, tmp_path: Path) -> None:
    assert own.get(f"{API}/photos").status_code == 200
    model = write_small_model(tmp_path / "small.onnx")
    entry = write_model_entry(model, name="small", dim=24, calibration={"w": 20.0, "b": -8.0})
    Library.reembed(tmp_path / "library", str(entry), workers=0)
    answer = own.get(f"{API}/photos")
    assert answer.status_code == 503
    assert "start the server again" in answer.json()["detail"]


def test_a_server_may_start_without_a_library(tmp_path: Path, open_client: Callable[..., Any]) -> None:
    with open_client(tmp_path / "library") as client:
        assert client.get(f"{API}/status").json()["photos"] == 0
