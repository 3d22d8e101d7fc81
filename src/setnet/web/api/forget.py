"""`/forget`: delete data about photos for good. The photos themselves are never touched."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from setnet.client import ForgottenAnswer
from setnet.web.api.bodies.json_body import json_body, json_schema
from setnet.web.api.bodies.requests import FolderQuery, ForgetQuery
from setnet.web.api.dependencies import State
from setnet.web.server.problems import Problem
from setnet.web.state.server_state import ServerState

routes = APIRouter(tags=["forget"])

_NOT_KEPT = {"Clear-Site-Data": '"cache"'}  # the browser keeps thumbnails too


@routes.post("/forget/folder", response_model=ForgottenAnswer, openapi_extra=json_schema(FolderQuery))
async def forget_folder(query: Annotated[FolderQuery, json_body(FolderQuery)], state: State) -> Response:
    """Delete all data about the photos in a folder."""
    return JSONResponse({"photos": await state.writing.run(_forget, state, query.folder)}, headers=_NOT_KEPT)


@routes.post("/forget/everything", response_model=ForgottenAnswer, openapi_extra=json_schema(ForgetQuery))
async def forget_everything(query: Annotated[ForgetQuery, json_body(ForgetQuery)], state: State) -> Response:
    """Delete the whole library: faces, people, thumbnails."""
    return JSONResponse({"photos": await state.writing.run(state.forget_everything)}, headers=_NOT_KEPT)


def _forget(state: ServerState, folder: str) -> int:
    if state.index_job.is_running:
        raise Problem(409, "an index run is under way: stop it first")
    with state.library.reading() as library:
        photos = library.forget([folder])
    state.rankings.clear()
    return photos
