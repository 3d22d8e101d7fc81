"""`/people/{name}/examples`: the example faces of a person, and where they belong."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import JSONResponse

from setnet.client import ExamplesAnswer, PersonAnswer
from setnet.library import Example, Library, Person
from setnet.web.api.bodies.jpeg import Jpeg
from setnet.web.api.bodies.json_body import json_body, json_schema
from setnet.web.api.bodies.people_requests import MoveQuery, SplitQuery
from setnet.web.api.bodies.people_requests import Number as ExampleNumber
from setnet.web.api.dependencies import ForGood, Name, State, known_person
from setnet.web.server.problems import not_found

routes = APIRouter()

Number = Annotated[int, Path(ge=1, le=2**62)]


@routes.get("/people/{name:path}/examples/{number}/picture", response_class=Jpeg)
async def example_picture(name: Name, number: Number, state: State) -> Response:
    """Return the picture of an example face."""
    example = await state.read(lambda library: _known(library, name, number))
    if example.picture is None:
        raise not_found(f"there is no picture of example {number} of {name!r}")
    return Jpeg(example.picture, headers={"Cache-Control": "private, no-cache"})


@routes.delete("/people/{name:path}/examples/{number}", response_model=PersonAnswer)
async def remove_example(
    name: Name,
    number: Number,
    state: State,
    for_good: ForGood = False,
) -> Response:
    """Remove an example face of a person; this can be undone, unless it is for good."""
    return await remove_examples(name, [number], state, for_good)


@routes.delete("/people/{name:path}/examples", response_model=PersonAnswer)
async def remove_examples(
    name: Name,
    number: Annotated[list[ExampleNumber], Query(min_length=1, max_length=1000)],
    state: State,
    for_good: ForGood = False,
) -> Response:
    """Remove several example faces of a person in one change."""

    def remove(library: Library) -> Person:
        for each in number:
            _known(library, name, each)
        return library.people.remove_examples(known_person(library, name), number, for_good=for_good)

    return JSONResponse((await state.write(remove)).to_dict())


@routes.get("/people/{name:path}/examples", response_model=ExamplesAnswer)
async def list_examples(name: Name, state: State) -> Response:
    """List the example faces of a person, oldest first."""
    known = await state.read(lambda library: library.people.examples(known_person(library, name)))
    return JSONResponse({"examples": [example.to_dict() for example in known]})


@routes.post("/people/{name:path}/split", response_model=PersonAnswer, openapi_extra=json_schema(SplitQuery))
async def split_person(
    name: Name, query: Annotated[SplitQuery, json_body(SplitQuery)], state: State
) -> Response:
    """Make some examples of a person a new person, and return that one."""
    made = await state.write(
        lambda library: library.people.split(known_person(library, name), query.examples, query.name)
    )
    return JSONResponse(made.to_dict())


@routes.post("/people/{name:path}/move", response_model=PersonAnswer, openapi_extra=json_schema(MoveQuery))
async def move_examples(
    name: Name, query: Annotated[MoveQuery, json_body(MoveQuery)], state: State
) -> Response:
    """Give some examples of a person to another saved person, and return that one."""

    def move(library: Library) -> Person:
        target = known_person(library, query.to)
        return library.people.move(known_person(library, name), query.examples, target)

    return JSONResponse((await state.write(move)).to_dict())


def _known(library: Library, name: str, number: int) -> Example:
    examples = library.people.examples(known_person(library, name))
    found = next((example for example in examples if example.number == number), None)
    if found is None:
        raise not_found(f"{name!r} has no example {number}")
    return found
