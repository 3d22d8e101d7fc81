"""`/status`, `/healthz`, `/metrics`: the health of the server."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from setnet import __version__
from setnet.client import HealthAnswer, StatusAnswer
from setnet.library import display_path
from setnet.web.requests import State
from setnet.web.search import MOST_PEOPLE
from setnet.web.state import ServerState

routes = APIRouter(tags=["system"])


@routes.get("/status", response_model=StatusAnswer)
async def get_status(state: State) -> Response:
    """Return what the library holds and the limits of the server."""
    return JSONResponse(await state.reading.run(_status, state))


def _status(state: ServerState) -> dict[str, Any]:
    # Not the whole `LibraryStatus`: bytes on disk and the list of failures take time in a large library.
    counts = state.counts()
    with state.library.reading() as library:
        sets = library.set_index.shape.sets
        return {
            "version": __version__,
            "library": display_path(library.path),
            **counts.to_dict(),
            "folders": [display_path(folder) for folder in library.folders],
            "settings": library.settings.to_dict(),
            "dim": library.dim,
            "threshold": library.matching.threshold,
            "modes": ["exact", "fast"] if sets is None else ["exact", "fast", "set"],
            "index": state.index_job.state.to_dict(),
            "limits": {
                "upload_bytes": state.settings.max_upload,
                "pixels": state.settings.max_pixels,
                "people": MOST_PEOPLE,
            },
            "token": state.settings.token is not None,
        }


@routes.get("/healthz", response_model=HealthAnswer)
async def healthz(state: State) -> Response:
    """Return 200 while the server accepts requests."""
    if state.stopping.is_set():
        return JSONResponse({"status": "stopping"}, 503)
    return JSONResponse({"status": "ok"})


@routes.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(state: State) -> Response:
    """Return metrics for Prometheus."""
    text = state.metrics.text(await state.reading.run(state.gauges))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
