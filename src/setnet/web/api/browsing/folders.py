"""`/folders`: folders of this machine, for whoever sits in front of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from setnet.client import FoldersAnswer
from setnet.web.api.dependencies import State
from setnet.web.server.guard import address_of
from setnet.web.server.problems import Problem
from setnet.web.server_settings import is_loopback

routes = APIRouter(tags=["index"])


@routes.get("/folders", response_model=FoldersAnswer)
async def list_folders(
    request: Request,
    state: State,
    path: Annotated[str | None, Query(max_length=4096, description="None: where to begin")] = None,
) -> Response:
    """List the folders in a folder, to choose one for an index run.

    Only for requests from this machine, and only below the home folder and mounted disks.
    """
    if state.settings.behind_proxy or not is_loopback(address_of(request.scope)):
        raise Problem(403, "folders are listed on the machine of the server only: type the path instead")
    return JSONResponse((await state.reading.run(state.folders.listing, path)).to_dict())
