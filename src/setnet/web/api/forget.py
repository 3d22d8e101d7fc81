"""`/forget`: delete data about photos for good. The photos themselves are never touched."""

from __future__ import annotations

from fastapi import APIRouter, Depends, Response
from fastapi.responses import JSONResponse

from setnet.web.api.dependencies import State, require_json
from setnet.web.api.schema.requests import FolderQuery, ForgetQuery
from setnet.web.server.problems import Problem
from setnet.web.state.server_state import ServerState

routes = APIRouter(tags=["forget"], dependencies=[Depends(require_json)])

_NOT_KEPT = {"Clear-Site-Data": '"cache"'}  # the browser keeps thumbnails too


@routes.post("/forget/folder")
async def forget_folder(query: FolderQuery, state: State) -> Response:
    """Delete all data about the photos in a folder."""
    return JSONResponse({"photos": await state.writing.run(_forget, state, query.folder)}, headers=_NOT_KEPT)


@routes.post("/forget/everything")
async def forget_everything(query: ForgetQuery, state: State) -> Response:
    """Delete the whole library: faces, people, thumbnails."""
    return JSONResponse({"photos": await state.writing.run(state.forget_everything)}, headers=_NOT_KEPT)


def _forget(state: ServerState, folder: str) -> int:
    if state.index_job.is_running:
        raise Problem(409, "an index run is under way: stop it first")
    with state.library.reading() as library:
        photos = library.forget([folder])
    state.drop_counts()
    return photos
