"""Run the server until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import socket
import threading
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import h11
import uvicorn
from fastapi import FastAPI
from uvicorn.protocols.http.h11_impl import H11Protocol

from setnet.connect.searchers import Searcher
from setnet.engine.manifest import WHOLE, Share
from setnet.errors import StorageError
from setnet.web.app import create_app
from setnet.web.guard import network_of
from setnet.web.searcher import create_searcher
from setnet.web.settings import WebSettings, is_loopback

_HEADER_SECONDS = 20.0
_MOST_WAITING = 64  # connections of one address that have sent no whole request yet
_LOG = logging.getLogger("setnet.web")


class HeaderTimeoutProtocol(H11Protocol):
    """Closes a connection whose request line and headers do not arrive in time.

    Otherwise a few hundred clients that send a byte a minute would keep everyone else out. One address may
    have some such connections at once; the oldest makes room for the next.
    """

    _deadline: asyncio.TimerHandle | None = None
    _waiting: ClassVar[dict[str, list[HeaderTimeoutProtocol]]] = {}  # by address, oldest first

    def connection_made(self, transport: Any) -> None:
        """Start the clock with the connection."""
        super().connection_made(transport)
        self._watch(True)

    def data_received(self, data: bytes) -> None:
        """Stop the clock once a request has begun; start it again for a half-sent next one."""
        super().data_received(data)
        self._watch(self.conn.their_state is h11.IDLE)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clock."""
        self._watch(False)
        super().connection_lost(exc)

    def _watch(self, waits_for_headers: bool) -> None:
        if waits_for_headers and self._deadline is None:
            self._deadline = self.loop.call_later(_HEADER_SECONDS, self._too_slow)
            same = self._waiting.setdefault(self._address, [])
            same.append(self)
            if len(same) > _MOST_WAITING:
                same.pop(0).transport.close()
        elif not waits_for_headers and self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
            same = [other for other in self._waiting.pop(self._address, []) if other is not self]
            if same:
                self._waiting[self._address] = same

    @property
    def _address(self) -> str:
        return network_of(self.client[0]) if self.client else ""

    def _too_slow(self) -> None:
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self.transport.close()


def serve(
    library: str | Path | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8422,
    open_page: bool = False,
    token: str | None = None,
    cors: tuple[str, ...] = (),
    behind_proxy: bool = False,
    uploads: Path | None = None,
    say: Callable[[str], None] = _LOG.warning,
) -> None:
    """Serve a library's page and API; returns when the server was stopped (Ctrl-C, SIGTERM).

    On an address that others can reach, and behind a proxy, a token is required: `token`, else
    `SETNET_TOKEN`, else one is made and shown. `SETNET_READ_TOKEN` is one whose holder may look and search,
    and change nothing. `uploads` is where photos are kept
    that programs send. `say` shows the address, by default through `logging`.
    """
    settings = _settings(
        host=host, port=port, token=token, uploads=uploads, cors=cors, behind_proxy=behind_proxy
    )
    listening = bind_socket(settings)
    app = create_app(library, settings, warm_up=True)
    address = page_address(host, listening.getsockname()[1], settings.token)
    say(f"setnet serves {app.state.server.library.path}\n  page  {address}\n  stop  Ctrl-C")
    if behind_proxy or not is_loopback(host):
        say("  Others can reach this address. The token is part of it: give it to those you trust.")
    if open_page:
        open_when_up(address, say)
    run_app(app, listening, app.state.server.stopping)


def serve_collection(
    address: str | Path,
    part: Share = WHOLE,
    *,
    host: str = "127.0.0.1",
    port: int = 8422,
    token: str | None = None,
    behind_proxy: bool = False,
    say: Callable[[str], None] = _LOG.warning,
) -> None:
    """Answer searches in a part of a collection until stopped; the options are as in `serve`."""
    settings = _settings(host=host, port=port, token=token, behind_proxy=behind_proxy)
    listening = bind_socket(settings)
    searcher = Searcher(address, part)
    where = page_address(host, listening.getsockname()[1], None)
    say(f"setnet serves part {part[0]}/{part[1]} of {address}\n  searcher  {where}\n  stop  Ctrl-C")
    if settings.token and not (token or os.environ.get("SETNET_TOKEN")):
        say(f"  token  {settings.token}")
    try:
        run_app(create_searcher(searcher, settings), listening)
    finally:
        searcher.close()


def _settings(*, host: str, token: str | None, behind_proxy: bool, **others: Any) -> WebSettings:
    """Return settings with a token wherever others can reach the server."""
    token = token or os.environ.get("SETNET_TOKEN") or None
    read_token = os.environ.get("SETNET_READ_TOKEN") or None
    if token is None and (behind_proxy or not is_loopback(host) or read_token):
        token = secrets.token_urlsafe(24)
    return WebSettings(host=host, token=token, read_token=read_token, behind_proxy=behind_proxy, **others)


def run_app(app: FastAPI, listening: socket.socket, stopping: threading.Event | None = None) -> None:
    """Answer requests until the server is stopped, which sets `stopping` first."""
    config = uvicorn.Config(
        app,
        http=HeaderTimeoutProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=512,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=15,
        h11_max_incomplete_event_size=64 * 1024,
    )
    _Server(config, stopping or threading.Event()).run(sockets=[listening])


class _Server(uvicorn.Server):
    """Ends server-sent events on shutdown, which would otherwise wait for them."""

    def __init__(self, config: uvicorn.Config, stopping: threading.Event) -> None:
        super().__init__(config)
        self._stopping = stopping

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._stopping.set()
        super().handle_exit(sig, frame)


def bind_socket(settings: WebSettings) -> socket.socket:
    """Return a listening socket, first of all: a port in use is reported before the library is opened."""
    try:
        family, kind, proto, _, where = socket.getaddrinfo(
            settings.host.strip("[]"), settings.port, type=socket.SOCK_STREAM
        )[0]
        listening = socket.socket(family, kind, proto)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(where)
        listening.listen(128)  # from here on nobody is turned away, though the first may wait
    except OSError as error:
        raise StorageError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}; "
            "choose another with --port"
        ) from error
    return listening


def page_address(host: str, port: int, token: str | None) -> str:
    """Return the address of the page."""
    name = "localhost" if host in ("127.0.0.1", "0.0.0.0", "::", "::1") else host  # noqa: S104
    name = f"[{name}]" if ":" in name else name
    # After the #, the token stays in the browser: it reaches no log and no other site.
    return f"http://{name}:{port}/" + (f"#token={token}" if token else "")


def open_when_up(address: str, say: Callable[[str], None]) -> None:
    """Open the page in the browser, in a moment."""

    def open_page() -> None:
        time.sleep(1.0)
        try:
            webbrowser.open(address)
        except webbrowser.Error:
            say("no browser could be opened: visit the address above")

    threading.Thread(target=open_page, daemon=True).start()
