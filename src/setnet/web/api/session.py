"""`/session`: exchange the token for a cookie that scripts cannot read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Request, Response

from setnet.web.api.bodies.json_body import json_body, json_schema
from setnet.web.api.bodies.requests import SessionQuery
from setnet.web.api.dependencies import State
from setnet.web.server.guard import COOKIE, address_of, token_fits
from setnet.web.server.problems import Problem

routes = APIRouter(tags=["session"])


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
        state.wrong_tokens.add(address_of(request.scope), session.token)
        raise Problem(401, "this is not the token that 'setnet serve' printed")
    response.set_cookie(
        COOKIE,
        wanted,
        max_age=30 * 24 * 3600,
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
