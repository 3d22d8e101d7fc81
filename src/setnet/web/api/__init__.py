"""The routes of `/api/v1`, one file per resource."""

from __future__ import annotations

from fastapi import APIRouter

from setnet.web.api import (
    browsing,
    faces,
    forget,
    groups,
    health,
    index,
    people,
    photos,
    search,
    session,
)
from setnet.web.api.bodies.openapi import PROBLEM_SCHEMA

__all__ = ["api"]

# By reference: as a model, every route would build a validator of it per status, most of a server's start.
_PROBLEM = {"content": {"application/problem+json": {"schema": {"$ref": PROBLEM_SCHEMA}}}}


def api() -> APIRouter:
    """Return all routes."""
    routes = APIRouter(
        prefix="/api/v1",
        responses={
            status: {**_PROBLEM, "description": text}
            for status, text in {
                400: "The body is not what it says it is",
                401: "A token is needed",
                403: "Refused",
                404: "Not there",
                409: "Not now",
                410: "Not kept any more",
                413: "Too large",
                415: "Another kind of body is expected",
                422: "Something in the request does not fit",
                429: "Too many wrong tokens",
                503: "Too busy, or the library is gone",
            }.items()
        },
    )
    # The first is found fastest.
    often = (search, health, session, faces, photos, browsing, groups, people)
    for part in (*often, index, forget):
        routes.include_router(part.routes)
    return routes
