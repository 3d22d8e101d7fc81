"""Index runs: live reports, stopping, photos that are gone, and folders to choose from."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from setnet.library import IndexProgress
from setnet.web import WebSettings
from setnet.web import index as route
from setnet.web.state import IndexJob

pytestmark = pytest.mark.xdist_group("web-api")
API = "/api/v1"


def vector(client: TestClient, number: int) -> list[float]:
    dim = client.get(f"{API}/status").json()["dim"]
    return [1.0 if i == number else 0.0 for i in range(dim)]


def test_index_run_reports_live_and_finds_new_photos(own: TestClient, made: Any, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "new.jpg").write_bytes((made.photos / "2016/alone.jpg").read_bytes())
    started = own.post(f"{API}/index", json={"folders": [str(tmp_path / "more")]})
    assert started.status_code == 202
    events = own.get(f"{API}/index/events?once=true").text
    assert "event: index" in events
    assert '"state": "done"' in events
    assert own.get(f"{API}/index").json()["report"]["copied"] == 1
    assert own.get(f"{API}/status").json()["photos"] == 6
    assert own.post(f"{API}/index", json={"folders": [str(tmp_path / "absent")]}).status_code == 422
    assert own.post(f"{API}/forget/folder", json={"folder": str(tmp_path / "more")}).json() == {"photos": 1}


def test_a_run_that_says_it_is_done_is_done(
    own: TestClient, made: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []
    change = IndexJob._change

    def watched(job: IndexJob, **changes: Any) -> None:
        change(job, **changes)
        if changes.get("state") == "done":
            ended.append(not job.is_running)  # what a client sees that heard of it at once

    monkeypatch.setattr(IndexJob, "_change", watched)
    own.post(f"{API}/index", json={"folders": [str(made.photos)]})
    own.get(f"{API}/index/events?once=true")
    assert ended == [True]


def test_a_stopped_run_keeps_what_it_found_and_can_go_on(
    own: TestClient, made: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "many"
    folder.mkdir()
    data = (made.photos / "2019/three.jpg").read_bytes()
    for number in range(8):  # other content, so faces must be found
        (folder / f"{number}.jpg").write_bytes(data + bytes([number]))
    found = threading.Event()
    report = IndexJob._report

    def reported(job: IndexJob, progress: IndexProgress) -> None:
        report(job, progress)
        if progress.done:
            found.set()
            job._stop.wait()  # the run stays at its first photo until it is stopped

    monkeypatch.setattr(IndexJob, "_report", reported)
    own.post(f"{API}/index", json={"folders": [str(folder)]})
    assert own.post(f"{API}/index", json={}).status_code == 409
    assert own.post(f"{API}/forget/everything", json={"confirm": "forget everything"}).status_code == 409
    found.wait()
    search = {"people": [{"descriptors": [vector(own, 0)]}]}
    assert own.post(f"{API}/search", json=search).status_code == 200
    assert own.delete(f"{API}/index").json()["state"] == "stopping"
    own.get(f"{API}/index/events?once=true")
    state = own.get(f"{API}/index").json()
    assert state["state"] == "stopped"
    assert state["report"]["interrupted"]
    assert state["report"]["added"] == 1


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


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("somebody")
    home = place / "home"
    for folder in ("Pictures/2019", "Pictures/åland", ".hidden", "Empty"):
        (home / folder).mkdir(parents=True)
    for name in ("a.jpg", "b.HEIC", "notes.txt", ".c.jpg"):
        (home / "Pictures" / name).touch()
    (home / "out").symlink_to(place)
    (home / "in").symlink_to(home / "Pictures")
    return home


@pytest.fixture(scope="module")
def client(home: Path, open_client: Callable[..., Any]) -> Iterator[TestClient]:
    with pytest.MonkeyPatch.context() as patch, open_client(home.parent / "library") as client:
        patch.setenv("HOME", str(home))
        patch.setattr(route, "_DISKS", ())
        patch.setattr(route, "client_address", lambda scope: "127.0.0.1")  # a test client has no address
        yield client


def _listed(client: TestClient, path: Path | str | None) -> dict[str, Any]:
    answer = client.get(f"{API}/folders", params=None if path is None else {"path": str(path)})
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def test_folders_are_walked_from_the_home_folder_and_photos_counted(client: TestClient, home: Path) -> None:
    start = _listed(client, None)
    assert [each["path"] for each in start["folders"]] == [str(home)]
    assert start["pictures"] == str(home / "Pictures")
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
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    open_client: Callable[..., Any],
    address: str,
    behind_proxy: bool,
) -> None:
    monkeypatch.setattr(route, "client_address", lambda scope: address)
    settings = WebSettings(token="a-long-enough-token", behind_proxy=behind_proxy)
    with open_client(tmp_path / "library", settings) as client:
        answer = client.get(f"{API}/folders", headers={"Authorization": "Bearer a-long-enough-token"})
        assert answer.status_code == 403
