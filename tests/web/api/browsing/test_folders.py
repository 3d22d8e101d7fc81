"""Folders to choose from: below the home folder only, for this machine only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from setnet.web import WebSettings
from setnet.web.api.browsing import folders as route

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    for folder in ("Pictures/2019", "Pictures/åland", ".hidden", "Empty"):
        (home / folder).mkdir(parents=True)
    for name in ("a.jpg", "b.HEIC", "notes.txt", ".c.jpg"):
        (home / "Pictures" / name).touch()
    (home / "out").symlink_to(tmp_path)
    (home / "in").symlink_to(home / "Pictures")
    monkeypatch.setattr("setnet.web.state.folder_browser.default_roots", lambda: [home])
    monkeypatch.setattr(route, "address_of", lambda scope: "127.0.0.1")  # a test client has no address
    return home


@pytest.fixture
def client(home: Path, tmp_path: Path, open_client: Callable[..., Any]) -> Iterator[TestClient]:
    with open_client(tmp_path / "library") as client:
        yield client


def _listed(client: TestClient, path: Path | str | None) -> dict[str, Any]:
    answer = client.get(f"{API}/folders", params=None if path is None else {"path": str(path)})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_folders_are_walked_from_the_home_folder_and_photos_counted(client: TestClient, home: Path) -> None:
    assert [each["path"] for each in _listed(client, None)["folders"]] == [str(home)]
    top = _listed(client, home)
    assert [each["name"] for each in top["folders"]] == ["Empty", "in", "Pictures"]
    assert (top["parent"], top["photos"]) == (None, 0)
    pictures = _listed(client, home / "Pictures")
    assert [each["name"] for each in pictures["folders"]] == ["2019", "åland"]
    assert (pictures["parent"], pictures["photos"], pictures["has_more"]) == (str(home), 2, False)
    assert _listed(client, home / "in")["path"] == str(home / "Pictures")


@pytest.mark.parametrize(
    "path",
    ["/", "/etc", "..", ".", "", "{home}/..", "{home}/out", "{home}/Pictures/../..", "{home}x", "~", "a\0b"],
)
def test_nothing_outside_is_listed(client: TestClient, home: Path, path: str) -> None:
    answer = client.get(f"{API}/folders", params={"path": path.replace("{home}", str(home))})
    assert answer.status_code == 403
    assert "type the path" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["nowhere", "Pictures/a.jpg"])
def test_what_is_no_folder_is_not_found(client: TestClient, home: Path, path: str) -> None:
    assert client.get(f"{API}/folders", params={"path": str(home / path)}).status_code == 404


@pytest.mark.parametrize(("address", "behind_proxy"), [("192.168.1.7", False), ("127.0.0.1", True)])
def test_other_machines_see_no_folders(
    home: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_client: Callable[..., Any],
    address: str,
    behind_proxy: bool,
) -> None:
    monkeypatch.setattr(route, "address_of", lambda scope: address)
    settings = WebSettings(token="a-long-enough-token", behind_proxy=behind_proxy)
    with open_client(tmp_path / "library", settings) as client:
        answer = client.get(f"{API}/folders", headers={"Authorization": "Bearer a-long-enough-token"})
        assert answer.status_code == 403
