"""`/forget`: delete data about photos for good. The photos themselves are never touched."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse
from pydantic import StringConstraints

from setnet.client import ForgottenAnswer
from setnet.web.problems import Problem
from setnet.web.requests import State, Strict, json_body, json_schema
from setnet.web.state import ServerState

routes = APIRouter(tags=["forget"])
_NOT_KEPT = {"Clear-Site-Data": '"cache"'}  # the browser keeps thumbnails too


class FolderQuery(Strict):
    """A folder whose photos shall be forgotten."""

    folder: Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class ForgetQuery(Strict):
    """Forgetting everything needs these very words."""

    confirm: Literal["forget everything"]


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
