"""`/people`: saved people."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import APIRouter, Path, Response
from fastapi.responses import JSONResponse
from pydantic import BeforeValidator

from setnet.errors import InvalidInputError
from setnet.library import Library, Person
from setnet.web.api.bodies.answers import PeopleAnswer, PersonAnswer
from setnet.web.api.bodies.json_body import json_body, json_schema
from setnet.web.api.bodies.requests import MergeQuery, NewPerson, RenameQuery
from setnet.web.api.dependencies import State
from setnet.web.api.examples import examples_of, photo_examples, uploads_of
from setnet.web.server.problems import not_found

routes = APIRouter(tags=["people"])

# A name may hold anything printable, slashes too: these routes see the address as it was sent, in which
# a %2F is part of the name of "A/merge" and no route to "A".
Name = Annotated[str, Path(min_length=1, max_length=200), BeforeValidator(unquote)]


@routes.get("/people", response_model=PeopleAnswer)
async def list_people(state: State) -> Response:
    """List the saved people."""
    people = await state.read(lambda library: [person.to_dict() for person in library.people])
    return JSONResponse({"people": people})


@routes.post("/people", status_code=201, response_model=PersonAnswer, openapi_extra=json_schema(NewPerson))
async def save_person(new: Annotated[NewPerson, json_body(NewPerson)], state: State) -> Response:
    """Save a person by name, or add example faces to a saved one."""
    if new.name.strip() in (".", ".."):
        raise InvalidInputError("a person cannot be called '.' or '..': addresses could not name them")
    uploads = await uploads_of(state, new)
    in_photos = await state.drawing.run(photo_examples, state, new.photo_faces) if new.photo_faces else []

    def save(library: Library) -> Person:
        return library.people.add(new.name, examples_of(new, uploads, in_photos, library))

    return JSONResponse((await state.write(save)).to_dict(), 201)


@routes.get("/people/{name:path}/picture", responses={200: {"content": {"image/jpeg": {}}}})
async def person_picture(name: Name, state: State) -> Response:
    """Return a picture of a saved person's face."""
    picture = await state.read(lambda library: library.people.picture(_known(library, name).name))
    if picture is None:
        raise not_found(f"there is no picture of {name!r}: they are known by descriptors only")
    return Response(picture, media_type="image/jpeg", headers={"Cache-Control": "private, no-cache"})


@routes.post("/people/{name:path}/merge", response_model=PersonAnswer, openapi_extra=json_schema(MergeQuery))
async def merge_people(
    name: Name, query: Annotated[MergeQuery, json_body(MergeQuery)], state: State
) -> Response:
    """Merge other saved people into this one."""

    def merge(library: Library) -> Person:
        for known in (name, *query.others):
            _known(library, known)
        return library.people.merge(name, query.others)

    return JSONResponse((await state.write(merge)).to_dict())


@routes.get("/people/{name:path}", response_model=PersonAnswer)
async def get_person(name: Name, state: State) -> Response:
    """Return one saved person."""
    return JSONResponse((await state.read(lambda library: _known(library, name))).to_dict())


@routes.patch("/people/{name:path}", response_model=PersonAnswer, openapi_extra=json_schema(RenameQuery))
async def rename_person(
    name: Name, query: Annotated[RenameQuery, json_body(RenameQuery)], state: State
) -> Response:
    """Give a saved person another name."""
    renamed = await state.write(lambda lib: lib.people.rename(_known(lib, name).name, query.name))
    return JSONResponse(renamed.to_dict())


@routes.delete("/people/{name:path}", status_code=204)
async def remove_person(name: Name, state: State) -> Response:
    """Delete a saved person and their example faces, for good."""
    await state.write(lambda library: library.people.remove(_known(library, name).name))
    return Response(status_code=204)


def _known(library: Library, name: str) -> Person:
    if name not in library.people:
        raise not_found(f"nobody saved is called {name!r}")
    return library.people.get(name)
