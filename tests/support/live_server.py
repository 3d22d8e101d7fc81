"""A real `setnet serve` in a process of its own, and the server alone in a thread of this one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

if TYPE_CHECKING:
    from setnet.web import WebSettings


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
def server_of(*words: str, **environment: str) -> Iterator[Running]:
    """Run a command that serves a page, on a free port, until the block ends."""
    process = subprocess.Popen(
        [sys.executable, "-m", "setnet", *words],
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
        if "--collection" not in words:  # a searcher listens before it says so, and has no page
            _wait_until_up(url)
        yield Running(url, process, banner)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        process.stderr.close()


def server_on(library: Path, *options: str, **environment: str) -> AbstractContextManager[Running]:
    """Run `setnet serve` on a free port until the block ends."""
    return server_of("serve", "--library", str(library), "--port", "0", *options, **environment)


def searcher_on(collection: Path, part: str, **environment: str) -> AbstractContextManager[Running]:
    """Run `setnet serve --collection` on a free port until the block ends."""
    words = ("serve", "--collection", str(collection), "--part", part, "--port", "0")
    return server_of(*words, **environment)


@contextmanager
def server_here(library: Path, settings: WebSettings | None = None) -> Iterator[str]:
    """Serve a library from a thread until the block ends, for tests of the page: no process is started."""
    import uvicorn

    from setnet.web import create_app

    with socket.create_server(("127.0.0.1", 0)) as listening:
        app = create_app(library, settings)
        server = uvicorn.Server(uvicorn.Config(app, ws="none", log_level="warning"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        try:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            _wait_until_up(url)
            yield url
        finally:
            app.state.server.stopping.set()  # ends server-sent events
            server.should_exit = True
            thread.join()


def _wait_until_up(url: str) -> None:
    for _ in range(200):
        try:
            if httpx.get(f"{url}/").status_code == 200:
                return
        except httpx.TransportError:
            time.sleep(0.05)
    raise AssertionError("the server does not answer")
