"""Access control: host names, tokens, requests of other sites, and the security headers of answers.

`/session` exchanges the token for a cookie that scripts cannot read.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Iterable
from typing import Annotated
from urllib.parse import SplitResult, urlsplit

from fastapi import APIRouter, Request, Response
from pydantic import StringConstraints
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setnet.web.limits import TokenRateLimit
from setnet.web.problems import Problem, problem_response
from setnet.web.requests import BodyRoute, State, Strict
from setnet.web.settings import WebSettings, is_loopback

COOKIE = "setnet-session"
SESSION_SECONDS = 30 * 24 * 3600
routes = APIRouter(tags=["session"], route_class=BodyRoute)
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
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


def token_fits(given: str | None, wanted: str) -> bool:
    """Compare in constant time."""
    return secrets.compare_digest((given or "").encode("utf-8", "replace"), wanted.encode())


def new_session(token: str) -> str:
    """Return a session for whoever knows the token: when it ends, a number, and a signature by the token.

    It does not tell the token, and holds after a restart with the same one.
    """
    facts = f"{int(time.time()) + SESSION_SECONDS}.{secrets.token_urlsafe(12)}"
    return f"{facts}.{_signature(facts, token)}"


def session_fits(session: str, token: str) -> bool:
    """Whether a session was made with this token and has not ended."""
    facts, _, signature = session.rpartition(".")
    if not token_fits(signature, _signature(facts, token)):
        return False
    return int(facts.partition(".")[0]) > time.time()


def _signature(facts: str, token: str) -> str:
    return hmac.digest(token.encode(), facts.encode("utf-8", "replace"), "sha256").hex()


class Guard:
    """The outermost middleware: refuses unauthorised requests before a byte of their body is read."""

    def __init__(self, app: ASGIApp, settings: WebSettings, wrong_tokens: TokenRateLimit) -> None:
        self._app = app
        self._settings = settings
        self._wrong_tokens = wrong_tokens

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
        # Cookies of other servers on this machine come along, in any shape: read as browsers do.
        session = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        given = [token for token in _tokens(headers) if token]
        if session_fits(session, wanted) or any(token_fits(token, wanted) for token in given):
            return None
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
        is_page = scope["method"] in _SAFE and not scope["path"].startswith(("/api/", "/metrics"))
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


class SessionQuery(Strict):
    """The token that `setnet serve` printed."""

    token: Annotated[str, StringConstraints(max_length=1000)]


@routes.post("/session", status_code=204)
async def begin_session(session: SessionQuery, request: Request, state: State) -> Response:
    """Exchange the token for a same-site cookie."""
    wanted = state.settings.token
    response = Response(status_code=204)
    if wanted is None:
        return response
    if not token_fits(session.token, wanted):
        state.wrong_tokens.add(client_address(request.scope), session.token)
        raise Problem(401, "this is not the token that 'setnet serve' printed")
    response.set_cookie(
        COOKIE,
        new_session(wanted),
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@routes.delete("/session", status_code=204)
async def end_session() -> Response:
    """Delete the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response
