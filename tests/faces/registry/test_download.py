"""Downloads from a server of the test's own: resumed, checked, and only on request."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from setnet.errors import ModelError
from setnet.faces import download_model, load_descriptor, model_entry, model_paths

CONTENT = np.random.default_rng(0).bytes(300_000)


class Server(ThreadingHTTPServer):
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
        if start >= len(CONTENT):
            self.send_error(416)
            return
        body = CONTENT[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: self.server.stop_after])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server(("127.0.0.1", 0), Handler)
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
    sha = hashlib.sha256(CONTENT).hexdigest()
    url = f"http://127.0.0.1:{server.server_port}/far.onnx"
    entry.write_text(
        f'[far]\nkind = "descriptor"\nurl = "{url}"\nsha256 = "{sha}"\ndim = 4\nlicence = "MIT"\n'
    )
    monkeypatch.setenv("SETNET_MODELS", str(entry))
    return own_cache / "models" / "far" / "far.onnx"


def test_nothing_is_fetched_unless_requested(server: Server, far: Path) -> None:
    with pytest.raises(ModelError, match="setnet models --download far"):
        load_descriptor("far")
    assert server.requests == []


def test_a_download_shows_the_licence_and_is_checked(server: Server, far: Path) -> None:
    messages: list[str] = []
    assert download_model("far", messages.append) == {"model": far}
    assert far.read_bytes() == CONTENT
    assert messages[0] == "far: licence MIT"
    assert model_paths(model_entry("far", "descriptor")) == {"model": far}
    download_model("far", messages.append)
    assert len(server.requests) == 1, "what is here is not fetched again"


def test_an_interrupted_download_is_resumed(server: Server, far: Path) -> None:
    server.stop_after = 100_000
    with pytest.raises(ModelError, match="try again to resume from 100000 bytes"):
        download_model("far", lambda _: None)
    assert not far.exists()
    server.stop_after = None
    download_model("far", lambda _: None)
    assert server.requests == [None, "bytes=100000-"]
    assert far.read_bytes() == CONTENT


def test_a_server_without_ranges_starts_again(server: Server, far: Path) -> None:
    server.stop_after, server.understands_ranges = 100_000, False
    with pytest.raises(ModelError):
        download_model("far", lambda _: None)
    server.stop_after = None
    download_model("far", lambda _: None)
    assert far.read_bytes() == CONTENT


def test_a_complete_part_is_kept_without_a_second_download(far: Path) -> None:
    far.parent.mkdir(parents=True)
    far.with_name("far.onnx.part").write_bytes(CONTENT)
    download_model("far", lambda _: None)
    assert far.read_bytes() == CONTENT


def test_another_file_is_deleted(far: Path) -> None:
    far.parent.mkdir(parents=True)
    part = far.with_name("far.onnx.part")
    part.write_bytes(b"x" * 1000)
    with pytest.raises(ModelError, match=r"is not the file it should be.*it was deleted"):
        download_model("far", lambda _: None)
    assert not part.exists()
    assert not far.exists()
    download_model("far", lambda _: None)
    assert far.read_bytes() == CONTENT


def test_a_refusing_server_is_named(server: Server, far: Path) -> None:
    server.status = 503
    with pytest.raises(ModelError, match=r"far\.onnx could not be fetched \(.*503"):
        download_model("far", lambda _: None)
    with pytest.raises(ModelError, match="unknown model 'near'"):
        download_model("near", lambda _: None)


def test_local_addresses_are_not_downloads(
    tmp_path: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = tmp_path / "odd.toml"
    entry.write_text(
        f'[odd]\nkind = "descriptor"\nurl = "file:///etc/passwd"\nsha256 = "{"0" * 64}"\ndim = 4\n'
    )
    monkeypatch.setenv("SETNET_MODELS", str(entry))
    with pytest.raises(ModelError, match=r"is not an http\(s\) URL"):
        download_model("odd", lambda _: None)
