"""A real server in a process of its own: large and slow clients, tokens, stopping."""

from __future__ import annotations

import re
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

pytestmark = pytest.mark.xdist_group("web-process")
API = "/api/v1"


def test_200_megabytes_are_refused_before_they_are_sent(running: Any) -> None:
    sent = 0

    def body() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(200):
            sent += 1 << 20
            yield bytes(1 << 20)

    for headers in (
        {"Content-Type": "image/jpeg", "Content-Length": str(200 << 20)},
        {"Content-Type": "image/jpeg"},
    ):
        sent = 0
        try:
            answer = httpx.post(f"{running.url}{API}/faces", content=body(), headers=headers, timeout=60)
            assert answer.status_code == 413
            assert "MB" in answer.json()["detail"]
        except httpx.TransportError:
            pass  # the server closed while we were still sending: that is how the rest is refused
        assert sent < 120 << 20
    assert httpx.get(f"{running.url}/healthz").status_code == 200


def test_slow_clients_do_not_hold_up_others(running: Any) -> None:
    place = urlsplit(running.url)
    lines = [f"POST {API}/faces HTTP/1.1", f"Host: {place.netloc}", "Content-Type: image/jpeg"]
    half = "\r\n".join([*lines, "Content-Length: 1000", "", "abc"])
    slow = [socket.create_connection((place.hostname, place.port)) for _ in range(60)]
    try:
        for number, connection in enumerate(slow):
            connection.sendall((half if number % 2 else "GET / HT").encode())
        for _ in range(10):
            assert httpx.get(f"{running.url}{API}/status", timeout=30).status_code == 200
    finally:
        for connection in slow:
            connection.close()


def test_half_sent_headers_of_one_address_do_not_fill_the_server(running: Any) -> None:
    place = urlsplit(running.url)
    slow = []
    try:
        for _ in range(560):  # more than the server serves at once
            slow.append(socket.create_connection((place.hostname, place.port)))
            slow[-1].sendall(b"GET / HT")
        assert httpx.get(f"{running.url}{API}/status", timeout=10).status_code == 200
        slow[0].settimeout(10)
        with suppress(ConnectionResetError):  # closed before its first bytes were read
            assert slow[0].recv(1) == b"", "the oldest made room"
    finally:
        for connection in slow:
            connection.close()


def test_many_clients_at_once_get_right_answers(running: Any) -> None:
    dim = httpx.get(f"{running.url}{API}/status").json()["dim"]
    failures: list[str] = []

    def search(number: int) -> None:
        with httpx.Client(base_url=running.url, timeout=60) as client:
            for turn in range(10):
                vector = [0.0] * dim
                vector[(number * 10 + turn) % dim] = 1.0
                answer = client.post(
                    f"{API}/search", json={"people": [{"descriptors": [vector]}], "at_least": 0}
                )
                if answer.status_code != 200 or answer.json()["searched"] != 5:
                    failures.append(answer.text)

    threads = [threading.Thread(target=search, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_open_host_prints_a_token_and_stops_cleanly_under_an_open_stream(
    made: Any, tmp_path: Path, start_server: Callable[..., Any]
) -> None:
    shutil.copytree(made.library, tmp_path / "library")
    with start_server(tmp_path / "library", "--host", "0.0.0.0") as server:
        token = re.search(r"#token=(\S+)", server.banner)
        assert token is not None
        assert len(token[1]) >= 24
        assert httpx.get(f"{server.url}{API}/status").status_code == 401
        auth = {"Authorization": f"Bearer {token[1]}"}
        assert httpx.get(f"{server.url}{API}/status", headers=auth).json()["token"] is True
        with httpx.stream("GET", f"{server.url}{API}/index/events", headers=auth, timeout=30) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: index"
            assert server.stop() in (0, -15)
            list(lines)  # the stream came to its end, it was not cut


def test_an_index_run_that_is_stopped_with_the_server_leaves_a_sound_library(
    made: Any, tmp_path: Path, start_server: Callable[..., Any]
) -> None:
    from setnet.library import Library

    shutil.copytree(made.library, tmp_path / "library")
    data = (made.photos / "2019/three.jpg").read_bytes()
    (tmp_path / "many").mkdir()
    for number in range(40):
        (tmp_path / "many" / f"{number}.jpg").write_bytes(data + bytes([number]))
    tokens = {"SETNET_TOKEN": "a-token-from-the-environment", "SETNET_READ_TOKEN": "another-that-only-reads"}
    with start_server(tmp_path / "library", **tokens) as server:
        auth = {"Authorization": "Bearer a-token-from-the-environment"}
        reader = {"Authorization": "Bearer another-that-only-reads"}
        assert httpx.get(f"{server.url}{API}/status").status_code == 401
        assert httpx.get(f"{server.url}{API}/status", headers=reader).status_code == 200
        assert httpx.delete(f"{server.url}{API}/index", headers=reader).status_code == 403
        answer = httpx.post(
            f"{server.url}{API}/index", json={"folders": [str(tmp_path / "many")]}, headers=auth
        )
        assert answer.status_code == 202
        while httpx.get(f"{server.url}{API}/index", headers=auth).json()["progress"] is None:
            time.sleep(0.05)
        assert server.stop(60) in (0, -15)
    with Library.open(tmp_path / "library") as library:
        assert library.check() == []


def test_a_taken_port_is_reported_in_a_sentence(running: Any, tmp_path: Path) -> None:
    import subprocess
    import sys

    port = str(urlsplit(running.url).port)
    done = subprocess.run(
        [sys.executable, "-m", "setnet", "serve", "--library", str(tmp_path / "l"), "--port", port],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "--port" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "l").exists()
