"""`/groups` and `/suggestions`: unknown faces grouped by person, to be named."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Annotated, Literal

from fastapi import Path, Query, Response
from pydantic import Field

from setnet.client import GroupMembers, Groups, Member, Run, SavedPerson, Suggestions
from setnet.library import Group, Library, Person
from setnet.web.faces import FaceReference, photo_examples
from setnet.web.people import IfExists
from setnet.web.requests import (
    Name,
    State,
    Strict,
    api_router,
    check_addressable,
    reads,
    reply,
    require_group,
    require_person,
    searches,
    writes,
)

routes = api_router("groups")
GroupId = Annotated[str, Path(pattern=r"^g[1-9][0-9]{0,17}$", description="Such as g17")]
_KEY = r"^[0-9]{1,18}-[0-9]{1,18}$"
_FACE_KEY = r"^-?[0-9]{1,17}(\.[0-9]{1,17})?(e[+]?[0-9]{1,3})?_[0-9]{1,18}$"


class DiscoverQuery(Strict):
    """How to group."""

    again: Annotated[
        bool, Field(description="Group all faces again but those of named and hidden groups")
    ] = False


class GroupName(Strict):
    """Who a group is."""

    name: Name
    without: Annotated[
        list[FaceReference],
        Field(
            default_factory=list, max_length=10_000, fail_fast=True, description="Faces that are not theirs"
        ),
    ]
    if_exists: IfExists = "ask"


class GroupChange(Strict):
    """What to change of a group."""

    hidden: Annotated[bool, Field(description="Nobody the user knows")]


class GroupRejection(Strict):
    """Who a group is not."""

    person: Name


@routes.get("/groups")
@reads
def list_groups(
    library: Library,
    which: Annotated[Literal["unnamed", "named", "hidden", "all"], Query(alias="state")] = "unnamed",
    min_faces: Annotated[int, Query(ge=1, le=10**9, description="Of at least so many faces")] = 1,
    max_faces: Annotated[int, Query(ge=1, le=10**9, description="Of at most so many")] = 10**9,
    limit: Annotated[int, Query(ge=1, le=500)] = 60,
    cursor: Annotated[str | None, Query(pattern=_KEY)] = None,
) -> Groups:
    """List groups of faces that are probably one person's, the largest first."""
    faces, number = map(int, cursor.split("-")) if cursor else (max_faces, 0)
    after = min((faces, number), (max_faces, 0), key=lambda place: place[0])
    groups = library.groups.page(which, min_faces, limit + 1, after)
    last = groups[limit - 1] if len(groups) > limit else None
    return Groups(
        groups=groups[:limit],
        cursor=None if last is None else f"{last.faces}-{last.number}",
        totals=library.groups.totals(min_faces),
        grouped_at=library.groups.grouped_at,
        ungrouped_faces=library.groups.ungrouped_faces,
    )


@routes.post("/groups/discover", status_code=202, response_model=Run)
async def discover(query: DiscoverQuery, state: State) -> Response:
    """Group the faces that are in no group yet, as an index run does at its end.

    `/index` and `/index/events` tell how far it is; it is refused with 409 while a run is under way.
    """
    return reply(state.index_job.start_grouping(again=query.again).to_dict(), 202)


@routes.get("/groups/{group_id}")
@reads
def get_group(
    library: Library,
    group_id: GroupId,
    limit: Annotated[int, Query(ge=1, le=500)] = 60,
    cursor: Annotated[str | None, Query(pattern=_FACE_KEY, max_length=60)] = None,
) -> GroupMembers:
    """Return a group with its faces, the latest taken first."""
    group = require_group(library, group_id)
    taken, _, number = (cursor or "").partition("_")
    after = None if cursor is None else (float(taken), int(number))
    members = library.groups.members(group_id, limit + 1, after)
    last = members[limit - 1].key if len(members) > limit else None
    return GroupMembers(
        **{field.name: getattr(group, field.name) for field in fields(group)},
        members=tuple(Member(**face.to_dict()) for face in members[:limit]),
        cursor=None if last is None else f"{last[0]!r}_{last[1]}",
    )


@routes.post("/groups/{group_id}/name", status_code=201)
async def name_group(group_id: GroupId, query: GroupName, state: State) -> SavedPerson:
    """Give a group the name of a person, new or saved: all its faces but those left out are theirs.

    When the name is somebody's who is spelt or looks different, the answer is 409 as for `POST /people`.
    """
    check_addressable(query.name)
    without = [(face.photo, face.face) for face in query.without]

    def choose(library: Library) -> list[FaceReference]:
        require_group(library, group_id)
        places = library.groups.examples_to_name(group_id, query.name, without)
        return [FaceReference(photo=photo, face=face) for photo, face in places]

    faces = await state.read(choose)
    drawn = await state.drawing.run(photo_examples, state, faces)
    pictures = {(face.photo, face.face): example.picture for face, example in zip(faces, drawn, strict=True)}

    def name(library: Library) -> tuple[Person, list[str]]:
        require_group(library, group_id)
        return library.groups.name(group_id, query.name, without, query.if_exists, pictures)

    person, notes = await state.write(name)
    return SavedPerson(**asdict(person), notes=tuple(notes))


@routes.patch("/groups/{group_id}")
@writes
def change_group(library: Library, group_id: GroupId, query: GroupChange) -> Group:
    """Hide a group of nobody the user knows, or show it again."""
    require_group(library, group_id)
    return library.groups.hide([group_id], query.hidden)[0]


@routes.post("/groups/{group_id}/reject")
@writes
def reject_group(library: Library, group_id: GroupId, query: GroupRejection) -> Group:
    """Keep that a group is not this person: its faces do not match them any more."""
    require_group(library, group_id)
    return library.groups.reject(group_id, require_person(library, query.person).id)


@routes.get("/suggestions")
@searches
def list_suggestions(
    library: Library,
    person: Annotated[str | None, Query(min_length=1, max_length=200, description="A name or id")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 20,
) -> Suggestions:
    """List groups without a name that may be a saved person's, the most probable first."""
    person_id = None if person is None else require_person(library, person).id
    return Suggestions(suggestions=library.groups.suggestions(person_id, limit))
