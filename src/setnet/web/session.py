"""`/session`: exchange the token for a cookie that scripts cannot read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import StringConstraints

from setnet.web.guard import COOKIE, SESSION_SECONDS, client_address, new_session, token_fits
from setnet.web.problems import Problem
from setnet.web.requests import State, Strict, json_body, json_schema

routes = APIRouter(tags=["session"])


class SessionQuery(Strict):
    """The token that `setnet serve` printed."""

    token: Annotated[str, StringConstraints(max_length=1000)]


@routes.post("/session", status_code=204, openapi_extra=json_schema(SessionQuery))
async def begin_session(
    session: Annotated[SessionQuery, json_body(SessionQuery)], request: Request, state: State
) -> Response:
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
