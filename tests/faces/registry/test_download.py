"""Downloads from a server of the test's own: resumed, checked, and only on request."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from setnet.errors import InvalidInputError, ModelError
from setnet.faces import add_model, load_descriptor, model_entry, model_paths, models, remove_model
from setnet.faces.registry import models_folder
from tests.support.small_models import write_small_model


class Server(ThreadingHTTPServer):
    content: bytes
    requests: list[str | None]
    stop_after: int | None
    understands_ranges: bool
    status: int


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.requests.append(wanted)
        if self.server.status != 200:
            self.send_error(self.server.status)
            return
        start = (
            int(wanted.removeprefix("bytes=").rstrip("-")) if wanted and self.server.understands_ranges else 0
        )
        if start >= len(self.server.content):
            self.send_error(416)
            return
        body = self.server.content[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.stop_after])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
    server.content = write_small_model(tmp_path / "served.onnx").read_bytes()
    server.requests, server.stop_after, server.understands_ranges, server.status = [], None, True, 200
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def far(server: Server, own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Register the model `far`; return where its file will be."""
    entry = tmp_path / "far.toml"
    sha = hashlib.sha256(server.content).hexdigest()
    url = f"http://127.0.0.1:{server.server_port}/far.onnx"
    entry.write_text(
        f'[far]\nkind = "descriptor"\nurl = "{url}"\nsha256 = "{sha}"\ndim = 24\nlicence = "MIT"\n'
    )
    monkeypatch.setenv("SETNET_MODELS", str(entry))
    return models_folder() / "far.onnx"


def test_nothing_is_fetched_unless_requested(server: Server, far: Path) -> None:
    with pytest.raises(ModelError, match="setnet models add far"):
        load_descriptor("far")
    assert server.requests == []


def fetch(name: str = "far") -> None:
    add_model(name, accepted=True, tell=lambda _: None)


def test_a_model_with_an_address_is_added_checked_and_removed(server: Server, far: Path) -> None:
    with pytest.raises(ModelError, match="its licence, MIT, was not agreed to"):
        add_model("far", accepted=False)
    assert [m.can_be_added for m in models() if m.name == "far"] == [True]
    fetch()
    assert far.read_bytes() == server.content
    assert model_paths(model_entry("far", "descriptor")) == {"model": far}
    assert load_descriptor("far").dim == 24
    fetch()
    assert len(server.requests) == 1, "what is here is not fetched again"
    assert remove_model("far") == [far]


def test_an_interrupted_download_is_resumed(server: Server, far: Path) -> None:
    server.stop_after = 1000
    with pytest.raises(ModelError, match="try again to resume from 1000 bytes"):
        fetch()
    assert not far.exists()
    server.stop_after = None
    fetch()
    assert server.requests == [None, "bytes=1000-"]
    assert far.read_bytes() == server.content


def test_a_server_without_ranges_starts_again(server: Server, far: Path) -> None:
    server.stop_after, server.understands_ranges = 1000, False
    with pytest.raises(ModelError):
        fetch()
    server.stop_after = None
    fetch()
    assert far.read_bytes() == server.content


def test_a_complete_part_is_kept_without_a_second_download(server: Server, far: Path) -> None:
    far.parent.mkdir(parents=True, exist_ok=True)
    far.with_name("far.onnx.part").write_bytes(server.content)
    fetch()
    assert far.read_bytes() == server.content


def test_another_file_is_deleted(server: Server, far: Path) -> None:
    far.parent.mkdir(parents=True, exist_ok=True)
    part = far.with_name("far.onnx.part")
    part.write_bytes(b"x" * 1000)
    with pytest.raises(ModelError, match=r"is not the file it should be.*it was deleted"):
        fetch()
    assert not part.exists()
    assert not far.exists()
    fetch()
    assert far.read_bytes() == server.content


def test_a_refusing_server_is_named(server: Server, far: Path) -> None:
    server.status = 503
    with pytest.raises(ModelError, match=r"far\.onnx could not be fetched \(.*503"):
        fetch()
    with pytest.raises(InvalidInputError, match=r"no model 'near' to add: there are .*far"):
        fetch("near")


def test_local_addresses_are_not_downloads(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = tmp_path / "odd.toml"
    entry.write_text(
        f'[odd]\nkind = "descriptor"\nurl = "file:///etc/passwd"\nsha256 = "{"0" * 64}"\ndim = 4\n'
    )
    monkeypatch.setenv("SETNET_MODELS", str(entry))
    with pytest.raises(ModelError, match=r"is not an http\(s\) URL"):
        fetch("odd")
