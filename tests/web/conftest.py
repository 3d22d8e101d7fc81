"""Servers over the library of the album, and over copies of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute
from fastapi.testclient import TestClient
from pydantic import TypeAdapter
from starlette.routing import Match

from setnet.web import WebSettings, create_app
from tests.support.live_server import Running, server_on

API = "/api/v1"


@pytest.fixture(scope="session")
def portrait(portrait_file: Callable[[str], Path]) -> Callable[[str], bytes]:
    """Return the function that gives the bytes of a person's portrait."""
    return lambda person: portrait_file(person).read_bytes()


class CheckedClient(TestClient):
    """A client that also compares every answer with what the OpenAPI document says of it."""

    def request(self, *args: Any, **kwargs: Any) -> httpx.Response:
        response: httpx.Response = super().request(*args, **kwargs)
        if response.is_success and response.headers.get("content-type") == "application/json":
            path = response.request.url.raw_path.partition(b"?")[0].decode()  # a name may have a slash
            scope = {"type": "http", "method": response.request.method, "path": path}
            routes = [route for route in self.app.routes if isinstance(route, APIRoute)]  # type: ignore[attr-defined]
            found = next((route for route in routes if route.matches(scope)[0] is Match.FULL), None)
            if found is not None and found.include_in_schema:
                TypeAdapter(found.response_model).validate_python(response.json(), extra="forbid")
            else:
                assert path in (f"{API}/openapi.json", "/healthz"), f"no described route answers {path}"
        return response


@contextmanager
def client_of(library: Path, settings: WebSettings | None = None) -> Iterator[TestClient]:
    app = create_app(library, settings)
    with CheckedClient(app, base_url="http://localhost", raise_server_exceptions=False) as client:
        yield client


@pytest.fixture(scope="session")
def shared(made: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server over a copy of the library; tests leave its photos and folders as they are."""
    library = tmp_path_factory.mktemp("shared") / "library"
    shutil.copytree(made.library, library)
    with client_of(library) as client:
        yield client


@pytest.fixture
def own(made: Any, tmp_path: Path) -> Iterator[TestClient]:
    """A server over a copy of the library that a test may change; its photos are the shared ones."""
    shutil.copytree(made.library, tmp_path / "library")
    with client_of(tmp_path / "library") as client:
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


@pytest.fixture(scope="session")
def running(made: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A real server over a copy of the library, shared by the tests of one process."""
    place = tmp_path_factory.mktemp("running")
    shutil.copytree(made.library, place / "library")
    with server_on(place / "library") as server:
        yield server


@pytest.fixture(scope="session")
def start_server() -> Any:
    """Return the function that runs a real server."""
    return server_on


@pytest.fixture(scope="session")
def open_client() -> Callable[..., object]:
    """Return the function that opens a server inside the test's process."""
    return client_of
