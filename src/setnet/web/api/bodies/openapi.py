"""The OpenAPI document of the API."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.encoders import jsonable_encoder
from fastapi.openapi.utils import get_openapi

from setnet.client import ProblemAnswer
from setnet.web.server.guard import COOKIE

_SCHEMAS = "#/components/schemas/"
PROBLEM_SCHEMA = f"{_SCHEMAS}{ProblemAnswer.__name__}"

# A server on this machine alone has no token: then none of them is needed.
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "The token that `setnet serve` printed"},
    "header": {"type": "apiKey", "in": "header", "name": "X-Setnet-Token"},
    "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE, "description": "Set by `POST /session`"},
}


def describe(app: FastAPI) -> dict[str, Any]:
    """Return the OpenAPI document; every body's schema is among its components."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
        document["components"]["securitySchemes"] = _SECURITY
        document["security"] = [{name: []} for name in _SECURITY] + [{}]
        schemas = document["components"]["schemas"]
        problem = ProblemAnswer.model_json_schema(ref_template=_SCHEMAS + "{model}", mode="serialization")
        problem = jsonable_encoder(problem, exclude_none=True)  # as of all other schemas
        schemas |= problem.pop("$defs", {}) | {ProblemAnswer.__name__: problem}
        for operations in document["paths"].values():
            for operation in operations.values():
                _move_schemas(operation.get("requestBody", {}).get("content", {}), schemas)
        app.openapi_schema = document
    return app.openapi_schema


def _move_schemas(content: dict[str, Any], schemas: dict[str, Any]) -> None:
    for media in content.values():
        schema = dict(media["schema"])  # the routes keep theirs
        if "title" in schema:
            schemas.update(schema.pop("$defs", {}))
            schemas[schema["title"]] = schema
            media["schema"] = {"$ref": _SCHEMAS + schema["title"]}
