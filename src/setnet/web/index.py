"""`/index`, `/failures`, `/folders`, `/forget`: index runs, files that failed, folders to choose, deletion.

Forgetting deletes data about photos for good; the photos themselves are never touched.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, StringConstraints

from setnet.addresses import is_address
from setnet.client import Answer, Failures, Run
from setnet.errors import InvalidInputError
from setnet.library.creation import roots_from
from setnet.library.paths import display_path
from setnet.web.files import Folders
from setnet.web.guard import client_address
from setnet.web.problems import Problem
from setnet.web.requests import BodyRoute, State, Strict, reply
from setnet.web.settings import is_loopback
from setnet.web.state import ServerState

routes = APIRouter(tags=["index"], route_class=BodyRoute)
_LOOK_SECONDS = 0.25
_HEARTBEAT_SECONDS = 15.0
_NOT_KEPT = {"Clear-Site-Data": '"cache"'}  # the browser keeps thumbnails too


class IndexQuery(Strict):
    """What an index run shall look at."""

    folders: Annotated[
        list[Annotated[str, StringConstraints(min_length=1, max_length=4096)]],
        Field(max_length=100, description="Folders on the server; none: those indexed before"),
    ] = []
    prune: Annotated[
        bool, Field(description="Remove photos whose files are gone, if these are a tenth of all at most")
    ] = False
    prune_many: Annotated[bool, Field(description="With `prune`: remove them however many they are")] = False
    retry: Annotated[bool, Field(description="Look again at files that failed before")] = False


@routes.post("/index", status_code=202, response_model=Run)
async def start_index(query: IndexQuery, state: State) -> Response:
    """Start an index run over folders of this machine; `/index/events` streams its progress."""
    if any(is_address(folder) for folder in query.folders):  # a page must not make this machine call others
        raise InvalidInputError("the page indexes folders of this machine; addresses: `setnet index ADDRESS`")
    # a missing folder is an error now, not later in the run
    await state.read(lambda library: roots_from(query.folders, library.photos))
    state.index_job.start(query.folders, prune=query.prune, prune_many=query.prune_many, retry=query.retry)
    return reply(state.index_job.state.to_dict(), 202)


@routes.get("/index", response_model=Run)
async def index_state(state: State) -> Response:
    """Return the state of the latest index run."""
    return reply(state.index_job.state.to_dict())


@routes.delete("/index", response_model=Run)
async def stop_index(state: State) -> Response:
    """Stop the index run; what it found is kept, and the next run goes on from there."""
    return reply(state.index_job.stop().to_dict())


@routes.get("/index/events", response_class=Response, responses={200: {"content": {"text/event-stream": {}}}})
async def index_events(
    state: State,
    once: Annotated[bool, Query(description="End the stream when no run is under way")] = False,
) -> Response:
    """Stream the state of the index run as server-sent events, one whenever it changes."""
    return StreamingResponse(
        _events(state, once),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def _events(state: ServerState, once: bool) -> AsyncIterator[str]:
    sent, silent = -1, 0.0
    while not state.stopping.is_set():
        job = state.index_job.state
        if job.version != sent:
            sent, silent = job.version, 0.0
            yield f"event: index\nid: {job.version}\ndata: {json.dumps(job.to_dict())}\n\n"
        elif silent >= _HEARTBEAT_SECONDS:
            silent = 0.0
            yield ": still here\n\n"
        if once and job.state not in ("running", "stopping"):
            return
        await asyncio.sleep(_LOOK_SECONDS)
        silent += _LOOK_SECONDS


@routes.get("/failures", response_model=Failures)
async def list_failures(
    state: State,
    limit: Annotated[int, Query(ge=1, le=1000)] = 200,
    offset: Annotated[int, Query(ge=0, le=10_000_000)] = 0,
) -> Response:
    """List the files that could not be read, with the reasons."""
    found = await state.read(lambda library: library.photos.failures())
    part = [failure.to_dict(display_path) for failure in found[offset : offset + limit]]
    return reply({"failures": part, "total": len(found)})


@routes.get("/folders")
async def list_folders(
    request: Request,
    state: State,
    path: Annotated[str | None, Query(max_length=4096, description="None: where to begin")] = None,
) -> Folders:
    """List the folders in a folder, to choose one for an index run.

    Only for requests from this machine, and only below the home folder and mounted disks.
    """
    if state.settings.behind_proxy or not is_loopback(client_address(request.scope)):
        raise Problem(403, "folders are listed on the machine of the server only: type the path instead")
    return await state.reading.run(state.folders.listing, path)


class FolderQuery(Strict):
    """A folder whose photos shall be forgotten."""

    folder: Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class ForgetQuery(Strict):
    """Forgetting everything needs these very words."""

    confirm: Literal["forget everything"]


class Forgotten(Answer):
    """How many photos' data was deleted."""

    photos: int


@routes.post("/forget/folder")
async def forget_folder(query: FolderQuery, state: State, response: Response) -> Forgotten:
    """Delete all data about the photos in a folder."""
    response.headers.update(_NOT_KEPT)
    return Forgotten(photos=await state.writing.run(_forget, state, query.folder))


@routes.post("/forget/everything")
async def forget_everything(query: ForgetQuery, state: State, response: Response) -> Forgotten:
    """Delete the whole library: faces, people, thumbnails."""
    response.headers.update(_NOT_KEPT)
    return Forgotten(photos=await state.writing.run(state.forget_everything))


def _forget(state: ServerState, folder: str) -> int:
    if state.index_job.is_running:
        raise Problem(409, "an index run is under way: stop it first")
    with state.library.reading() as library:
        photos = library.forget([folder])
    state.rankings.clear()
    return photos
