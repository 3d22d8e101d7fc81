"""`/archive`: the files of several photos as one zip file."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import StreamingResponse

from setnet.library import Library
from setnet.web.api.dependencies import State
from setnet.web.server.problems import not_found
from setnet.web.state.photo_archive import PhotoArchive

routes = APIRouter(tags=["photos"])

_MOST = 500
_IDS = rf"^[0-9]{{1,18}}(,[0-9]{{1,18}}){{0,{_MOST - 1}}}$"


@routes.get("/archive", response_class=Response, responses={200: {"content": {"application/zip": {}}}})
async def get_archive(
    state: State,
    photos: Annotated[str, Query(pattern=_IDS, description=f"Ids with commas between, at most {_MOST}")],
) -> Response:
    """Return the files of photos as one zip file, made while it is sent.

    A file that cannot be read is named in `not included.txt` at its end.
    """

    def collect(library: Library) -> PhotoArchive:
        found = library.catalog.photos(photos.split(","))
        return PhotoArchive(list(found.values()), list(library.folders))

    archive = await state.read(collect)
    if not archive.photos:
        raise not_found("none of these photos is in this library")
    return StreamingResponse(
        archive.chunks(),
        media_type="application/zip",
        headers={
            "Content-Disposition": 'attachment; filename="photos.zip"',
            "Content-Security-Policy": "default-src 'none'; sandbox",
        },
    )
