"""How routes read requests and run: bodies, names in addresses, and the library in threads of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import islice
from typing import Annotated, Any, Concatenate, Literal, ParamSpec, TypeVar
from urllib.parse import unquote

from fastapi import Depends, Path, Query, Request, Response
from fastapi.routing import APIRoute, APIRouter
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import from_json, to_json

from setnet.errors import InvalidInputError
from setnet.library import Conditions, Group, Library, Person
from setnet.web.problems import RESPONSES, Problem, too_large
from setnet.web.state import ServerState

# A name may hold anything printable, slashes too: the routes of people see the address as it was sent, in
# which a %2F is part of the name of "A/merge" and no route to "A".
NameInPath = Annotated[
    str, Path(min_length=1, max_length=200, description="A name, alias or id"), BeforeValidator(unquote)
]
ForGood = Annotated[bool, Query(description="Without undo, and without a trace in any file")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Date = Annotated[str, StringConstraints(min_length=4, max_length=32)]
P = ParamSpec("P")
T = TypeVar("T")
_SMALL = 1 << 16  # parsed in less time than a change of thread takes
_CHUNK = 1 << 20
_BASE64 = re.compile(rb"[A-Za-z0-9+/=\\]{4096,}+")
_FIELD = re.compile(rb'"\s*:')
_MOST_FIELDS = 20_000  # several times what the largest query has


# A plain function would cost each request two changes of thread.
async def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


State = Annotated[ServerState, Depends(_state)]
LibraryCall = Callable[Concatenate[Library, P], T]


def _route_in(threads: str) -> Callable[[LibraryCall[P, T]], Callable[..., Coroutine[Any, Any, T]]]:
    """Return the decorator that makes a route of a function whose first parameter is the library.

    It runs in these threads of the server, with the library open until it returns.
    """

    def decorate(call: LibraryCall[P, T]) -> Callable[..., Coroutine[Any, Any, T]]:
        async def route(*, server: ServerState, **given: Any) -> T:
            found: T = await getattr(server, threads).run(server.with_library, partial(call, **given))
            return found

        signature = inspect.signature(call, eval_str=True)
        first, *rest = signature.parameters.values()
        parameters = [
            p.replace(kind=p.KEYWORD_ONLY) for p in (first.replace(name="server", annotation=State), *rest)
        ]
        route.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        route.__name__, route.__doc__ = call.__name__, call.__doc__
        return route

    return decorate


reads = _route_in("reading")
writes = _route_in("writing")  # one at a time
searches = _route_in("searching")


def require_person(library: Library, name: str) -> Person:
    """Return whoever is called so; nobody is answered with 404."""
    try:
        return library.people.get(name)
    except InvalidInputError:
        raise Problem(404, f"nobody saved is called {name!r}") from None


def require_group(library: Library, group_id: str) -> Group:
    """Return the group of an id; none is answered with 404."""
    try:
        return library.groups.get(group_id)
    except InvalidInputError:
        text = f"no group {group_id} in this library: it may have become part of another"
        raise Problem(404, text) from None


def check_addressable(name: str) -> None:
    """Raise for names that no address could have in it."""
    if name.strip() in (".", ".."):
        raise InvalidInputError("a person cannot be called '.' or '..': addresses could not name them")


def content_type(request: Request) -> str:
    """Return the media type of the body without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def check_json(request: Request) -> None:
    """Raise for a body that does not say it is JSON: forms of other sites cannot say so."""
    kind = content_type(request)
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise Problem(415, "send JSON with the header 'Content-Type: application/json'")


class Strict(BaseModel):
    """A request body: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class PhotoConditions(Strict):
    """Which photos are asked for."""

    after: Annotated[Date | None, Field(description="Taken then or later: 2019, 2019-07, 2019-07-14")] = None
    before: Annotated[Date | None, Field(description="Taken before")] = None
    folder: Annotated[str | None, Field(max_length=4096, description="In this folder or below")] = None
    min_faces: Annotated[int | None, Field(ge=0, le=100_000)] = None
    max_faces: Annotated[int | None, Field(ge=0, le=100_000)] = None
    kind: Annotated[
        Literal["photo", "video"] | None, Field(description="Only photos, or only shots of videos")
    ] = None

    def conditions(self) -> Conditions:
        """Return the conditions as the library takes them."""
        faces = (self.min_faces, self.max_faces)
        return Conditions.parse(self.after, self.before, self.folder, faces, self.kind)


class _JsonRequest(Request):
    """Parses large bodies beside the event loop, so that one holds up nobody else."""

    async def json(self) -> Any:
        body = await self.body()
        if len(body) <= _SMALL:
            return from_json(body)
        state = self.app.state.server
        return await state.parsing.run(_parse_large, body, state.settings.max_body)


class JsonRoute(APIRoute):
    """A route whose body, if it takes one, must be JSON that is not too much to parse."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        handler = super().get_route_handler()
        if self.body_field is None:
            return handler

        async def handle(request: Request) -> Response:
            check_json(request)
            return await handler(_JsonRequest(request.scope, request.receive))

        return handle


def api_router(*tags: str) -> APIRouter:
    """Return a router for routes of the API."""
    return APIRouter(
        prefix="/api/v1",
        tags=list(tags),
        responses=RESPONSES,
        route_class=JsonRoute,
        generate_unique_id_function=lambda route: route.name,  # clients call their methods so
    )


def _parse_large(body: bytes, most: int) -> Any:
    # Images are long texts, which cost little to parse; millions of numbers cost seconds and gigabytes.
    # In parts, because the regular expression lets no other thread run.
    parts = (body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))
    if len(body) > most and sum(len(_BASE64.sub(b"", part)) for part in parts) > most:
        raise Problem(413, f"apart from images, {too_large(most)}")
    if any(True for _ in islice(_FIELD.finditer(body), _MOST_FIELDS, None)):
        raise Problem(422, f"the body has more than {_MOST_FIELDS} fields: /docs says what fits")
    return from_json(body)


def reply(facts: object, status: int = 200) -> Response:
    """Return an answer that is made of plain values already, without checking it against its model."""
    return Response(to_json(facts), status, media_type="application/json")


class Jpeg(Response):
    """A JPEG picture; as the class of a route's answers it also says so in the OpenAPI document."""

    media_type = "image/jpeg"
