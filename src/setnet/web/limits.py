"""What clients may take: bytes and seconds for bodies, threads for blocking calls, guesses at the token."""

from __future__ import annotations

import asyncio
import ipaddress
import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from time import monotonic
from typing import ParamSpec, TypeVar

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setnet.web.problems import Problem, problem_response, too_busy, too_large
from setnet.web.settings import WebSettings

_HELD_FREE = 1 << 16  # small bodies are not worth counting
P = ParamSpec("P")
T = TypeVar("T")
_BLOCKED_SECONDS = 60.0
_MOST_ADDRESSES = 10_000


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
            await problem_response(413, too_large(limit), {"Connection": "close"})(scope, receive, send)
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


class BoundedThreads:
    """Runs blocking calls beside the event loop; when too many wait, the next is refused with 503.

    The threads are never replaced, because the library keeps a database connection for each.
    """

    def __init__(self, what: str, threads: int, queue: int) -> None:
        self._what = what
        self._most = threads + queue
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=f"setnet-{what}")
        self.waiting = 0

    async def run(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the call returns."""
        if self.waiting >= self._most:
            raise too_busy(f"too much {self._what} at once")
        self.waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, partial(call, *args, **kwargs))
        finally:
            self.waiting -= 1

    def spare(self, call: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Have a call run that nobody waits for, unless others wait; what goes wrong in it is ignored."""
        if self.waiting <= 1:  # for calls inside one of these threads, which counts as waiting
            with suppress(RuntimeError):  # closed a moment ago
                self._threads.submit(call, *args, **kwargs)

    def close(self) -> None:
        """Finish what runs, drop what waits."""
        self._threads.shutdown(wait=True, cancel_futures=True)


@dataclass(slots=True)
class _Guesses:
    until: float
    digests: set[bytes] = field(default_factory=set)


class TokenRateLimit:
    """Counts different wrong tokens by address, and blocks an address for a minute after `most` of them.

    Whoever shows many different ones is guessing. The same one again is not another guess: a browser shows an
    outdated cookie with every picture.
    """

    def __init__(self, most: int, clock: Callable[[], float] = monotonic) -> None:
        self._most = most
        self._clock = clock
        self._by_address: dict[str, _Guesses] = {}

    def add(self, address: str, token: str) -> None:
        """Count a wrong token; the last one allowed begins the time for which the address is blocked."""
        now, place = self._clock(), network_of(address)
        guesses = self._by_address.get(place)
        if guesses is None or guesses.until <= now:
            self._by_address.pop(place, None)  # so that the order is that of time
            guesses = self._by_address[place] = _Guesses(now + _BLOCKED_SECONDS)
            if len(self._by_address) > _MOST_ADDRESSES:
                del self._by_address[next(iter(self._by_address))]
        guesses.digests.add(blake2b(token.encode("utf-8", "replace"), digest_size=16).digest())
        if len(guesses.digests) >= self._most:
            guesses.until = now + _BLOCKED_SECONDS

    def seconds_blocked(self, address: str) -> int:
        """Return for how many seconds more an address is blocked; 0 when it is not."""
        guesses = self._by_address.get(network_of(address))
        if guesses is None or len(guesses.digests) < self._most:
            return 0
        return max(0, math.ceil(guesses.until - self._clock()))


def network_of(address: str) -> str:
    """Return the address, or the /64 network of an IPv6 one: a single host owns all of that."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if parsed.version == 4 else str(ipaddress.ip_network((int(parsed), 64), strict=False))
