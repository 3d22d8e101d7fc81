"""`/status`, `/healthz`, `/metrics`: the health of the server."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from fastapi import APIRouter, Response

from setnet import __version__
from setnet.client import Answer, Status
from setnet.library.paths import display_path
from setnet.web.requests import State, reply
from setnet.web.search import MOST_PEOPLE
from setnet.web.state import ServerState

routes = APIRouter(tags=["system"])


class Health(Answer):
    """Whether requests are accepted."""

    status: Literal["ok", "stopping"]


@routes.get("/status", response_model=Status)
async def get_status(state: State) -> Response:
    """Return what the library holds and the limits of the server."""
    return reply(await state.reading.run(_status, state))


def _status(state: ServerState) -> dict[str, Any]:
    # Not the whole `LibraryStatus`: bytes on disk and the list of failures take time in a large library.
    counts = state.counts()
    with state.library.reading() as library:
        sets = library.set_index.shape.sets
        return {
            "version": __version__,
            "library": display_path(library.path),
            **asdict(counts),
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


@routes.get("/healthz", response_model=Health)
async def healthz(state: State) -> Response:
    """Return 200 while the server accepts requests."""
    if state.stopping.is_set():
        return reply({"status": "stopping"}, 503)
    return reply({"status": "ok"})


@routes.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
async def metrics(state: State) -> Response:
    """Return metrics for Prometheus."""
    text = state.metrics.text(await state.reading.run(state.gauges))
    return Response(text, media_type="text/plain; version=0.0.4; charset=utf-8")
