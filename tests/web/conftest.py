"""Servers over the library of the album, and over copies of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from setnet.web import WebSettings, create_app

API = "/api/v1"


@pytest.fixture(scope="session")
def portrait(portrait_file: Callable[[str], Path]) -> Callable[[str], bytes]:
    """Return the function that gives the bytes of a person's portrait."""
    return lambda person: portrait_file(person).read_bytes()


@contextmanager
def client_of(library: Path, sets: Path, settings: WebSettings | None = None) -> Iterator[TestClient]:
    app = create_app(library, sets, settings)
    with TestClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def shared(made: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server over the album; tests leave its photos and folders as they are."""
    with client_of(made.library, tmp_path_factory.mktemp("sets")) as client:
        yield client


@pytest.fixture(scope="session")
def filmed(_people: None, compose: Callable[..., None], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of a folder with a photo and a clip of two shots; not to be changed."""
    from clips import Scene, write_clip
    from setnet.library import Library

    place = tmp_path_factory.mktemp("filmed")
    scenes = (Scene(("P005",), 3.0), Scene(("P001", "P003"), 3.0, (140, 60, 40)))
    write_clip(place / "photos" / "party.webm", scenes)
    compose(place / "photos" / "alone.jpg", ("P003",))
    with Library.create(place / "library") as library:
        library.index([place / "photos"], workers=0)
    return place / "library"


@pytest.fixture
def own(made: Any, tmp_path: Path) -> Iterator[TestClient]:
    """A server over a copy of the library that a test may change; its photos are the shared ones."""
    shutil.copytree(made.library, tmp_path / "library")
    with client_of(tmp_path / "library", tmp_path / "sets") as client:
        yield client


@pytest.fixture(scope="session")
def faces(shared: TestClient, portrait: Callable[[str], bytes]) -> dict[str, str]:
    """Face ids of three portraits in the shared server."""
    found = {}
    for person in ("P001", "P003", "P005"):
        answer = shared.post(f"{API}/faces", content=portrait(person), headers={"Content-Type": "image/jpeg"})
        assert answer.status_code == 200, answer.text
        found[person] = answer.json()["faces"][0]["id"]
    return found


@dataclass
class Running:
    """A real server in a process of its own."""

    url: str
    process: subprocess.Popen[str]
    banner: str

    def stop(self, patience: float = 30) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(patience)


@contextmanager
def server_on(library: Path, sets: Path, *options: str, **environment: str) -> Iterator[Running]:
    """Run `setnet serve` on a free port until the block ends."""
    command = [
        sys.executable,
        "-m",
        "setnet",
        "serve",
        "--library",
        str(library),
        "--sets",
        str(sets),
        "--port",
        "0",
    ]
    process = subprocess.Popen(
        [*command, *options],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )
    assert process.stderr is not None
    try:
        banner = ""
        while "\n  stop " not in banner:
            line = process.stderr.readline()
            assert line, f"the server ended: {banner}"
            banner += line
        url = next(word for word in banner.split() if word.startswith("http")).split("#")[0].rstrip("/")
        _wait_until_up(url)
        yield Running(url, process, banner)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()


def _wait_until_up(url: str) -> None:
    for _ in range(200):
        try:
            if httpx.get(f"{url}/healthz").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the server does not answer")


@pytest.fixture(scope="session")
def running(made: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A real server over a copy of the library, shared by the tests of one process."""
    place = tmp_path_factory.mktemp("running")
    shutil.copytree(made.library, place / "library")
    with server_on(place / "library", place / "sets") as server:
        yield server


@pytest.fixture(scope="session")
def start_server() -> Callable[..., object]:
    """Return the function that runs a real server."""
    return server_on


@pytest.fixture(scope="session")
def open_client() -> Callable[..., object]:
    """Return the function that opens a server inside the test's process."""
    return client_of
