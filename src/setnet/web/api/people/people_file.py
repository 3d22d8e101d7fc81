"""`/export/people` and `/import/people`: people as a file."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from setnet.client import ImportAnswer, PeopleFileAnswer
from setnet.web.api.dependencies import State, content_type
from setnet.web.server.problems import Problem

routes = APIRouter()

_FILE = {"application/json": {"schema": {"type": "object", "description": "What /export/people answers"}}}
_BODY: dict[str, Any] = {"requestBody": {"required": True, "content": _FILE}}


@routes.get("/export/people", response_model=PeopleFileAnswer)
async def export_people(
    state: State,
    descriptors: Annotated[bool, Query(description="Without, faces are found again when imported")] = True,
) -> Response:
    """Return all saved people as a file: names, example faces with pictures, confirmed and refused faces."""
    data = await state.read(lambda library: library.exported_people(descriptors=descriptors).to_bytes())
    headers = {"Content-Disposition": 'attachment; filename="people.json"'}
    return Response(data, media_type="application/json", headers=headers)


@routes.post("/import/people", response_model=ImportAnswer, openapi_extra=_BODY)
async def import_people(
    request: Request,
    state: State,
    descriptors: Annotated[bool, Query(description="Use the file's own; else find the faces again")] = True,
) -> Response:
    """Add the people of a file to those saved here, in one step that can be undone."""
    if content_type(request) != "application/json":
        raise Problem(415, "send JSON with the header 'Content-Type: application/json'")
    data = await request.body()
    done = await state.write(lambda library: library.import_people(data, descriptors=descriptors))
    return JSONResponse(done.to_dict())
