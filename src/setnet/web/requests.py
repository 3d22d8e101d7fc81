"""How routes read requests: the server's state, names in addresses, JSON bodies, and what bodies share.

JSON bodies are parsed beside the event loop, so that a large one holds up nobody else.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from itertools import islice
from typing import Annotated, Any, TypeVar
from urllib.parse import unquote

from fastapi import Depends, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel, BeforeValidator, ConfigDict, StringConstraints, ValidationError
from pydantic_core import to_json

from setnet.errors import InvalidInputError
from setnet.library import Group, Library, Person
from setnet.web.problems import Problem, too_large
from setnet.web.state import ServerState

# A name may hold anything printable, slashes too: the routes of people see the address as it was sent, in
# which a %2F is part of the name of "A/merge" and no route to "A".
NameInPath = Annotated[
    str, Path(min_length=1, max_length=200, description="A name, alias or id"), BeforeValidator(unquote)
]
ForGood = Annotated[bool, Query(description="Without undo, and without a trace in any file")]
M = TypeVar("M", bound=BaseModel)
_SMALL = 1 << 16  # parsed in less time than a change of thread takes
_CHUNK = 1 << 20
_BASE64 = re.compile(rb"[A-Za-z0-9+/=\\]{4096,}+")
_FIELD = re.compile(rb'"\s*:')
_MOST_FIELDS = 20_000  # several times what the largest query has
_MOST_FAULTS = 1000
Name = Annotated[str, StringConstraints(min_length=1, max_length=200)]


# Plain functions would cost each request two changes of thread: dependencies here are `async`.
async def _state(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


State = Annotated[ServerState, Depends(_state)]


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


class Strict(BaseModel):
    """A request body: unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class BodyRoute(APIRoute):
    """A route whose parameter of a `Strict` type is its JSON body, read and described as all bodies are.

    The description is complete, with `$defs`; the app moves these to the document's components.
    """

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:
        signature = inspect.signature(endpoint, eval_str=True)
        for name, parameter in signature.parameters.items():
            model = parameter.annotation
            if isinstance(model, type) and issubclass(model, Strict):
                read = parameter.replace(annotation=Annotated[model, _json_body(model)])
                parameters = (signature.parameters | {name: read}).values()
                endpoint.__signature__ = signature.replace(parameters=list(parameters))  # type: ignore[attr-defined]
                schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
                content = {"application/json": {"schema": schema}}
                options["openapi_extra"] = {"requestBody": {"required": True, "content": content}}
        super().__init__(path, endpoint, **options)


def reply(facts: object, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """Return an answer that is made of plain values already, without checking it against its model."""
    return Response(to_json(facts), status, headers, "application/json")


def _json_body(model: type[M]) -> Any:
    """Return the dependency that reads a request's JSON body as a `model`.

    A body that does not say it is JSON is refused: forms of other sites cannot say so.
    """

    async def read(request: Request) -> M:
        kind = content_type(request)
        if kind != "application/json" and not kind.endswith("+json"):
            raise Problem(415, "send JSON with the header 'Content-Type: application/json'")
        body = await request.body()
        if len(body) <= _SMALL:
            return _parse(model, body)
        state = request.app.state.server
        found: M = await state.parsing.run(_parse_large, model, body, state.settings.max_body)
        return found

    return Depends(read)


def _parse_large(model: type[M], body: bytes, most: int) -> M:
    # Images are long texts, which cost little to parse; millions of numbers cost seconds and gigabytes.
    # In parts, because the regular expression lets no other thread run.
    parts = (body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))
    if len(body) > most and sum(len(_BASE64.sub(b"", part)) for part in parts) > most:
        raise Problem(413, f"apart from images, {too_large(most)}")
    if any(True for _ in islice(_FIELD.finditer(body), _MOST_FIELDS, None)):
        raise Problem(422, f"the body has more than {_MOST_FIELDS} fields: /docs says what fits")
    return _parse(model, body)


def _parse(model: type[M], body: bytes) -> M:
    """Return the body as a `model`; raise what is answered with 400 or 422."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        if error.error_count() > _MOST_FAULTS:  # a list of them would be many times larger than the body
            raise Problem(422, f"the body has {error.error_count()} faults: /docs says what fits") from None
        faults = error.errors(include_url=False, include_input=False)
        raise RequestValidationError([{**f, "loc": ("body", *f["loc"])} for f in faults]) from None


class Jpeg(Response):
    """A JPEG picture; as the class of a route's answers it also says so in the OpenAPI document."""

    media_type = "image/jpeg"
