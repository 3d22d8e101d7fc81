"""Dependencies of the routes: the server's state, and the check that a body is JSON."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from setnet.web.server.problems import Problem
from setnet.web.state.server_state import ServerState

__all__ = ["State", "content_type", "require_json"]


# Plain functions would cost each request two changes of thread: dependencies here are `async`.
async def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


State = Annotated[ServerState, Depends(_state)]


def content_type(request: Request) -> str:
    """Return the media type of the body without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def require_json(request: Request) -> None:
    """Refuse a body that does not say it is JSON: forms of other sites cannot say so."""
    kind = content_type(request)
    if kind != "application/json" and not kind.endswith("+json"):
        raise Problem(415, "send JSON with the header 'Content-Type: application/json'")
