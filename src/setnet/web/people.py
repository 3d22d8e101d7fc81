"""`/people`, `/changes`: saved people, by name, alias or id.

Their examples, what the user says of matches, and the journal of changes with undo.
"""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal, Self

from fastapi import Path, Query, Response
from pydantic import Field, StringConstraints, model_validator

from setnet.client import Answer, ListedPerson, People, PersonPhotos, SavedPerson, Togethers
from setnet.errors import InvalidInputError
from setnet.library import Change, Example, Library, Person
from setnet.library.paths import display_path
from setnet.library.stacks import Moment, find_stacks
from setnet.web.faces import (
    Examples,
    FaceReference,
    check_vector,
    face_descriptor,
    photo_examples,
    uploaded_examples,
)
from setnet.web.photos import stack_facts
from setnet.web.problems import Problem
from setnet.web.requests import (
    ForGood,
    Jpeg,
    Name,
    NameInPath,
    State,
    Strict,
    api_router,
    check_addressable,
    reads,
    reply,
    require_person,
    searches,
    writes,
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
routes = api_router("people")
NumberInPath = Annotated[int, Path(ge=1, le=2**62)]


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
    if_unlike: Annotated[
        Literal["ask", "merge"],
        Field(description="When faces do not look like one person: `ask` answers 409, `merge` merges"),
    ] = "ask"


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


class ExampleFace(Answer):
    """An example face of a person."""

    number: Annotated[int, Field(description="Its own for as long as it is kept, whoever it belongs to")]
    origin: Literal["portrait", "confirmed", "group", "import"]
    source: Annotated[str | None, Field(description="The path of the photo it came from")]
    content: Annotated[str | None, Field(description="The hash of that photo's file")]
    box: list[float] | None
    has_picture: bool
    added: datetime


class ExampleFaces(Answer):
    """The example faces of a person, oldest first."""

    examples: list[ExampleFace]


class Changes(Answer):
    """The journal, latest first."""

    changes: list[Change]


@routes.get("/people/{name:path}/examples/{number}/picture", response_class=Jpeg)
@reads
def example_picture(library: Library, name: NameInPath, number: NumberInPath) -> Response:
    """Return the picture of an example face."""
    example = _require_example(library, name, number)
    if example.picture is None:
        raise Problem(404, f"there is no picture of example {number} of {name!r}")
    return Jpeg(example.picture, headers={"Cache-Control": "private, no-cache"})


@routes.delete("/people/{name:path}/examples")
@writes
def remove_examples(
    library: Library,
    name: NameInPath,
    number: Annotated[list[ExampleNumber], Query(min_length=1, max_length=1000)],
    for_good: ForGood = False,
) -> Person:
    """Remove example faces of a person in one change; this can be undone, unless it is for good."""
    for one in number:
        _require_example(library, name, one)
    return library.people.remove_examples(require_person(library, name), number, for_good=for_good)


@routes.get("/people/{name:path}/examples", response_model=ExampleFaces)
@reads
def list_examples(library: Library, name: NameInPath) -> Response:
    """List the example faces of a person, oldest first."""
    known = library.people.examples(require_person(library, name))
    return reply({"examples": [example.to_dict() for example in known]})


@routes.post("/people/{name:path}/split")
@writes
def split_person(library: Library, name: NameInPath, query: SplitQuery) -> Person:
    """Make some examples of a person a new person, and return that one."""
    return library.people.split(require_person(library, name), query.examples, query.name)


@routes.post("/people/{name:path}/move")
@writes
def move_examples(library: Library, name: NameInPath, query: MoveQuery) -> Person:
    """Give some examples of a person to another saved person, and return that one."""
    target = require_person(library, query.to)
    return library.people.move(require_person(library, name), query.examples, target)


def _require_example(library: Library, name: str, number: int) -> Example:
    examples = library.people.examples(require_person(library, name))
    found = next((example for example in examples if example.number == number), None)
    if found is None:
        raise Problem(404, f"{name!r} has no example {number}")
    return found


@routes.post("/people/{name:path}/confirm")
async def confirm_match(name: NameInPath, face: FaceReference, state: State) -> Person:
    """Keep that a face of a photo is this person: it becomes an example of them, and nobody else's."""
    await state.read(lambda library: require_person(library, name))
    (example,) = await state.drawing.run(photo_examples, state, [face])

    def confirm(library: Library) -> Person:
        person = require_person(library, name)
        return library.people.confirm(person, face.photo, face.face, example.picture)

    return await state.write(confirm)


@routes.post("/people/{name:path}/reject")
@writes
def reject_match(library: Library, name: NameInPath, face: FaceReference) -> SavedPerson:
    """Keep that a face of a photo is not this person: it does not match them any more.

    `notes` says how many photos are guesses since.
    """
    face_descriptor(library, face)
    person, notes = library.people.reject(require_person(library, name), face.photo, face.face)
    return SavedPerson(**asdict(person), notes=tuple(notes))


@routes.get("/people/{name:path}/photos", response_model=PersonPhotos)
@searches
def person_photos(
    library: Library,
    name: NameInPath,
    limit: Annotated[int, Query(ge=1, le=200)] = 60,
    cursor: Annotated[str | None, Query(pattern=r"^[0-9]{1,9}$")] = None,
    collapse: Annotated[
        bool, Query(description="Make one of copies and bursts on a page: see `copies` and `others`")
    ] = False,
) -> Response:
    """List the photos of a person, the latest taken first.

    They are those that a search finds: a face looks like them, surely or maybe, is an example of them, was
    confirmed, or is in a group of theirs.
    """
    offset = int(cursor or 0)
    found = library.people.photos(require_person(library, name).id, offset, limit)
    stacks = [[number] for number in range(len(found.photos))]
    if collapse:
        stacks = find_stacks([Moment.of(each.photo, name) for each in found.photos])
    photos = [
        found.photos[stack[0]].to_dict(display_path)
        | stack_facts([found.photos[number].photo for number in stack])
        for stack in stacks
    ]
    following = str(offset + limit) if offset + limit < found.total else None
    return reply({"photos": photos, "total": found.total, "sure": found.sure, "cursor": following})


@routes.get("/people/{name:path}/together")
@searches
def list_together(
    library: Library,
    name: NameInPath,
    min_people: Annotated[int, Query(ge=2, le=5, description="Sets of at least so many people")] = 2,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Togethers:
    """List who is in photos with a person, and how often: sets of two to five saved people.

    A photo counts if it surely shows all of them. The most frequent sets come first.
    """
    found = library.people.together(require_person(library, name), min_people=min_people)
    return Togethers(together=found[:limit], total=len(found))


@routes.get("/people")
@searches
def list_people(library: Library) -> People:
    """List the saved people, with the number of photos that `GET /people/{name}/photos` lists of each."""
    people, photos = list(library.people), library.people.photo_counts()
    return People(people=[ListedPerson(**asdict(p), photos=photos.get(p.id, 0)) for p in people])


@routes.post("/people", status_code=201)
async def save_person(new: NewPerson, state: State) -> SavedPerson:
    """Save a person by name, or add example faces to a saved one.

    When the name is somebody's who is spelt or looks different, the answer is 409 with that `person`: ask
    whether they are meant, and send it again with `if_exists` "add", or under another name.
    """
    check_addressable(new.name)
    uploads = await uploaded_examples(state, new)
    in_photos = await state.drawing.run(photo_examples, state, new.photo_faces) if new.photo_faces else []

    def save(library: Library) -> tuple[Person, list[str]]:
        vectors = [check_vector(v, library.dim, n) for n, v in enumerate(new.descriptors, 1)]
        examples = [*uploads, *in_photos, *map(Example, vectors)]
        return library.people.save(new.name, examples, new.if_exists)

    person, notes = await state.write(save)
    return SavedPerson(**asdict(person), notes=tuple(notes))


@routes.get("/people/{name:path}/picture", response_class=Jpeg)
@reads
def person_picture(library: Library, name: NameInPath) -> Response:
    """Return a picture of a saved person's face: their cover, else the oldest."""
    picture = library.people.picture(require_person(library, name))
    if picture is None:
        raise Problem(404, f"there is no picture of {name!r}: they are known by descriptors only")
    return Jpeg(picture, headers={"Cache-Control": "private, no-cache"})


@routes.post("/people/{name:path}/merge")
@writes
def merge_people(library: Library, name: NameInPath, query: MergeQuery) -> Person:
    """Merge other saved people into this one."""
    others = [require_person(library, other) for other in query.others]
    return library.people.merge(require_person(library, name), others, query.if_unlike)


@routes.get("/people/{name:path}")
@reads
def get_person(library: Library, name: NameInPath) -> Person:
    """Return one saved person."""
    return require_person(library, name)


@routes.patch("/people/{name:path}")
@writes
def change_person(library: Library, name: NameInPath, query: PersonChange) -> Person:
    """Change a saved person's name, aliases, note or cover, in one step."""
    person = require_person(library, name)
    return library.people.edit(
        person, new_name=query.name, aliases=query.aliases, note=query.note, cover=query.cover
    )


@routes.delete("/people/{name:path}")
@writes
def remove_person(library: Library, name: NameInPath, for_good: ForGood = False) -> Change:
    """Remove a saved person with example faces and labels; this can be undone, unless it is for good.

    Who was removed before is deleted for good by the same call with `for_good`.
    """
    if not for_good:
        return library.people.remove(require_person(library, name))[0]
    try:
        return library.people.remove(name, for_good=True)[0]
    except InvalidInputError as error:
        raise Problem(404, str(error)) from error


@routes.get("/changes")
@reads
def list_changes(library: Library, limit: Annotated[int, Query(ge=1, le=1000)] = 50) -> Changes:
    """List the changes of people, latest first."""
    return Changes(changes=library.people.history(limit))


@routes.post("/changes/undo")
@writes
def undo_change(library: Library, query: UndoQuery) -> Change:
    """Undo a change, by default the latest that is not undone; undoing an undo redoes.

    The answer is the new entry. A change that a later one builds on is refused with 422: undo that first.
    """
    return library.people.undo(query.change)
