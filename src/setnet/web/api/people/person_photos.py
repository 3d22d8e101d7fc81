"""`/people/{name}/photos`: all photos of a person, by date."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from setnet.client import PersonPhotosAnswer
from setnet.library import Library, PersonPhotos, display_path
from setnet.web.api.dependencies import Name, State, known_person

routes = APIRouter()


@routes.get("/people/{name:path}/photos", response_model=PersonPhotosAnswer)
async def person_photos(
    name: Name,
    state: State,
    limit: Annotated[int, Query(ge=1, le=200)] = 60,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9]{1,9}$")] = None,
) -> Response:
    """List the photos of a person, the latest taken first.

    Those with a face that is surely theirs, was confirmed, or is in a group of theirs.
    """
    offset = int(cursor or 0)

    def read(library: Library) -> PersonPhotos:
        return library.photos_with(known_person(library, name).id, offset, limit)

    found = await state.searching.run(state.with_library, read)
    end = offset + limit
    return JSONResponse(
        {
            "photos": [photo.to_dict(display_path) for photo in found.photos],
            "total": found.total,
            "cursor": str(end) if end < found.total else None,
        }
    )
