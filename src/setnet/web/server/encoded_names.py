"""Addresses with the names of people in them, which may hold slashes."""

from __future__ import annotations

from urllib.parse import quote

from starlette.types import ASGIApp, Receive, Scope, Send

_PEOPLE = "/api/v1/people/"


class EncodedNames:
    """Lets the routes of people match the address as it was sent, still percent-encoded.

    Decoded, `POST /people/A%2Fmerge` about the person "A/merge" looks like
    `POST /people/A/merge`, which merges others into "A".
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and scope["path"].startswith(_PEOPLE):
            sent = scope.get("raw_path") or quote(scope["path"]).encode()
            scope["path"] = sent.decode("latin-1")
        await self._app(scope, receive, send)
