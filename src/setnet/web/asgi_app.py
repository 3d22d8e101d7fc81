"""Assemble the server: state, middleware, routes, page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.middleware.cors import CORSMiddleware

from setnet import __version__
from setnet.library import default_library
from setnet.web.api import api, health
from setnet.web.api.bodies.openapi import describe
from setnet.web.server.body_limits import BodyLimits
from setnet.web.server.encoded_names import EncodedNames
from setnet.web.server.guard import Guard
from setnet.web.server.metrics import RequestMetrics
from setnet.web.server.problems import install_problems
from setnet.web.server_settings import WebSettings
from setnet.web.state.server_state import ServerState

STATIC = Path(__file__).parent / "static"


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
        generate_unique_id_function=lambda route: route.name,  # clients call their methods so
    )
    app.state.server = state
    install_problems(app)
    app.include_router(api())
    for path, route in (("/healthz", health.healthz), ("/metrics", health.metrics)):
        app.add_api_route(path, route, include_in_schema=False)
    _add_page(app)
    app.openapi = partial(describe, app)  # type: ignore[method-assign]
    # The last added is the outermost.
    app.add_middleware(EncodedNames)
    app.add_middleware(BodyLimits, settings=settings)
    app.add_middleware(RequestMetrics, metrics=state.metrics)
    if settings.cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.cors),
            allow_methods=["*"],
            allow_headers=["Authorization", "Content-Type", "X-Setnet-Token"],
        )
    app.add_middleware(Guard, settings=settings, wrong_tokens=state.wrong_tokens)
    return app


def _add_page(app: FastAPI) -> None:
    def add(path: str, file: str) -> None:
        async def page() -> Response:
            return FileResponse(STATIC / file, headers={"Cache-Control": "no-cache"})

        app.add_api_route(path, page, include_in_schema=False)

    for path, file in (("/", "index.html"), ("/docs", "docs.html"), ("/favicon.ico", "icon.svg")):
        add(path, file)
    app.mount("/static", StaticFiles(directory=STATIC), name="static")
