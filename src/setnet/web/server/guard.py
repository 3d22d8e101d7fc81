"""Access control: host names, tokens, requests of other sites, and the security headers of answers."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from setnet.web.server.problems import problem
from setnet.web.settings import WebSettings, is_loopback

__all__ = ["COOKIE", "Guard", "token_fits"]

COOKIE = "setnet-token"
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# The page itself holds no secret; what it shows comes from the API, which needs the token.
_OPEN = frozenset({"/", "/docs", "/healthz", "/api/v1/healthz", "/api/v1/session", "/favicon.ico"})

_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
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


class Guard:
    """The outermost middleware: refuses unauthorised requests before a byte of their body is read."""

    def __init__(self, app: ASGIApp, settings: WebSettings) -> None:
        self._app = app
        self._settings = settings

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

        refusal = self._refusal(scope)
        if refusal is not None:
            await refusal(scope, receive, with_headers)
        else:
            await self._app(scope, receive, with_headers)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        wanted = self._settings.token
        if wanted is None and not is_loopback(_name_in(headers.get("host", ""))):
            # A page of another site can make its name point here (DNS rebinding): only our names count.
            return problem(421, "this server answers to localhost and loopback addresses only")
        if (foreign := self._foreign(scope, headers)) is not None:
            return problem(
                403, f"requests from {foreign} are refused: use this server's own page, or --cors for another"
            )
        path = scope["path"]
        if wanted is None or path in _OPEN or path.startswith("/static/"):
            return None
        if scope["method"] == "OPTIONS" and self._settings.cors:
            return None  # a preflight carries no token; the CORS layer answers it
        if any(token_fits(given, wanted) for given in _tokens(headers)):
            return None
        return problem(
            401,
            "a token is needed: send the header 'Authorization: Bearer TOKEN' (`setnet serve` printed it)",
            {"WWW-Authenticate": 'Bearer realm="setnet"'},
        )

    def _foreign(self, scope: Scope, headers: Headers) -> str | None:
        """Return the other site that a browser sent a request for, if there is one."""
        origin = headers.get("origin")
        if origin in self._settings.cors:
            return None
        if origin is not None and _place_in(origin) != headers.get("host"):
            return f"the page {origin[:100]!r}" if scope["method"] not in _SAFE else None
        site = headers.get("sec-fetch-site", "same-origin")
        # A link from elsewhere may open the page; nothing else may be embedded or sent from elsewhere.
        opens_page = headers.get("sec-fetch-mode") == "navigate" and scope["method"] in _SAFE
        if site in ("cross-site", "same-site") and not (opens_page and not scope["path"].startswith("/api/")):
            return "another site"
        return None


def _name_in(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _place_in(origin: str) -> str:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


def _tokens(headers: Headers) -> Iterable[str]:
    kind, _, given = headers.get("authorization", "").partition(" ")
    if kind.lower() == "bearer":
        yield given.strip()
    if "x-setnet-token" in headers:
        yield headers["x-setnet-token"]
    # Cookies of other servers on this machine come along, in any shape: read as browsers do.
    cookies = cookie_parser(headers.get("cookie", ""))
    if COOKIE in cookies:
        yield cookies[COOKIE]
