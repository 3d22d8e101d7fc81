"""Access control: host names, tokens, requests of other sites, sizes of bodies, headers of answers.

`/session` exchanges the token for a cookie that scripts cannot read.
"""

from __future__ import annotations

import asyncio
import ipaddress
import math
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from hashlib import blake2b
from urllib.parse import SplitResult, urlsplit

from fastapi import Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setnet.web.problems import Problem, problem_response, too_busy, too_large
from setnet.web.settings import WebSettings, is_loopback

COOKIE = "setnet-session"
SESSION_SECONDS = 30 * 24 * 3600
_BLOCKED_SECONDS = 60.0
_MOST_ADDRESSES = _MOST_SESSIONS = 10_000
_HELD_FREE = 1 << 16  # small bodies are not worth counting
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_SEARCHES = frozenset(  # change nothing
    {"/api/v1/search", "/api/v1/faces", "/api/v1/faces/groups", "/collection/search"}
)
_WITH_IMAGES = frozenset(f"/api/v1/{name}" for name in ("faces", "search", "people", "photos"))
# The page itself holds no secret; what it shows comes from the API, which needs the token.
_SESSION = "/api/v1/session"
_OPEN = frozenset({"/", "/docs", "/healthz", "/api/v1/healthz", _SESSION, "/favicon.ico"})

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "media-src 'self'; "
        "connect-src 'self'; font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "X-Frame-Options": "DENY",
}


def access_by(token: str, settings: WebSettings) -> Access | None:
    """Return what whoever shows a token may do; each is compared in constant time."""
    for known, access in ((settings.token, Access.ALL), (settings.read_token, Access.READ)):
        if known and secrets.compare_digest(token.encode("utf-8", "replace"), known.encode()):
            return access
    return None


class Access(Enum):
    """What a token allows."""

    ALL = "all"
    READ = "read"


class Sessions:
    """The sessions of those who signed in: random numbers that tell nothing of the token.

    They live as long as the server: whoever signs out, and each restart, ends a session wherever it is used.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun: dict[bytes, tuple[float, Access]] = {}  # by digest, with the end, in the order of time

    def begin(self, access: Access = Access.ALL) -> str:
        """Return a new session; the oldest ends when there are too many."""
        while self._begun and (len(self._begun) >= _MOST_SESSIONS or self._oldest_end() <= self._clock()):
            del self._begun[next(iter(self._begun))]
        session = secrets.token_urlsafe(24)
        self._begun[_digest(session)] = self._clock() + SESSION_SECONDS, access
        return session

    def access(self, session: str) -> Access | None:
        """Return what a session allows; None if it was not begun or has ended."""
        end, access = self._begun.get(_digest(session), (0.0, None))
        return access if end > self._clock() else None

    def end(self, session: str) -> None:
        """End a session, if there is such a one."""
        self._begun.pop(_digest(session), None)

    def _oldest_end(self) -> float:
        return next(iter(self._begun.values()))[0]


def _digest(secret: str) -> bytes:
    return blake2b(secret.encode("utf-8", "replace"), digest_size=16).digest()


def session_in(headers: Headers) -> str:
    """Return the session in a cookie, or nothing.

    Cookies of other servers on this machine come along, in any shape: read as browsers do.
    """
    return cookie_parser(headers.get("cookie", "")).get(COOKIE, "")


class Guard:
    """The outermost middleware: refuses unauthorised requests before a byte of their body is read."""

    def __init__(
        self, app: ASGIApp, settings: WebSettings, wrong_tokens: TokenRateLimit, sessions: Sessions
    ) -> None:
        self._app = app
        self._settings = settings
        self._wrong_tokens = wrong_tokens
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/api/"):
                    headers.setdefault("Cache-Control", "no-store")
            await send(message)

        if self._settings.behind_proxy:
            _follow_proxy(scope)
        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, with_headers)
        else:
            await self._app(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        wanted = self._settings.token
        if wanted is None and not is_loopback(_split_url(f"//{headers.get('host', '')}").hostname or ""):
            # A page of another site can make its name point here (DNS rebinding): only our names count.
            return problem_response(421, "this server answers to localhost and loopback addresses only")
        if (foreign := self._foreign(scope, headers)) is not None:
            return problem_response(
                403, f"requests from {foreign} are refused: use this server's own page, or --cors for another"
            )
        path = scope["path"]
        if wanted is None or (path in _OPEN and path != _SESSION) or path.startswith("/static/"):
            return None
        if scope["method"] == "OPTIONS" and self._settings.cors:
            return None  # a preflight carries no token; the CORS layer answers it
        address = client_address(scope)
        if seconds := self._wrong_tokens.seconds_blocked(address):
            # The right token too: an answer to it would tell that the guess was right.
            return problem_response(
                429,
                f"too many wrong tokens from {address}: try again in {seconds} s",
                {"Retry-After": str(seconds)},
            )
        if path == _SESSION:
            return None  # shows its token in the body
        session = session_in(headers)
        given = [token for token in _tokens(headers) if token]
        allowed = {self._sessions.access(session), *(access_by(token, self._settings) for token in given)}
        if Access.ALL in allowed:
            return None
        if Access.READ in allowed:
            scope["setnet.access"] = Access.READ
            if scope["method"] in _SAFE or path in _SEARCHES:
                return None
            text = "this token allows to look and search, and changes nothing"
            return problem_response(403, text, code="read_only")
        for token in [*given, *([session] if session else [])]:
            self._wrong_tokens.add(address, token)
        return problem_response(
            401,
            "a token is needed: send the header 'Authorization: Bearer TOKEN' (`setnet serve` printed it)",
            {"WWW-Authenticate": 'Bearer realm="setnet"'},
        )

    def _foreign(self, scope: Scope, headers: Headers) -> str | None:
        """Return the other site that a browser sent a request for, if there is one."""
        origin = headers.get("origin")
        if origin in self._settings.cors:
            return None
        # What anybody may see of the page; a link from elsewhere may open it, and nothing else.
        is_page = scope["method"] in _SAFE and not scope["path"].startswith("/api/")
        if origin is not None and _split_url(origin).netloc != headers.get("host"):
            return None if is_page else f"the page {origin[:100]!r}"
        site = headers.get("sec-fetch-site", "same-origin")
        opens_page = is_page and headers.get("sec-fetch-mode") == "navigate"
        if site in ("cross-site", "same-site") and not opens_page:
            return "another site"
        return None


def client_address(scope: Scope) -> str:
    """Return the network address of the client of a request."""
    return scope["client"][0] if scope.get("client") else "an unknown address"


def _follow_proxy(scope: Scope) -> None:
    """Put in the scheme and address that the proxy saw; of several, the last is the nearest proxy's."""
    headers = Headers(scope=scope)
    scheme = headers.get("x-forwarded-proto", "").rpartition(",")[2].strip().lower()
    if scheme in ("http", "https"):
        scope["scheme"] = scheme
    client = headers.get("x-forwarded-for", "").rpartition(",")[2].strip()
    if client:
        scope["client"] = (client[:100], 0)


def _split_url(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def _tokens(headers: Headers) -> Iterable[str]:
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        yield given.strip()
    if "x-setnet-token" in headers:
        yield headers["x-setnet-token"]


@dataclass(slots=True)
class _Guesses:
    until: float
    digests: set[bytes] = field(default_factory=set)


class TokenRateLimit:
    """Counts different wrong tokens by address, and blocks an address for a minute after `most` of them.

    Whoever shows many different ones is guessing. The same one again is not another guess: a browser shows an
    outdated cookie with every picture.
    """

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
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
        guesses.digests.add(_digest(token))
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


class BodyLimits:
    """Refuses bodies by their Content-Length, and cuts off those that turn out larger or too slow."""

    def __init__(self, app: ASGIApp, settings: WebSettings) -> None:
        self._app = app
        self._settings = settings
        self._held = 0

    def limit_of(self, path: str) -> int:
        """Return the most bytes a request to `path` may bring."""
        if path == "/api/v1/session":  # open to those without a token
            return self._settings.max_session_body
        if path in _WITH_IMAGES:
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
