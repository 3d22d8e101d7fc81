"""Assemble the server: state, middleware, the routes of `/api/v1`, their OpenAPI document, the page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from fastapi.openapi.utils import get_openapi
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from setnet import __version__
from setnet.library import default_library
from setnet.web import additions, faces, groups, index, people, photos, search, status
from setnet.web.examples import EXAMPLES
from setnet.web.guard import COOKIE, BodyLimits, Guard
from setnet.web.page import add_pages
from setnet.web.problems import SCHEMAS, ProblemDetails, install_problems
from setnet.web.settings import WebSettings
from setnet.web.state import ServerState

_NAMES = ("/api/v1/people/", "/api/v1/searches/")
# A server on this machine alone has no token: then none of them is needed.
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "The token that `setnet serve` printed"},
    "header": {"type": "apiKey", "in": "header", "name": "X-Setnet-Token"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "Set by `POST /session`"},
}


def create_app(
    library: str | Path | None = None,
    settings: WebSettings | None = None,
    *,
    warm_up: bool = False,
) -> FastAPI:
    """Return the server of a library as an ASGI app.

    Parameters
    ----------
    library
        The library's folder; made when there is none. By default the user's own.
    settings
        Address, token and limits.
    warm_up
        Start the process that finds faces at once instead of with the first upload.
    """
    settings = settings or WebSettings()
    place = Path(library or default_library()).expanduser().absolute()
    state = ServerState(place, settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if warm_up:
            state.begin()
        yield
        await state.close()

    app = FastAPI(
        title="setnet",
        version=__version__,
        summary="Find the photos that contain a given set of people.",
        lifespan=lifespan,
        docs_url=None,  # the built-in page loads scripts from the internet; ours does not
        redoc_url=None,
        openapi_url="/api/v1/openapi.json",
    )
    app.state.server = state
    install_problems(app)
    for part in (
        search,
        status,
        faces,
        photos,
        additions,
        groups,
        people,
        index,
    ):  # the first is found fastest
        app.router.routes += part.routes.routes  # `include_router` would build each of them again
    app.add_api_route("/healthz", status.healthz, include_in_schema=False)
    add_pages(app, {"/": "index.html", "/docs": "docs.html", "/favicon.ico": "icon.svg"})
    app.openapi = partial(_openapi_document, app)  # type: ignore[method-assign]
    # The last added is the outermost.
    app.add_middleware(RawPathMiddleware)
    app.add_middleware(BodyLimits, settings=settings)
    if settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors),
            allow_methods=["*"],
            allow_headers=["Authorization", "Content-Type", "X-Setnet-Token"],
        )
    app.add_middleware(Guard, settings=settings, wrong_tokens=state.wrong_tokens, sessions=state.sessions)
    return app


class RawPathMiddleware:
    """Lets the routes of people match the address as it was sent, still percent-encoded.

    Decoded, `POST /people/A%2Fmerge` about the person "A/merge" looks like
    `POST /people/A/merge`, which merges others into "A".
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and scope["path"].startswith(_NAMES):
            sent = scope.get("raw_path") or quote(scope["path"]).encode()
            scope["path"] = sent.decode("latin-1")
        await self._app(scope, receive, send)


def _openapi_document(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document, with examples, the tokens and the form of errors."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        document["components"]["securitySchemes"] = _SECURITY
        for operation in (each for verbs in document["paths"].values() for each in verbs.values()):
            if (example := EXAMPLES.get(operation["operationId"])) is not None:
                operation["requestBody"]["content"]["application/json"]["example"] = example
        document["security"] = [{name: []} for name in _SECURITY] + [{}]
        problem = ProblemDetails.model_json_schema(ref_template=SCHEMAS + "{model}", mode="serialization")
        problem = jsonable_encoder(problem, exclude_none=True)  # as of all other schemas
        document["components"]["schemas"] |= problem.pop("$defs", {}) | {ProblemDetails.__name__: problem}
        app.openapi_schema = document
    return app.openapi_schema
