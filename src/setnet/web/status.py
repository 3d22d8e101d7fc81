"""`/status`, `/session`, `/healthz`: the server itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import Request, Response
from pydantic import StringConstraints

from setnet import __version__
from setnet.client import Answer, Status
from setnet.library import Library
from setnet.library.paths import display_path
from setnet.web.guard import COOKIE, SESSION_SECONDS, Access, access_by, client_address, session_in
from setnet.web.problems import Problem
from setnet.web.requests import State, Strict, api_router, reads, reply
from setnet.web.search import MOST_PEOPLE

routes = api_router()


class Health(Answer):
    """Whether requests are accepted."""

    status: Literal["ok", "stopping"]


@routes.get("/status", tags=["system"], response_model=Status)
@reads
def get_status(library: Library, state: State, request: Request) -> Response:
    """Return what the library holds and the limits of the server."""
    # Not the whole `LibraryStatus`: bytes on disk and the list of failures take time in a large library.
    sets = library.set_index.shape.sets
    facts: dict[str, Any] = {
        "version": __version__,
        "library": display_path(library.path),
        **asdict(library.photos.counts()),
        "folders": [display_path(folder) for folder in library.folders],
        "settings": library.settings.to_dict(),
        "dim": library.dim,
        "threshold": library._matchers.threshold,
        "modes": ["exact", "fast"] if sets is None else ["exact", "fast", "set"],
        "index": state.index_job.state.to_dict(),
        "limits": {
            "upload_bytes": state.settings.max_upload,
            "pixels": state.settings.max_pixels,
            "people": MOST_PEOPLE,
        },
        "token": state.settings.token is not None,
        "access": request.scope.get("setnet.access", Access.ALL).value,
    }
    return reply(facts)


@routes.get("/healthz", tags=["system"], response_model=Health)
async def healthz(state: State) -> Response:
    """Return 200 while the server accepts requests."""
    if state.stopping.is_set():
        return reply({"status": "stopping"}, 503)
    return reply({"status": "ok"})


class SessionQuery(Strict):
    """The token that `setnet serve` printed."""

    token: Annotated[str, StringConstraints(max_length=1000)]


@routes.post("/session", tags=["session"], status_code=204)
async def begin_session(session: SessionQuery, request: Request, state: State) -> Response:
    """Exchange the token for a same-site cookie."""
    response = Response(status_code=204)
    if state.settings.token is None:
        return response
    access = access_by(session.token, state.settings)
    if access is None:
        state.wrong_tokens.add(client_address(request.scope), session.token)
        raise Problem(401, "this is not the token that 'setnet serve' printed")
    response.set_cookie(
        COOKIE,
        state.sessions.begin(access),
        max_age=SESSION_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
    return response


@routes.delete("/session", tags=["session"], status_code=204)
async def end_session(request: Request, state: State) -> Response:
    """End the session wherever it is used, and delete the cookie."""
    state.sessions.end(session_in(request.headers))
    response = Response(status_code=204)
    response.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return response
