"""`/people`, `/changes`, `/export/people`, `/import/people`: saved people, by name, alias or id.

Their examples, what the user says of matches, the journal of changes with undo, and people as a file.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import Field, StringConstraints, model_validator

from setnet.client import (
    ChangeAnswer,
    ChangesAnswer,
    ExamplesAnswer,
    ImportAnswer,
    PeopleAnswer,
    PeopleFileAnswer,
    PersonAnswer,
    PersonPhotosAnswer,
    SavedPersonAnswer,
    VerdictsAnswer,
)
from setnet.errors import InvalidInputError
from setnet.library import Change, Example, Library, Person, PersonPhotos, display_path
from setnet.web.examples import (
    Examples,
    FaceReference,
    all_examples,
    face_descriptor,
    photo_examples,
    uploaded_examples,
)
from setnet.web.problems import Problem, not_found
from setnet.web.requests import (
    ForGood,
    Jpeg,
    Name,
    NameInPath,
    State,
    Strict,
    check_addressable,
    content_type,
    json_body,
    json_schema,
    require_person,
)

Note = Annotated[str, StringConstraints(max_length=10_000)]
ExampleNumber = Annotated[
    int, Field(ge=1, le=2**62, description="The number of an example, as /examples has it")
]
ExampleNumbers = Annotated[list[ExampleNumber], Field(min_length=1, max_length=1000)]
IfExists = Annotated[
    Literal["ask", "add", "refuse"],
    Field(
        description="When somebody is called so: `ask` adds what is spelt and looks like them and "
        "answers 409 otherwise, `add` adds in any case, `refuse` in none"
    ),
]
# The first route that fits is taken: addresses that go on after a name come before those that end with it.
routes = APIRouter(tags=["people"])
NumberInPath = Annotated[int, Path(ge=1, le=2**62)]
_FACE_BODY = json_schema(FaceReference)
_FILE_CONTENT = {
    "application/json": {"schema": {"type": "object", "description": "What /export/people answers"}}
}
_FILE_BODY: dict[str, Any] = {"requestBody": {"required": True, "content": _FILE_CONTENT}}


class NewPerson(Examples):
    """A person to be kept; a known name gets more examples."""

    name: Name
    if_exists: IfExists = "ask"


class PersonChange(Strict):
    """What to change of a person; what is left out stays as it is."""

    name: Name | None = None
    aliases: Annotated[
        list[Name] | None, Field(max_length=100, description="All other names from now on")
    ] = None
    note: Note | None = None
    cover: Annotated[
        int | None,
        Field(ge=0, le=2**62, description="The example whose picture stands for them; 0: none chosen"),
    ] = None

    @model_validator(mode="after")
    def _something(self) -> Self:
        if not self.model_fields_set:
            raise ValueError("say what to change: name, aliases, note or cover")
        return self


class MergeQuery(Strict):
    """People who are the same person."""

    others: Annotated[list[Name], Field(min_length=1, max_length=100)]


class SplitQuery(Strict):
    """Examples that become a new person."""

    name: Name
    examples: ExampleNumbers


class MoveQuery(Strict):
    """Examples that are another saved person's."""

    to: Name
    examples: ExampleNumbers


class UndoQuery(Strict):
    """Which change to undo; none: the latest that is not undone."""

    change: Annotated[int | None, Field(ge=1, le=2**62)] = None


@routes.get("/people/{name:path}/examples/{number}/picture", response_class=Jpeg)
async def example_picture(name: NameInPath, number: NumberInPath, state: State) -> Response:
    """Return the picture of an example face."""
    example = await state.read(lambda library: _require_example(library, name, number))
    if example.picture is None:
        raise not_found(f"there is no picture of example {number} of {name!r}")
    return Jpeg(example.picture, headers={"Cache-Control": "private, no-cache"})


@routes.delete("/people/{name:path}/examples/{number}", response_model=PersonAnswer)
async def remove_example(
    name: NameInPath,
    number: NumberInPath,
    state: State,
    for_good: ForGood = False,
) -> Response:
    """Remove an example face of a person; this can be undone, unless it is for good."""
    return await remove_examples(name, [number], state, for_good)


@routes.delete("/people/{name:path}/examples", response_model=PersonAnswer)
async def remove_examples(
    name: NameInPath,
    number: Annotated[list[ExampleNumber], Query(min_length=1, max_length=1000)],
    state: State,
    for_good: ForGood = False,
) -> Response:
    """Remove several example faces of a person in one change."""

    def remove(library: Library) -> Person:
        for each in number:
            _require_example(library, name, each)
        return library.people.remove_examples(require_person(library, name), number, for_good=for_good)

    return JSONResponse((await state.write(remove)).to_dict())


@routes.get("/people/{name:path}/examples", response_model=ExamplesAnswer)
async def list_examples(name: NameInPath, state: State) -> Response:
    """List the example faces of a person, oldest first."""
    known = await state.read(lambda library: library.people.examples(require_person(library, name)))
    return JSONResponse({"examples": [example.to_dict() for example in known]})


@routes.post("/people/{name:path}/split", response_model=PersonAnswer, openapi_extra=json_schema(SplitQuery))
async def split_person(
    name: NameInPath, query: Annotated[SplitQuery, json_body(SplitQuery)], state: State
) -> Response:
    """Make some examples of a person a new person, and return that one."""
    made = await state.write(
        lambda library: library.people.split(require_person(library, name), query.examples, query.name)
    )
    return JSONResponse(made.to_dict())


@routes.post("/people/{name:path}/move", response_model=PersonAnswer, openapi_extra=json_schema(MoveQuery))
async def move_examples(
    name: NameInPath, query: Annotated[MoveQuery, json_body(MoveQuery)], state: State
) -> Response:
    """Give some examples of a person to another saved person, and return that one."""

    def move(library: Library) -> Person:
        target = require_person(library, query.to)
        return library.people.move(require_person(library, name), query.examples, target)

    return JSONResponse((await state.write(move)).to_dict())


def _require_example(library: Library, name: str, number: int) -> Example:
    examples = library.people.examples(require_person(library, name))
    found = next((example for example in examples if example.number == number), None)
    if found is None:
        raise not_found(f"{name!r} has no example {number}")
    return found


@routes.post("/people/{name:path}/confirm", response_model=PersonAnswer, openapi_extra=_FACE_BODY)
async def confirm_match(
    name: NameInPath, face: Annotated[FaceReference, json_body(FaceReference)], state: State
) -> Response:
    """Keep that a face of a photo is this person: it becomes an example of them, and nobody else's."""
    await state.read(lambda library: require_person(library, name))
    (example,) = await state.drawing.run(photo_examples, state, [face])

    def confirm(library: Library) -> Person:
        person = require_person(library, name)
        return library.people.confirm(person, face.photo, face.face, example.picture)

    return JSONResponse((await state.write(confirm)).to_dict())


@routes.post("/people/{name:path}/refuse", response_model=PersonAnswer, openapi_extra=_FACE_BODY)
async def refuse_match(
    name: NameInPath, face: Annotated[FaceReference, json_body(FaceReference)], state: State
) -> Response:
    """Keep that a face of a photo is not this person: it does not match them any more."""

    def refuse(library: Library) -> Person:
        person = require_person(library, name)
        face_descriptor(library, face)
        return library.people.reject(person, face.photo, face.face)

    return JSONResponse((await state.write(refuse)).to_dict())


@routes.get("/people/{name:path}/verdicts", response_model=VerdictsAnswer)
async def list_verdicts(name: NameInPath, state: State) -> Response:
    """List what was confirmed and refused of a person, with where the faces are now."""
    said = await state.read(lambda library: library.people.verdicts(require_person(library, name)))
    return JSONResponse({"verdicts": [verdict.to_dict() for verdict in said]})


@routes.get("/people/{name:path}/photos", response_model=PersonPhotosAnswer)
async def person_photos(
    name: NameInPath,
    state: State,
    limit: Annotated[int, Query(ge=1, le=200)] = 60,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9]{1,9}$")] = None,
) -> Response:
    """List the photos of a person, the latest taken first.

    Those with a face that is surely theirs, was confirmed, or is in a group of theirs.
    """
    offset = int(cursor or 0)

    def read(library: Library) -> PersonPhotos:
        return library.people.photos(require_person(library, name).id, offset, limit)

    found = await state.searching.run(state.with_library, read)
    end = offset + limit
    return JSONResponse(
        {
            "photos": [photo.to_dict(display_path) for photo in found.photos],
            "total": found.total,
            "cursor": str(end) if end < found.total else None,
        }
    )


@routes.get("/people", response_model=PeopleAnswer)
async def list_people(state: State) -> Response:
    """List the saved people, with the number of photos that `GET /people/{name}/photos` lists of each."""

    def read(library: Library) -> list[dict[str, Any]]:
        people, photos = list(library.people), library.people.photo_counts()
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
    check_addressable(new.name)
    uploads = await uploaded_examples(state, new)
    in_photos = await state.drawing.run(photo_examples, state, new.photo_faces) if new.photo_faces else []

    def save(library: Library) -> tuple[Person, list[str]]:
        return library.people.save(new.name, all_examples(new, uploads, in_photos, library), new.if_exists)

    person, notes = await state.write(save)
    return JSONResponse(person.to_dict() | {"notes": notes}, 201)


@routes.get("/people/{name:path}/picture", response_class=Jpeg)
async def person_picture(name: NameInPath, state: State) -> Response:
    """Return a picture of a saved person's face: their cover, else the oldest."""
    picture = await state.read(lambda library: library.people.picture(require_person(library, name)))
    if picture is None:
        raise not_found(f"there is no picture of {name!r}: they are known by descriptors only")
    return Jpeg(picture, headers={"Cache-Control": "private, no-cache"})


@routes.post("/people/{name:path}/merge", response_model=PersonAnswer, openapi_extra=json_schema(MergeQuery))
async def merge_people(
    name: NameInPath, query: Annotated[MergeQuery, json_body(MergeQuery)], state: State
) -> Response:
    """Merge other saved people into this one."""

    def merge(library: Library) -> Person:
        others = [require_person(library, other) for other in query.others]
        return library.people.merge(require_person(library, name), others)

    return JSONResponse((await state.write(merge)).to_dict())


@routes.get("/people/{name:path}", response_model=PersonAnswer)
async def get_person(name: NameInPath, state: State) -> Response:
    """Return one saved person."""
    return JSONResponse((await state.read(lambda library: require_person(library, name))).to_dict())


@routes.patch("/people/{name:path}", response_model=PersonAnswer, openapi_extra=json_schema(PersonChange))
async def change_person(
    name: NameInPath, query: Annotated[PersonChange, json_body(PersonChange)], state: State
) -> Response:
    """Change a saved person's name, aliases, note or cover, in one step."""

    def change(library: Library) -> Person:
        return library.people.edit(
            require_person(library, name),
            new_name=query.name,
            aliases=query.aliases,
            note=query.note,
            cover=query.cover,
        )

    return JSONResponse((await state.write(change)).to_dict())


@routes.delete("/people/{name:path}", response_model=ChangeAnswer)
async def remove_person(name: NameInPath, state: State, for_good: ForGood = False) -> Response:
    """Remove a saved person with example faces and verdicts; this can be undone, unless it is for good.

    Who was removed before is deleted for good by the same call with `for_good`.
    """

    def remove(library: Library) -> Change:
        if not for_good:
            return library.people.remove(require_person(library, name))[0]
        try:
            return library.people.remove(name, for_good=True)[0]
        except InvalidInputError as error:
            raise not_found(str(error)) from error

    return JSONResponse((await state.write(remove)).to_dict())


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


@routes.get("/export/people", response_model=PeopleFileAnswer)
async def export_people(
    state: State,
    descriptors: Annotated[bool, Query(description="Without, faces are found again when imported")] = True,
) -> Response:
    """Return all saved people as a file: names, example faces with pictures, confirmed and refused faces."""
    data = await state.read(lambda library: library.people.to_file(descriptors=descriptors).to_bytes())
    headers = {"Content-Disposition": 'attachment; filename="people.json"'}
    return Response(data, media_type="application/json", headers=headers)


@routes.post("/import/people", response_model=ImportAnswer, openapi_extra=_FILE_BODY)
async def import_people(
    request: Request,
    state: State,
    descriptors: Annotated[bool, Query(description="Use the file's own; else find the faces again")] = True,
) -> Response:
    """Add the people of a file to those saved here, in one step that can be undone."""
    if content_type(request) != "application/json":
        raise Problem(415, "send JSON with the header 'Content-Type: application/json'")
    data = await request.body()
    done = await state.write(lambda library: library.people.import_file(data, descriptors=descriptors))
    return JSONResponse(done.to_dict())
