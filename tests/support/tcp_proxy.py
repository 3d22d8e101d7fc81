"""A TCP proxy on loopback that delays, cuts and freezes connections."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class Proxy:
    """Forwards connections to a server; use as a context manager.

    Attributes
    ----------
    url
        Where the proxy listens.
    delay
        Seconds by which it delays each piece of an answer.
    connections
        How many connections were made so far.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._target = (parts.hostname or "", parts.port or 0)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.delay, self.connections = 0.0, 0
        self._cuts = 0
        self._open: list[socket.socket] = []
        self._frozen: set[socket.socket] = set()
        self._closing = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        _end(self._listening)
        self.cut()

    def freeze(self) -> None:
        """Forward nothing any more over the connections there are; new ones are not frozen."""
        self._frozen.update(self._open)

    def cut(self, later: int = 0) -> None:
        """Close the connections there are; or so many of the next ones, when their answers come."""
        self._cuts = later
        for one in [] if later else self._open:
            _end(one)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.connections += 1
                try:
                    server = socket.create_connection(self._target)
                except OSError:  # as if nothing listened here
                    _end(client)
                    continue
                self._open += [client, server]
                for pair in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._forward, args=pair, daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if is_answer and self.delay:
                    self._closing.wait(self.delay)
                if is_answer and self._cuts:
                    self._cuts -= 1
                    sink.sendall(data[: len(data) // 2])
                    break
                if source in self._frozen:
                    self._closing.wait()
                sink.sendall(data)
        _end(source)
        _end(sink)


def _end(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
