"""Dependencies of the routes: the server's state, a person in an address, and the kind of a body."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path, Query, Request
from pydantic import BeforeValidator

from setnet.errors import InvalidInputError
from setnet.library import Group, Library, Person
from setnet.web.server.problems import not_found
from setnet.web.state.server_state import ServerState


# Plain functions would cost each request two changes of thread: dependencies here are `async`.
async def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


State = Annotated[ServerState, Depends(_state)]


# A name may hold anything printable, slashes too: the routes of people see the address as it was sent, in
# which a %2F is part of the name of "A/merge" and no route to "A".
Name = Annotated[
    str, Path(min_length=1, max_length=200, description="A name, alias or id"), BeforeValidator(unquote)
]

ForGood = Annotated[bool, Query(description="Without undo, and without a trace in any file")]


def known_person(library: Library, name: str) -> Person:
    """Return whoever is called so; nobody is answered with 404."""
    if name not in library.people:
        raise not_found(f"nobody saved is called {name!r}")
    return library.people.get(name)


def known_group(library: Library, group_id: str) -> Group:
    """Return the group of an id; none is answered with 404."""
    if group_id not in library.groups:
        raise not_found(f"no group {group_id} in this library: it may have become part of another")
    return library.groups.get(group_id)


def refuse_dots(name: str) -> None:
    """Raise for names that no address could have in it."""
    if name.strip() in (".", ".."):
        raise InvalidInputError("a person cannot be called '.' or '..': addresses could not name them")


def content_type(request: Request) -> str:
    """Return the media type of the body without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()
