"""`/timeline`: all photos by date, from any place on."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from setnet.client import PhotosAnswer, TimelineAnswer
from setnet.library import Library, LibraryPhoto, display_path
from setnet.web.api.dependencies import State

routes = APIRouter(tags=["photos"])


@routes.get("/timeline", response_model=TimelineAnswer)
async def get_timeline(state: State) -> Response:
    """Count the photos of each month, the latest first; those of no known time come last."""
    timeline = await state.read(state.timeline.of)
    months = [{"month": month, "photos": photos} for month, photos in timeline.months]
    return JSONResponse({"months": months, "total": len(timeline.ids)})


@routes.get("/timeline/photos", response_model=PhotosAnswer)
async def list_by_date(
    state: State,
    offset: Annotated[int, Query(ge=0, le=10**9, description="How many later photos to pass over")] = 0,
    limit: Annotated[int, Query(ge=1, le=200)] = 100,
) -> Response:
    """List photos, the latest taken first; `cursor` is the offset of those that follow."""

    def read(library: Library) -> tuple[list[LibraryPhoto], bool]:
        ids = state.timeline.of(library).ids
        wanted = [str(number) for number in ids[offset : offset + limit]]
        found = library.catalog.photos(wanted)
        return [found[photo] for photo in wanted if photo in found], offset + limit < len(ids)

    photos, has_more = await state.read(read)
    return JSONResponse(
        {
            "photos": [photo.to_dict(display_path) for photo in photos],
            "cursor": str(offset + limit) if has_more else None,
        }
    )
