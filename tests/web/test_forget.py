"""Forgetting everything: only by the right words, never the photos."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from setnet.library import Library

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


def vector(client: TestClient, number: int) -> list[float]:
    dim = client.get(f"{API}/status").json()["dim"]
    return [1.0 if i == number else 0.0 for i in range(dim)]


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
