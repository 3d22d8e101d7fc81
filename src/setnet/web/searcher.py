"""The server of a searcher: one route, without a page."""

from __future__ import annotations

from fastapi import FastAPI, Request, Response

from setnet.connect.searchers import PATH, Searcher
from setnet.web.guard import BodyLimits, Guard, Sessions, TokenRateLimit
from setnet.web.pools import BoundedThreads
from setnet.web.problems import install_problems
from setnet.web.settings import WebSettings


def create_searcher(searcher: Searcher, settings: WebSettings) -> FastAPI:
    """Return the server of a part of a collection as an ASGI app."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    threads = BoundedThreads("searching", settings.search_threads, settings.search_queue)

    async def search(request: Request) -> Response:
        found = await threads.run(searcher.answer, await request.body())
        return Response(found, media_type="application/octet-stream")

    app.add_route(PATH, search, methods=["POST"])
    install_problems(app)
    app.add_middleware(BodyLimits, settings=settings)
    wrong_tokens = TokenRateLimit(settings.wrong_tokens)
    app.add_middleware(Guard, settings=settings, wrong_tokens=wrong_tokens, sessions=Sessions())
    return app
