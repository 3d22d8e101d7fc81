"""`/people`: saved people, by name, alias or id."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse

from setnet.client import ChangeAnswer, PeopleAnswer, PersonAnswer, SavedPersonAnswer
from setnet.errors import InvalidInputError
from setnet.library import Change, Library, Person
from setnet.web.api.bodies.jpeg import Jpeg
from setnet.web.api.bodies.json_body import json_body, json_schema
from setnet.web.api.bodies.people_requests import MergeQuery, NewPerson, PersonChange
from setnet.web.api.dependencies import ForGood, Name, State, known_person, refuse_dots
from setnet.web.api.query_faces import examples_of, photo_examples, uploads_of
from setnet.web.server.problems import not_found

routes = APIRouter()


@routes.get("/people", response_model=PeopleAnswer)
async def list_people(state: State) -> Response:
    """List the saved people, with the number of photos that `GET /people/{name}/photos` lists of each."""

    def read(library: Library) -> list[dict[str, Any]]:
        people, photos = list(library.people), library.photo_counts()
        return [person.to_dict() | {"photos": photos.get(person.id, 0)} for person in people]

    return JSONResponse({"people": await state.searching.run(state.with_library, read)})


@routes.post(
    "/people", status_code=201, response_model=SavedPersonAnswer, openapi_extra=json_schema(NewPerson)
)
async def save_person(new: Annotated[NewPerson, json_body(NewPerson)], state: State) -> Response:
    """Save a person by name, or add example faces to a saved one.

    When the name is somebody's who is spelt or looks different, the answer is 409 with that `person`: ask
    whether they are meant, and send it again with `if_exists` "add", or under another name.
    """
    refuse_dots(new.name)
    uploads = await uploads_of(state, new)
    in_photos = await state.drawing.run(photo_examples, state, new.photo_faces) if new.photo_faces else []

    def save(library: Library) -> tuple[Person, list[str]]:
        return library.save_person(new.name, examples_of(new, uploads, in_photos, library), new.if_exists)

    person, notes = await state.write(save)
    return JSONResponse(person.to_dict() | {"notes": notes}, 201)


@routes.get("/people/{name:path}/picture", response_class=Jpeg)
async def person_picture(name: Name, state: State) -> Response:
    """Return a picture of a saved person's face: their cover, else the oldest."""
    picture = await state.read(lambda library: library.people.picture(known_person(library, name)))
    if picture is None:
        raise not_found(f"there is no picture of {name!r}: they are known by descriptors only")
    return Jpeg(picture, headers={"Cache-Control": "private, no-cache"})


@routes.post("/people/{name:path}/merge", response_model=PersonAnswer, openapi_extra=json_schema(MergeQuery))
async def merge_people(
    name: Name, query: Annotated[MergeQuery, json_body(MergeQuery)], state: State
) -> Response:
    """Merge other saved people into this one."""

    def merge(library: Library) -> Person:
        others = [known_person(library, other) for other in query.others]
        return library.people.merge(known_person(library, name), others)

    return JSONResponse((await state.write(merge)).to_dict())


@routes.get("/people/{name:path}", response_model=PersonAnswer)
async def get_person(name: Name, state: State) -> Response:
    """Return one saved person."""
    return JSONResponse((await state.read(lambda library: known_person(library, name))).to_dict())


@routes.patch("/people/{name:path}", response_model=PersonAnswer, openapi_extra=json_schema(PersonChange))
async def change_person(
    name: Name, query: Annotated[PersonChange, json_body(PersonChange)], state: State
) -> Response:
    """Change a saved person's name, aliases, note or cover, in one step."""

    def change(library: Library) -> Person:
        return library.people.edit(
            known_person(library, name),
            new_name=query.name,
            aliases=query.aliases,
            note=query.note,
            cover=query.cover,
        )

    return JSONResponse((await state.write(change)).to_dict())


@routes.delete("/people/{name:path}", response_model=ChangeAnswer)
async def remove_person(name: Name, state: State, for_good: ForGood = False) -> Response:
    """Remove a saved person with example faces and verdicts; this can be undone, unless it is for good.

    Who was removed before is deleted for good by the same call with `for_good`.
    """

    def remove(library: Library) -> Change:
        if not for_good:
            return library.people.remove(known_person(library, name))[0]
        try:
            return library.people.remove(name, for_good=True)[0]
        except InvalidInputError as error:
            raise not_found(str(error)) from error

    return JSONResponse((await state.write(remove)).to_dict())
