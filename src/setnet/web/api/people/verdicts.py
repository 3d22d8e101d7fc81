"""`/people/{name}/confirm`, `refuse`, `verdicts`: what the user says of matches."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from setnet.client import PersonAnswer, VerdictsAnswer
from setnet.library import Library, Person
from setnet.web.api.bodies.json_body import json_body, json_schema
from setnet.web.api.bodies.requests import FaceReference
from setnet.web.api.dependencies import Name, State, known_person
from setnet.web.api.query_faces import descriptor_of, photo_examples

routes = APIRouter()

_BODY = json_schema(FaceReference)


@routes.post("/people/{name:path}/confirm", response_model=PersonAnswer, openapi_extra=_BODY)
async def confirm_match(
    name: Name, face: Annotated[FaceReference, json_body(FaceReference)], state: State
) -> Response:
    """Keep that a face of a photo is this person: it becomes an example of them, and nobody else's."""
    await state.read(lambda library: known_person(library, name))
    (example,) = await state.drawing.run(photo_examples, state, [face])

    def confirm(library: Library) -> Person:
        person = known_person(library, name)
        return library.people.confirm(person, face.photo, face.face, example.picture)

    return JSONResponse((await state.write(confirm)).to_dict())


@routes.post("/people/{name:path}/refuse", response_model=PersonAnswer, openapi_extra=_BODY)
async def refuse_match(
    name: Name, face: Annotated[FaceReference, json_body(FaceReference)], state: State
) -> Response:
    """Keep that a face of a photo is not this person: it does not match them any more."""

    def refuse(library: Library) -> Person:
        person = known_person(library, name)
        descriptor_of(library, face)
        return library.people.refuse(person, face.photo, face.face)

    return JSONResponse((await state.write(refuse)).to_dict())


@routes.get("/people/{name:path}/verdicts", response_model=VerdictsAnswer)
async def list_verdicts(name: Name, state: State) -> Response:
    """List what was confirmed and refused of a person, with where the faces are now."""
    said = await state.read(lambda library: library.people.verdicts(known_person(library, name)))
    return JSONResponse({"verdicts": [verdict.to_dict() for verdict in said]})
