"""`/changes`: the journal of changes of people, and undo."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response
from fastapi.responses import JSONResponse

from setnet.client import ChangeAnswer, ChangesAnswer
from setnet.web.api.bodies.json_body import json_body, json_schema
from setnet.web.api.bodies.people_requests import UndoQuery
from setnet.web.api.dependencies import State

routes = APIRouter()


@routes.get("/changes", response_model=ChangesAnswer)
async def list_changes(state: State, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Response:
    """List the changes of people, latest first."""
    changes = await state.read(lambda library: library.people.history(limit))
    return JSONResponse({"changes": [change.to_dict() for change in changes]})


@routes.post("/changes/undo", response_model=ChangeAnswer, openapi_extra=json_schema(UndoQuery))
async def undo_change(query: Annotated[UndoQuery, json_body(UndoQuery)], state: State) -> Response:
    """Undo a change, by default the latest that is not undone; undoing an undo redoes.

    The answer is the new entry. A change that a later one builds on is refused with 422: undo that first.
    """
    return JSONResponse((await state.write(lambda library: library.people.undo(query.change))).to_dict())


@routes.delete("/changes", status_code=204)
async def erase_changes(state: State) -> Response:
    """Delete the journal for good, with the examples that waited in it for an undo."""
    await state.write(lambda library: library.people.erase_history())
    return Response(status_code=204)
