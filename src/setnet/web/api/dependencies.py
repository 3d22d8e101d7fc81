"""Dependencies of the routes: the server's state, and the kind of a body."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from setnet.web.state.server_state import ServerState


# Plain functions would cost each request two changes of thread: dependencies here are `async`.
async def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


State = Annotated[ServerState, Depends(_state)]


def content_type(request: Request) -> str:
    """Return the media type of the body without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
