"""Limits on request bodies: bytes of one, bytes of all together, and time."""

from __future__ import annotations

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setnet.web.server.problems import Problem, problem, too_busy, too_large
from setnet.web.server_settings import WebSettings

_HELD_FREE = 1 << 16  # small bodies are not worth counting


class BodyLimits:
    """Refuses bodies by their Content-Length, and cuts off those that turn out larger or too slow."""

    def __init__(self, app: ASGIApp, settings: WebSettings) -> None:
        self._app = app
        self._settings = settings
        self._held = 0

    def limit_of(self, path: str) -> int:
        """Return the most bytes a request to `path` may bring."""
        if path == "/api/v1/import/people":
            return self._settings.max_people_file
        if path == "/api/v1/session":  # open to those without a token
            return self._settings.max_session_body
        if path in ("/api/v1/faces", "/api/v1/search", "/api/v1/people"):  # may carry images
            return self._settings.max_upload
        return self._settings.max_body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a `receive` that watches its body."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self.limit_of(scope["path"])
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced) > limit:
            # The body is not read: closing the connection is what stops the client.
            await problem(413, too_large(limit), {"Connection": "close"})(scope, receive, send)
            return
        body = _WatchedBody(self, receive, limit, self._settings.body_seconds)
        try:
            await self._app(scope, body.receive, send)
        finally:
            self._held -= body.held

    def hold(self, size: int) -> None:
        """Count bytes held for a request; raise when all requests together hold too many."""
        if self._held + size > self._settings.max_in_flight:
            raise too_busy("the server holds as many uploads as it can", 5)
        self._held += size


class _WatchedBody:
    def __init__(self, limits: BodyLimits, receive: Receive, limit: int, seconds: float) -> None:
        self._limits, self._receive, self._limit = limits, receive, limit
        self._seconds = seconds
        self._deadline: float | None = None
        self._read = 0
        self._complete = False
        self.held = 0

    async def receive(self) -> Message:
        if self._complete:  # what follows is the client's going away, for which one waits as long as needed
            return await self._receive()
        if self._deadline is None:
            self._deadline = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(self._deadline):
                message = await self._receive()
        except TimeoutError:
            raise Problem(
                408, f"the body did not arrive within {self._seconds:.0f} s", {"Connection": "close"}
            ) from None
        if message["type"] != "http.request":
            return message
        size = len(message.get("body", b""))
        self._complete = not message.get("more_body", False)
        self._read += size
        if self._read > self._limit:
            raise Problem(413, too_large(self._limit), {"Connection": "close"})
        if self._read > _HELD_FREE:
            self._limits.hold(size)
            self.held += size
        return message
