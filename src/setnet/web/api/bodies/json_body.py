"""JSON bodies: parsed beside the event loop, so that a large one holds up nobody else."""

from __future__ import annotations

import re
from itertools import islice
from typing import Any, TypeVar

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from setnet.web.api.dependencies import content_type
from setnet.web.server.problems import Problem, too_large

M = TypeVar("M", bound=BaseModel)

_SMALL = 1 << 16  # parsed in less time than a change of thread takes
_CHUNK = 1 << 20
_BASE64 = re.compile(rb"[A-Za-z0-9+/=\\]{4096,}+")
_FIELD = re.compile(rb'"\s*:')
_MOST_FIELDS = 20_000  # several times what the largest query has
_MOST_FAULTS = 1000


def json_body(model: type[M]) -> Any:
    """Return the dependency that reads a request's JSON body as a `model`.

    A body that does not say it is JSON is refused: forms of other sites cannot say so.
    """

    async def read(request: Request) -> M:
        kind = content_type(request)
        if kind != "application/json" and not kind.endswith("+json"):
            raise Problem(415, "send JSON with the header 'Content-Type: application/json'")
        body = await request.body()
        if len(body) <= _SMALL:
            return _parsed(model, body)
        state = request.app.state.server
        found: M = await state.parsing.run(_parsed_large, model, body, state.settings.max_body)
        return found

    return Depends(read)


def _parsed_large(model: type[M], body: bytes, most: int) -> M:
    # Images are long texts, which cost little to parse; millions of numbers cost seconds and gigabytes.
    # In parts, because the regular expression lets no other thread run.
    parts = (body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK))
    if len(body) > most and sum(len(_BASE64.sub(b"", part)) for part in parts) > most:
        raise Problem(413, f"apart from images, {too_large(most)}")
    if any(True for _ in islice(_FIELD.finditer(body), _MOST_FIELDS, None)):
        raise Problem(422, f"the body has more than {_MOST_FIELDS} fields: /docs says what fits")
    return _parsed(model, body)


def _parsed(model: type[M], body: bytes) -> M:
    """Return the body as a `model`; raise what is answered with 400 or 422."""
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        if error.error_count() > _MOST_FAULTS:  # a list of them would be many times larger than the body
            raise Problem(422, f"the body has {error.error_count()} faults: /docs says what fits") from None
        faults = error.errors(include_url=False, include_input=False)
        raise RequestValidationError([{**f, "loc": ("body", *f["loc"])} for f in faults]) from None


def json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a body: a `model` as JSON.

    The description is complete, with `$defs`; `openapi.described` moves these to the document's components.
    """
    schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
